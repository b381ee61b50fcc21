"""The execution of a pipeline: batches, their state, sources, transforms and sinks."""
