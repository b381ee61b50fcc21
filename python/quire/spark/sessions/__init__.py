"""Spark sessions: finding a Java, and shipping the package to the workers."""
