"""The definition of a pipeline: its model, how it is loaded from YAML, and its validation."""
