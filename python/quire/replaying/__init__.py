"""Replaying a range of messages at a pace, and comparing two queues."""
