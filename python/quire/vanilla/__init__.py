"""
Vanilla Chronicles: the directories of Java Chronicle 3, from ``quire.open``.

Any number of writers append at once without a lock, each to data files of its own; they share an
index. Messages are raw bytes or fields, may be changed in place and claimed by one consumer.

``queue`` has the handles, ``rebuild`` makes lost index files again, and ``replication``, which is
imported on its own, sends queues over TCP.
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
