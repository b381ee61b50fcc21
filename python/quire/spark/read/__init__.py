"""Reading queues on Spark: batches, streams, and how both are planned."""
