"""The sampler `structured`: techniques multiply, so a few effects and their pairs tell most of a space."""
