"""The model and tokenizer that a trial trains, as a folder in the cache."""
