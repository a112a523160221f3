"""Finished trials as text and page."""
