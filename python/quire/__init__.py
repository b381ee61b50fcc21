"""
A persisted, brokerless, low-latency queue whose files are Chronicle Queue 5 files.

>>> with quire.open("orders") as queue, queue.appender() as appender:
...     index = appender.write_text("hello")

Python and Java processes append to and tail the same directory at the same time.

Where things are; each imports only what stands above it::

    errors                                     every exception, as a tree
    types pausers                              declared types, waiting
    _common                                    checked arguments, files that survive a crash, text
                                               safe to print, durations and sizes, waiting
    _formats _opening                          what a format is; paths that become queues
    _raw                                       batches of raw messages
    _native                                    the Rust extension; its stub documents it
    calls                                      messages, interfaces, method writers and readers
    arrow                                      schemas, and messages as columns both ways
    queue appender tailer subtopics            the handles
    vanilla indexed quick_queue                those of other formats
    opening merging                            open(), its options and what sets them, and finding
                                               queues; several queues as one
    ranges                                     ranges, seeking, stored positions
    dataframes                                 queues as data frames, and in notebooks
    groups                                     consumers that share the messages of a queue
    metrics                                    what a queue does in numbers, and exporters
    write_lock maintenance                     the write lock; checking and repairing queues
    replaying services archive                 replay and compare; services; Parquet archives
    logging                                    a handler of the standard library's logging
    recording                                  datagrams and streams into queues, and out
    testing                                    another process and fixtures, for tests; stacks of
                                               a loop that is late
    converting retaining                       queues moved into other formats; retention
    spark                                      the data source, the sink, sessions
    pipeline                                   pipelines that a YAML file declares
    pages                                      HTML pages and charts; knows nothing of queues
    cli                                        the command line
"""

import warnings as _warnings
from typing import TYPE_CHECKING as _TYPE_CHECKING

from quire import _native, pausers, types
from quire import vanilla as vanilla
from quire._common.latency import RunningMinimum
from quire._native import (
    Excerpt,
    ExcerptWriter,
    ManualClock,
    MessageHistory,
    MessagePacker,
    MessageUnpacker,
    Payloads,
    Pretoucher,
    QuickExcerpt,
    ReadDocument,
    Ring,
    RollCycle,
    VanillaExcerpt,
    WriteDocument,
    parse_json,
    parse_yaml,
    to_json,
    to_yaml,
)
from quire.appender import Appender
from quire.arrow.schema import Schema
from quire.calls.interfaces import method_id
from quire.calls.messages import Typed, TypeLiteral, message
from quire.errors import (
    AppendLockedError,
    ArchiveError,
    ClockAheadError,
    ClosedError,
    ConvertError,
    CorruptError,
    CycleFullError,
    DataLossError,
    DocumentOpenError,
    ForkedError,
    GroupError,
    GroupLostError,
    IndexNotAvailableError,
    IndexOutOfRangeError,
    LockLostError,
    LockTimeoutError,
    MessageTooLargeError,
    NotAQueueError,
    PeerLostError,
    PeerSilentError,
    ProducerDiedError,
    QuireError,
    ReadOnlyError,
    ReplayError,
    ReplicationError,
    RingFullError,
    RingLostError,
    RollCycleMismatchError,
    SettingError,
    TableLostError,
    TailerInUseError,
    UnsafePathError,
    UnsupportedError,
    WaitTimeoutError,
    WireError,
    WriteAfterEofError,
    WriterInUseError,
)
from quire.indexed import IndexedQueue, IndexedTailer
from quire.merging import merge
from quire.opening.opener import open  # noqa: A004 - `quire.open` reads as what it does
from quire.queue import Queue
from quire.quick_queue import QuickAppender, QuickQueue, QuickTailer
from quire.tailer import Tailer
from quire.types import (
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
)
from quire.vanilla import VanillaAppender, VanillaQueue, VanillaTailer
from quire.write_lock import LockHolder, WriteLock

if _TYPE_CHECKING:
    from quire.calls.printing import print_all
    from quire.converting.conversion import Converted, convert
    from quire.converting.mapping import IndexMap
    from quire.converting.salvaging import salvage
    from quire.groups.consumer import Consumer
    from quire.groups.group import Group
    from quire.groups.message import GroupBatch, GroupMessage
    from quire.maintenance.copy_run import Copied
    from quire.maintenance.copying import copy_queue
    from quire.maintenance.explaining import ExplainedPart, Explanation, explain
    from quire.maintenance.files import FileState, FileUser, file_state, removable
    from quire.maintenance.filesystem import (
        FilesystemCheck,
        FilesystemReport,
        verify_filesystem,
    )
    from quire.maintenance.findings import Action, Finding, RepairReport, VerifyReport
    from quire.maintenance.joining import merge_queues
    from quire.maintenance.pending import ring_pending
    from quire.maintenance.repairing import repair
    from quire.maintenance.splitting import split_queue
    from quire.maintenance.time_index import build_time_index
    from quire.maintenance.verification import verify
    from quire.replaying.comparison import compare
    from quire.replaying.replays import replay, replayed
    from quire.retaining.prune_report import PrunedCycle, PruneReport
    from quire.retaining.pruning import prune
    from quire.retaining.retention import Retention
    from quire.services.serving import Service, service

__all__ = [
    "Action",
    "AppendLockedError",
    "Appender",
    "ArchiveError",
    "ClockAheadError",
    "ClosedError",
    "Consumer",
    "ConvertError",
    "Converted",
    "Copied",
    "CorruptError",
    "CycleFullError",
    "DataLossError",
    "DocumentOpenError",
    "Excerpt",
    "ExcerptWriter",
    "ExplainedPart",
    "Explanation",
    "FileState",
    "FileUser",
    "FilesystemCheck",
    "FilesystemReport",
    "Finding",
    "ForkedError",
    "Group",
    "GroupBatch",
    "GroupError",
    "GroupLostError",
    "GroupMessage",
    "IndexMap",
    "IndexNotAvailableError",
    "IndexOutOfRangeError",
    "IndexedQueue",
    "IndexedTailer",
    "LockHolder",
    "LockLostError",
    "LockTimeoutError",
    "ManualClock",
    "MessageHistory",
    "MessagePacker",
    "MessageTooLargeError",
    "MessageUnpacker",
    "NotAQueueError",
    "Payloads",
    "PeerLostError",
    "PeerSilentError",
    "Pretoucher",
    "ProducerDiedError",
    "PruneReport",
    "PrunedCycle",
    "Queue",
    "QuickAppender",
    "QuickExcerpt",
    "QuickQueue",
    "QuickTailer",
    "QuireError",
    "ReadDocument",
    "ReadOnlyError",
    "RepairReport",
    "ReplayError",
    "ReplicationError",
    "Retention",
    "Ring",
    "RingFullError",
    "RingLostError",
    "RollCycle",
    "RollCycleMismatchError",
    "RunningMinimum",
    "Schema",
    "Service",
    "SettingError",
    "TableLostError",
    "Tailer",
    "TailerInUseError",
    "TypeLiteral",
    "Typed",
    "UnsafePathError",
    "UnsupportedError",
    "VanillaAppender",
    "VanillaExcerpt",
    "VanillaQueue",
    "VanillaTailer",
    "VerifyReport",
    "WaitTimeoutError",
    "WireError",
    "WriteAfterEofError",
    "WriteDocument",
    "WriteLock",
    "WriterInUseError",
    "__version__",
    "build_time_index",
    "compare",
    "convert",
    "copy_queue",
    "explain",
    "file_state",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "merge",
    "merge_queues",
    "message",
    "method_id",
    "open",
    "parse_json",
    "parse_yaml",
    "pausers",
    "print_all",
    "prune",
    "removable",
    "repair",
    "replay",
    "replayed",
    "ring_pending",
    "salvage",
    "service",
    "split_queue",
    "to_json",
    "to_yaml",
    "types",
    "uint8",
    "uint16",
    "uint32",
    "verify",
    "verify_filesystem",
]

__version__ = _native.VERSION

_LATER = {
    "Consumer": "groups.consumer",
    "Group": "groups.group",
    "GroupBatch": "groups.message",
    "GroupMessage": "groups.message",
    "Converted": "converting.conversion",
    "IndexMap": "converting.mapping",
    "Action": "maintenance.findings",
    "Copied": "maintenance.copy_run",
    "ExplainedPart": "maintenance.explaining",
    "Explanation": "maintenance.explaining",
    "FileState": "maintenance.files",
    "FileUser": "maintenance.files",
    "FilesystemCheck": "maintenance.filesystem",
    "FilesystemReport": "maintenance.filesystem",
    "Finding": "maintenance.findings",
    "RepairReport": "maintenance.findings",
    "PruneReport": "retaining.prune_report",
    "PrunedCycle": "retaining.prune_report",
    "Retention": "retaining.retention",
    "Service": "services.serving",
    "build_time_index": "maintenance.time_index",
    "copy_queue": "maintenance.copying",
    "explain": "maintenance.explaining",
    "file_state": "maintenance.files",
    "prune": "retaining.pruning",
    "removable": "maintenance.files",
    "ring_pending": "maintenance.pending",
    "compare": "replaying.comparison",
    "convert": "converting.conversion",
    "print_all": "calls.printing",
    "merge_queues": "maintenance.joining",
    "split_queue": "maintenance.splitting",
    "repair": "maintenance.repairing",
    "replay": "replaying.replays",
    "replayed": "replaying.replays",
    "salvage": "converting.salvaging",
    "service": "services.serving",
    "VerifyReport": "maintenance.findings",
    "verify": "maintenance.verification",
    "verify_filesystem": "maintenance.filesystem",
}


def __getattr__(name: str) -> object:
    """Import what few programs need when it is asked for: it would slow down every import."""
    if name not in _LATER:
        raise AttributeError(f"module 'quire' has no attribute: name={name}")
    from importlib import import_module

    return getattr(import_module(f"quire.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    """List what is imported later too."""
    return sorted({*globals(), *_LATER})


if _native.BUILD_PROFILE != "release":
    _warnings.warn(
        "quire was built without optimisation: do not measure this build",
        RuntimeWarning,
        stacklevel=2,
    )
