"""A Hydra plugin: hydra/sweeper=pareto, hydra/launcher=isolated.  Import nothing here: sweeper/README.md."""
