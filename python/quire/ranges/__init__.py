"""Ranges of messages: their bounds, their cycles, and seeking by index or event time."""
