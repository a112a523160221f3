"""A study in Optuna's own dashboard: what it is shown, and the server that shows it."""
