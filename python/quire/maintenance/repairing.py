"""Repairing queues of any format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path

from quire._common import arguments
from quire.errors import UnsupportedError
from quire.formats.adapters import adapter_at
from quire.formats.journal import JOURNAL
from quire.maintenance.findings import Action, Finding, RepairReport, VerifyReport
from quire.maintenance.verification import targets_of, verify


def repair(
    path: str | PathLike[str],
    *,
    dry_run: bool = True,
    timeout_s: float = 1.0,
    allow_network: bool = False,
) -> RepairReport:
    """
    Repair what :func:`quire.verify` finds, without losing a message that can be read.

    It works under the write lock, one file at a time. Bytes that are cut off are kept beside the
    file, as ``*.discard``. The next repair completes one that was interrupted. If the index of a
    Vanilla Chronicle is rebuilt, messages after lost ones get other indexes, and named tailers
    follow them.

    Args:
        path: A queue, or a directory of queues.
        dry_run: Change nothing; only report what would be done.
        timeout_s: Seconds to wait while a living process holds the write lock.
        allow_network: Work on a network file system, where only one host may use the queue.

    Raises:
        LockTimeoutError: A living process holds the write lock.
        WriterInUseError: The table must be rebuilt while a process may write to the queue; or
            messages must be cut off while the queue's source runs, or a service that writes its
            outputs there.
        TailerInUseError: A named tailer is open whose messages would get other indexes.
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
    done = tuple(_by_finding(before, actions, after))
    return RepairReport(place, dry_run, before, done, after)


def _by_finding(
    before: VerifyReport, actions: list[Action], after: VerifyReport
) -> Iterator[Action]:
    """
    Yield what was done about each finding, in their order, as a dry run lists them.

    One step may mend several findings, as one that fills an index does. A step that follows from
    another, such as the end mark of a file that was cut, belongs to the last finding of its file.
    """
    left = {(it.kind, it.file, it.position) for it in after.findings}
    unused, done = list(actions), list[Action]()
    for finding in before.findings:
        if finding.remedy is None:
            continue
        steps = [it for it in actions if _subject(it) == _subject(finding)]
        free = [it for it in steps if it in unused]
        exact = [it for it in free if (it.kind, it.position) == (finding.kind, finding.position)]
        step = next(iter([*exact, *free, *reversed(steps)]), None)
        if step is not None:
            unused = [it for it in unused if it is not step]
            text = step.done
        elif (finding.kind, finding.file, finding.position) in left:
            continue
        else:
            text = "mended with what was done about the others of the file"
        done.append(Action(finding.kind, finding.file, finding.position, text))
    yield from _with_consequences(done, unused)


def _with_consequences(done: list[Action], steps: list[Action]) -> list[Action]:
    """Return what was done, with the steps that followed from it."""
    for step in steps:
        same = [it for it, made in enumerate(done) if _place(made.file) == _place(step.file)]
        if same:
            made = done[same[-1]]
            done[same[-1]] = replace(made, done=f"{made.done}; {step.kind}: {step.done}")
        else:
            done.append(step)
    return done


def _subject(it: Finding | Action) -> tuple[str, str]:
    """Return the file and what of it is meant: the parts of an index are mended together."""
    is_index = it.kind in {"index-entry", "index-hole", "index-array"}
    return _place(it.file), "index" if is_index else it.kind


def _place(file: str) -> str:
    return str(Path(file).absolute())


def _repair_one(path: str, timeout_ms: int, *, allow_network: bool) -> list[Action]:
    where = str(Path(path).absolute())
    adapter = adapter_at(path) or JOURNAL
    rows = adapter.repair(where, timeout_ms=timeout_ms, allow_network=allow_network)
    return [Action(*row) for row in rows]
