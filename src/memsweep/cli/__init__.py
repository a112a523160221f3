"""The `memsweep` command: one module a subcommand."""
