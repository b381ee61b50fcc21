"""Writing queues from Spark: staged by tasks, committed once by the driver."""
