"""
Quick-Queues: an index of fixed-size entries over raw messages, from ``quire.open``.

A message is any bytes, or fields packed one after the other. Its index is the address of its entry
in the queue's index: a multiple of 16; indexes only grow.
"""

from quire._native import QuickExcerpt
from quire.handles.quick_queue import QuickAppender, QuickQueue, QuickTailer, open  # noqa: A004

__all__ = ["QuickAppender", "QuickExcerpt", "QuickQueue", "QuickTailer", "open"]
