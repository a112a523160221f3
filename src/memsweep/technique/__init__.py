"""The techniques under conf/technique: what they are, which go together, what they set."""
