"""Sinks of a pipeline; each adds a batch exactly once, also when the batch is run again."""
