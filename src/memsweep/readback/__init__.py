"""What is really in force once a trainer is built: facts, their hash, and what was asked for in vain."""
