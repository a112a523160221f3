"""One trial in its own process: started, watched, ended, and what it did there."""
