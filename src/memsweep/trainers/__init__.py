"""One module a TRL trainer: from a trial's configuration to a trainer that is ready to train."""
