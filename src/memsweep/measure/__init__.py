"""The instruments: real trained tokens per second, and peak memory."""
