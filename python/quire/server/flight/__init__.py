"""Arrow Flight: the messages of served queues as columns. Needs ``quire[flight]``."""
