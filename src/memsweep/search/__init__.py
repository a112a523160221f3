"""What to try next: the space, its legal cells, samplers, and what they hear of finished trials."""
