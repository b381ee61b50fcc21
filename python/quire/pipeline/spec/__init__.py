"""The definition of a pipeline: its model, loading and validation."""
