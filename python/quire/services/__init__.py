"""Services: handlers between queues, which find in their output where to resume."""
