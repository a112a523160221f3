"""A trial of several processes, one a device: how many, how they share the work, what accelerate is told."""
