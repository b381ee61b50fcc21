"""Services: handlers between queues that resume from what their output holds."""
