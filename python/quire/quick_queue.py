"""
Quick-Queues: an index of fixed-size entries over raw messages, from ``quire.open``.

A message is any bytes, or fields packed one after the other. Its index is its place in the queue's
index: a multiple of 16 that only grows.
"""

from quire._native import QuickExcerpt
from quire.handles.quick_queue import QuickAppender, QuickQueue, QuickTailer, open  # noqa: A004

__all__ = ["QuickAppender", "QuickExcerpt", "QuickQueue", "QuickTailer", "open"]
