"""Batches of messages that are staged first, and then appended exactly once."""
