"""The examples that a trial trains on."""
