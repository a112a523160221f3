"""Finished trials as text, page and Weights & Biases runs."""
