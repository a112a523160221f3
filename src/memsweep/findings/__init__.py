"""What a study found, before it becomes text, page, picture or W&B run."""
