"""Checking queues of any format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Final

from quire._common import arguments
from quire._common.unfinished import without_unfinished
from quire.errors import CorruptError, NotAQueueError, UnsupportedError
from quire.formats import detection
from quire.formats.adapter import Verified
from quire.formats.adapters import adapter_at
from quire.formats.journal import JOURNAL
from quire.maintenance.findings import Finding, VerifyReport
from quire.maintenance.hidden_files import hidden_files
from quire.maintenance.pending import ring_of, ring_pending
from quire.maintenance.sealing import check_seals, wanted_seals
from quire.opening.discovery import check_local
from quire.sealed.seal_check import Wanted

_TABLE: Final = ".cq4t"


def verify(
    path: str | PathLike[str],
    *,
    seals: bool = False,
    trust: str | PathLike[str] | None = None,
    since: str | PathLike[str] | None = None,
) -> VerifyReport:
    """
    Check a queue against every rule of its format, and against its seals if it has some.

    Nothing is changed and no lock is taken: the queue may be in use, or be on a read-only disk. A
    message that a writer has yet to complete is not a finding.

    Args:
        path: A queue of any format, one ``*.cq4`` file, a directory with copies of some of a
            queue's files, or a directory of queues.
        seals: Report an error if nothing is sealed.
        trust: The file of an Ed25519 public key, in PEM, that must have signed a seal.
        since: The file of a checkpoint that was kept elsewhere: the seals must continue from it.

    Raises:
        NotAQueueError: There is no queue at *path*.
        SealError: *trust* is not a key, or *since* not a checkpoint.
        OSError: The system refuses to read *path*, for example for lack of permission.

    Examples:
        >>> with quire.open("orders") as queue, queue.appender() as appender:
        ...     _ = appender.write_text("hello")
        >>> report = quire.verify("orders")
        >>> report.ok, report.messages, report.findings
        (True, 1, ())

    """
    place = arguments.path("path", path)
    check_local(place)
    wanted = wanted_seals(seals=seals, trust=trust, since=since)
    reports = [_verify_one(target, wanted) for target in targets_of(place)]
    return joined(place, reports)


def targets_of(path: str) -> Iterator[str]:
    """
    Yield the queues that a path stands for: itself, or those below it.

    Raises:
        NotAQueueError: There is no queue at the path or below it, or the path is the table of a
            queue.

    """
    if detection.format_of(path) is not None:
        yield path
        return
    detection.refuse_part(path)
    if not os.path.isdir(path):  # noqa: PTH112
        if path.endswith(_TABLE):
            raise NotAQueueError(
                f"a table is examined with its queue: path={path} (give the directory of the queue)"
            )
        yield path
        return
    count = 0
    for folder, inside, _ in os.walk(path, onerror=_refuse):
        inside[:] = without_unfinished(inside)
        if folder != path and detection.format_of(folder) is not None:
            inside.clear()  # a queue holds no queues
            count += 1
            yield folder
        inside.sort()
    if count == 0:
        raise NotAQueueError(f"no queue in this directory, nor below it: path={path}")


def _refuse(error: OSError) -> None:
    """Raise, rather than silently leave out queues."""
    raise error


def joined(path: str, reports: Iterable[VerifyReport]) -> VerifyReport:
    """Return one report about several queues."""
    several = [*reports]
    return VerifyReport(
        path,
        tuple(finding for report in several for finding in report.findings),
        sum(report.files for report in several),
        sum(report.messages for report in several),
        sum(report.bytes for report in several),
    )


def _verify_one(path: str, wanted: Wanted) -> VerifyReport:
    findings, files, messages, examined = _rows(path)
    rows = (*findings, *check_seals(path, wanted))
    hidden = hidden_files(Path(path)) if detection.format_of(path) == detection.CHRONICLE else ()
    found = (*(Finding(*row) for row in rows), *hidden, *_of_ring(path))
    return VerifyReport(path, found, files, messages, examined)


def _of_ring(path: str) -> Iterator[Finding]:
    """Yield findings about messages that wait in the ring."""
    ring = ring_of(path)
    try:
        if not os.path.lexists(ring):
            return
        messages, size = ring_pending(path)
    except (CorruptError, NotAQueueError, UnsupportedError, OSError) as error:
        yield Finding("unreadable-ring", ring, None, str(error), "a ring of asynchronous appends")
        return
    if messages:
        yield Finding(
            "pending-ring", ring, None, f"messages={messages} bytes={size}", "an empty ring"
        )


def _rows(path: str) -> Verified:
    """Return the kernel's report on a queue, or one file."""
    adapter = adapter_at(path) if os.path.isdir(path) else None  # noqa: PTH112
    return (adapter or JOURNAL).verify(path)
