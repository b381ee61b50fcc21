"""
Vanilla Chronicles: the directories of Java Chronicle 3, from ``quire.open``.

Any number of writers append at the same time without a lock, each to its own data files; they share
an index. Messages are raw bytes or fields, can be changed in place, and can be claimed by one
consumer each.

``rebuild`` rebuilds lost index files, and ``replication``, which is imported separately, sends
queues over TCP.
"""

from quire._native import VanillaExcerpt
from quire.handles.vanilla import (
    VanillaAppender,
    VanillaQueue,
    VanillaTailer,
    open,  # noqa: A004
)
from quire.opening.options import CycleOptions, FileOptions
from quire.vanilla.rebuild import RebuiltCycle, rebuild_index

__all__ = [
    "CycleOptions",
    "FileOptions",
    "RebuiltCycle",
    "VanillaAppender",
    "VanillaExcerpt",
    "VanillaQueue",
    "VanillaTailer",
    "open",
    "rebuild_index",
]
