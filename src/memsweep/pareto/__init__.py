"""Dominance and hypervolume: what is worth having among finished trials."""
