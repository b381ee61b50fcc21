"""Running a pipeline: batches, their state, sources, transforms and sinks."""
