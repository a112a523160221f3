"""Finished trials as Weights & Biases runs."""
