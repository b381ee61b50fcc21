"""Repairing queues of any format."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from quire._common import arguments
from quire.errors import UnsupportedError
from quire.formats.adapters import adapter_at
from quire.formats.journal import JOURNAL
from quire.maintenance.findings import Action, RepairReport
from quire.maintenance.verification import targets_of, verify


def repair(
    path: str | PathLike[str],
    *,
    dry_run: bool = True,
    timeout_s: float = 1.0,
    allow_network: bool = False,
) -> RepairReport:
    """
    Repair what :func:`quire.verify` finds, as far as that loses no message that can be read.

    It works under the write lock, one file at a time. What is cut off is kept beside the file, as
    ``*.discard``. A repair that was interrupted is completed by the next one.

    Args:
        path: A queue, or a directory of queues.
        dry_run: Only say what would be done.
        timeout_s: How long, in seconds, a living process may hold the write lock.
        allow_network: Work on a network file system, where only one host may use the queue.

    Raises:
        LockTimeoutError: A living process holds the write lock.
        WriterInUseError: The table has to be built again while a process may write to the queue.
        UnsupportedError: *path* is a file: give the directory of its queue.

    Examples:
        >>> report = quire.repair("orders")
        >>> [finding.kind for finding in report.planned]
        []
        >>> quire.repair("orders", dry_run=False).ok
        True

    """
    place = arguments.path("path", path)
    if Path(place).is_file():
        raise UnsupportedError(f"repairing one file alone: give its queue's directory path={place}")
    dry_run = arguments.flag("dry_run", dry_run)
    timeout_ms = arguments.milliseconds("timeout_s", timeout_s)
    allow_network = arguments.flag("allow_network", allow_network)
    before = verify(place)
    if dry_run:
        return RepairReport(place, dry_run, before, (), before)
    actions: list[Action] = []
    for target in targets_of(place):
        found = before if target == place else verify(target)
        if any(it.remedy is not None or it.kind == "lock-held" for it in found.findings):
            actions += _repair_one(target, timeout_ms, allow_network=allow_network)
    after = verify(place) if actions else before
    return RepairReport(place, dry_run, before, tuple(actions), after)


def _repair_one(path: str, timeout_ms: int, *, allow_network: bool) -> list[Action]:
    where = str(Path(path).absolute())
    adapter = adapter_at(path) or JOURNAL
    rows = adapter.repair(where, timeout_ms=timeout_ms, allow_network=allow_network)
    return [Action(*row) for row in rows]
