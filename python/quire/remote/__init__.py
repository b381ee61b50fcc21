"""Queues of a server: handles for ``quire://`` addresses."""
