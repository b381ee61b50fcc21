"""Reading queues on Spark: batches, streams, scans, and the partitions of each."""
