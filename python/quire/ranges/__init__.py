"""Ranges of a queue's messages: their bounds, their cycles, and seeking by event time."""
