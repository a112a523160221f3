"""What a trial is asked to do: conf/ made known to Hydra, and a composed config made into types."""
