"""Sinks; each adds a batch exactly once, even if the batch is repeated."""
