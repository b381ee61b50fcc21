"""
Looking after queues: checking and repairing files, locks, file systems.

:func:`quire.verify` and :func:`quire.repair` are here, with the reports they return; the checks
themselves are in the kernel. :func:`quire.removable` and :func:`quire.file_state` say which files
are in use, and :func:`explain` what the bytes of a message mean. :func:`quire.copy_queue` copies a
queue in use, :func:`split_queue` and :func:`merge_queues` write one into several and the reverse.
:func:`seal` makes changes of messages detectable, and :func:`prove` proves that one is in a queue.
"""

from typing import TYPE_CHECKING

from quire._common.later import imported_later

if TYPE_CHECKING:
    from quire.maintenance.copy_run import Copied
    from quire.maintenance.dictionaries import TrainedDictionary, compress_dictionary
    from quire.maintenance.explaining import ExplainedPart, Explanation, explain
    from quire.maintenance.files import FileState, FileUser
    from quire.maintenance.filesystem import FilesystemCheck, FilesystemReport, verify_filesystem
    from quire.maintenance.findings import Action, Finding, RepairReport, VerifyReport
    from quire.maintenance.joining import merge_queues
    from quire.maintenance.pending import ring_pending
    from quire.maintenance.rewrapping import rewrap
    from quire.maintenance.sealing import Proven, Seal, check_proof, prove, seal
    from quire.maintenance.splitting import split_queue
    from quire.maintenance.time_index import build_time_index

__all__ = [
    "Action",
    "Copied",
    "ExplainedPart",
    "Explanation",
    "FileState",
    "FileUser",
    "FilesystemCheck",
    "FilesystemReport",
    "Finding",
    "Proven",
    "RepairReport",
    "Seal",
    "TrainedDictionary",
    "VerifyReport",
    "build_time_index",
    "check_proof",
    "compress_dictionary",
    "explain",
    "merge_queues",
    "prove",
    "rewrap",
    "ring_pending",
    "seal",
    "split_queue",
    "verify_filesystem",
]

__getattr__ = imported_later(
    __name__,
    {
        "Action": "quire.maintenance.findings",
        "Copied": "quire.maintenance.copy_run",
        "ExplainedPart": "quire.maintenance.explaining",
        "Explanation": "quire.maintenance.explaining",
        "FileState": "quire.maintenance.files",
        "FileUser": "quire.maintenance.files",
        "FilesystemCheck": "quire.maintenance.filesystem",
        "FilesystemReport": "quire.maintenance.filesystem",
        "Finding": "quire.maintenance.findings",
        "Proven": "quire.maintenance.sealing",
        "RepairReport": "quire.maintenance.findings",
        "Seal": "quire.maintenance.sealing",
        "TrainedDictionary": "quire.maintenance.dictionaries",
        "VerifyReport": "quire.maintenance.findings",
        "build_time_index": "quire.maintenance.time_index",
        "check_proof": "quire.maintenance.sealing",
        "compress_dictionary": "quire.maintenance.dictionaries",
        "explain": "quire.maintenance.explaining",
        "merge_queues": "quire.maintenance.joining",
        "prove": "quire.maintenance.sealing",
        "rewrap": "quire.maintenance.rewrapping",
        "ring_pending": "quire.maintenance.pending",
        "seal": "quire.maintenance.sealing",
        "split_queue": "quire.maintenance.splitting",
        "verify_filesystem": "quire.maintenance.filesystem",
    },
)
