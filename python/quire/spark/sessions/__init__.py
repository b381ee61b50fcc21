"""Spark sessions: their Java, and what is shipped to their workers."""
