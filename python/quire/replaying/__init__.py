"""Replaying a queue into another one or at pace, and comparing two queues."""
