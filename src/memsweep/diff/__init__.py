"""What a change of configuration means for training: two sides composed, their typed leaves compared."""
