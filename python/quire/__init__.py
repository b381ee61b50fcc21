"""
A persisted, brokerless, low-latency queue whose files are Chronicle Queue 5 files.

>>> with quire.open("orders") as queue, queue.appender() as appender:
...     index = appender.write_text("hello")

Python and Java processes append to and tail the same directory at the same time.
"""

import warnings as _warnings
from typing import TYPE_CHECKING as _TYPE_CHECKING

from quire import _native
from quire import calls as calls
from quire import errors as errors
from quire import indexed as indexed
from quire import pausers as pausers
from quire import quick_queue as quick_queue
from quire import types as types
from quire import vanilla as vanilla
from quire._common.later import imported_later as _imported_later
from quire._native import (
    Excerpt,
    ExcerptWriter,
    ManualClock,
    MessageHistory,
    MessagePacker,
    MessageUnpacker,
    Pretoucher,
    ReadDocument,
    Ring,
    RollCycle,
    WriteDocument,
)
from quire.arrow.schema import Schema
from quire.calls.messages import Typed, TypeLiteral, message
from quire.errors import QuireError
from quire.handles.base import Appender, Queue, Tailer
from quire.handles.journal.appender import JournalAppender
from quire.handles.journal.queue import JournalQueue
from quire.handles.journal.tailer import JournalTailer
from quire.merging import merge as merge
from quire.merging import read_merged
from quire.opening.opener import open  # noqa: A004 - `quire.open` reads as what it does
from quire.opening.options import LayoutOptions, RingOptions, RollOptions, WaitOptions
from quire.sealed.key_ring import KeyRing
from quire.write_lock import LockHolder, WriteLock

if _TYPE_CHECKING:
    from quire import converting as converting
    from quire import maintenance as maintenance
    from quire import metrics as metrics
    from quire import retaining as retaining
    from quire.converting.conversion import convert
    from quire.converting.salvaging import salvage
    from quire.groups.consumer import Consumer
    from quire.groups.group import Group
    from quire.groups.message import GroupBatch, GroupMessage
    from quire.maintenance.copying import copy_queue
    from quire.maintenance.files import file_state, removable
    from quire.maintenance.repairing import repair
    from quire.maintenance.verification import verify
    from quire.replaying.comparison import compare
    from quire.replaying.replays import replay, replayed
    from quire.retaining.pruning import prune
    from quire.retaining.retention import Retention
    from quire.services.serving import Service, service

__all__ = [
    "Appender",
    "Consumer",
    "Excerpt",
    "ExcerptWriter",
    "Group",
    "GroupBatch",
    "GroupMessage",
    "JournalAppender",
    "JournalQueue",
    "JournalTailer",
    "KeyRing",
    "LayoutOptions",
    "LockHolder",
    "ManualClock",
    "MessageHistory",
    "MessagePacker",
    "MessageUnpacker",
    "Pretoucher",
    "Queue",
    "QuireError",
    "ReadDocument",
    "Retention",
    "Ring",
    "RingOptions",
    "RollCycle",
    "RollOptions",
    "Schema",
    "Service",
    "Tailer",
    "TypeLiteral",
    "Typed",
    "WaitOptions",
    "WriteDocument",
    "WriteLock",
    "__version__",
    "compare",
    "convert",
    "copy_queue",
    "file_state",
    "message",
    "open",
    "prune",
    "read_merged",
    "removable",
    "repair",
    "replay",
    "replayed",
    "salvage",
    "service",
    "verify",
]

__version__ = _native.VERSION

_LATER = {
    "converting": "",
    "maintenance": "",
    "metrics": "",
    "retaining": "",
    "Consumer": "quire.groups.consumer",
    "Group": "quire.groups.group",
    "GroupBatch": "quire.groups.message",
    "GroupMessage": "quire.groups.message",
    "Retention": "quire.retaining.retention",
    "Service": "quire.services.serving",
    "compare": "quire.replaying.comparison",
    "convert": "quire.converting.conversion",
    "copy_queue": "quire.maintenance.copying",
    "file_state": "quire.maintenance.files",
    "prune": "quire.retaining.pruning",
    "removable": "quire.maintenance.files",
    "repair": "quire.maintenance.repairing",
    "replay": "quire.replaying.replays",
    "replayed": "quire.replaying.replays",
    "salvage": "quire.converting.salvaging",
    "service": "quire.services.serving",
    "verify": "quire.maintenance.verification",
}

__getattr__ = _imported_later(__name__, _LATER)


def __dir__() -> list[str]:
    """List what is imported later too."""
    return sorted({*globals(), *_LATER})


if _native.BUILD_PROFILE != "release":
    _warnings.warn(
        "quire was built without optimisation: do not measure this build",
        RuntimeWarning,
        stacklevel=2,
    )
