"""How long the examples are in tokens, and what each limit, batch and way of packing makes of that."""
