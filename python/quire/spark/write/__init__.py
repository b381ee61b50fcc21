"""Writing queues from Spark: staged by tasks, committed exactly once by the driver."""
