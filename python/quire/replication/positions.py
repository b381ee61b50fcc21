"""The positions of a queue's readers: how a source sends and a sink stores them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from quire._native import (
    group_backlog,
    group_forget,
    group_is_kept,
    group_keep,
    group_snapshot,
    group_take,
    keep_tailer,
)
from quire.errors import QuireError, ReplicationError, TailerInUseError
from quire.groups.states import side_file, side_files
from quire.handles.journal.queue import JournalQueue
from quire.replication.wire import GroupAt, GroupNames, PositionFrame, TailerAt, TailerVersions

_log = logging.getLogger("quire")
_REPLICATED: Final = "replicated:"
_PREFIX: Final = f"index.{_REPLICATED}"
_VERSION: Final = ".version"
_NAME_LIMIT: Final = 512
_ENDLESS: Final = (1 << 63) - 1


class Positions(NamedTuple):
    """
    The positions of the readers of a source's queue.

    Attributes:
        tailers: Index and version of each named tailer whose name begins with ``replicated:``.
        groups: The state of each consumer group; None if its side file cannot be read.

    """

    tailers: Mapping[str, tuple[int, int]]
    groups: Mapping[str, bytes | None]


def positions_of(
    queue: JournalQueue, before: int = _ENDLESS, *, of_source: bool = False
) -> Positions:
    """
    Return the positions of the readers.

    Args:
        queue: The source's queue.
        before: The index after the last message sent to the sink: groups appear as if they had not
            read further.
        of_source: Whether the queue is a replica whose own groups are left out.

    """
    files = _kept(queue.path) if of_source else side_files(queue.path)
    groups = {file.stem: group_snapshot(file, before) for file in files}
    return Positions(_tailers_of(queue), groups)


def _tailers_of(queue: JournalQueue) -> dict[str, tuple[int, int]]:
    entries = dict(queue.table_entries())
    return {
        key.removeprefix("index."): (value, entries[key + _VERSION])
        for key, value in entries.items()
        if key.startswith(_PREFIX) and key + _VERSION in entries and len(key) < _NAME_LIMIT
    }


class SentPositions:
    """The positions that one sink knows."""

    def __init__(self) -> None:
        self._tailers: dict[str, tuple[int, int]] = {}
        self._groups: dict[str, bytes] = {}
        self._names: list[str] | None = None
        self._has_sent_tailers = False

    def all_tailers(self, found: Positions) -> Iterator[PositionFrame]:
        """Yield the list of tailers, once: the sink may have others from before it reconnected."""
        if not self._has_sent_tailers:
            self._has_sent_tailers = True
            yield TailerVersions({name: version for name, (_, version) in found.tailers.items()})

    def news(self, found: Positions, before: int) -> Iterator[PositionFrame]:
        """Yield changes; tailers beyond the messages sent to the sink come later."""
        names = sorted(found.groups)
        if names != self._names:
            self._names = names
            yield GroupNames(tuple(names))
        for name, state in found.groups.items():
            if state is not None and self._groups.get(name) != state:
                self._groups[name] = state
                yield GroupAt(name, state)
        for name, (_, version) in [*self._tailers.items()]:
            # Deleted, and perhaps made again.
            if name not in found.tailers or found.tailers[name][1] < version:
                del self._tailers[name]
                yield TailerAt(name, None)
        for name, at in found.tailers.items():
            if self._tailers.get(name) != at and 0 < at[0] <= before:
                self._tailers[name] = at
                yield TailerAt(name, at)


class KeptPositions:
    """
    The positions that a sink stores in its copy.

    Args:
        queue: The copy.

    """

    def __init__(self, queue: JournalQueue) -> None:
        self._queue = queue
        self._waiting: dict[str, bytes] = {}  # consumers of the copy's own have these groups
        self._in_use: dict[str, tuple[int, int] | None] = {}  # tailers that are read with here
        self._warned = set[str]()
        self._names: tuple[str, ...] | None = None

    def keep(self, frames: list[PositionFrame]) -> None:
        """
        Store what a source sent: may take long.

        Raises:
            ReplicationError: The source sent data that is not the position of a reader.

        """
        states = dict(self._waiting)
        try:
            for name, at in [*self._in_use.items()]:
                if self._is_deleted(name):
                    self._keep_tailer(name, at)
            for frame in frames:
                match frame:
                    case TailerAt(name, at):
                        self._keep_tailer(name, at)
                    case TailerVersions(versions):
                        self._delete_tailers_not_in(versions)
                    case GroupAt(name, state):
                        states[name] = state
                    case GroupNames(names):
                        self._names = names
            if self._names is not None:
                states = {name: state for name, state in states.items() if name in self._names}
                self._forget_others(self._names)
            self._keep_groups(states)
        except ValueError as error:
            text = "the source sent a position that cannot be stored"
            raise ReplicationError(f"{text}: path={self._queue.path} reason={error}") from None

    def _keep_tailer(self, name: str, at: tuple[int, int] | None) -> None:
        if not name.startswith(_REPLICATED):
            raise ValueError(f"not the name of a replicated tailer: {name!r}")
        if name in self._in_use:
            self._in_use[name] = at
        elif at is None:
            self._is_deleted(name)
        elif not keep_tailer(self._queue, name, *at) and self._was_moved(name, at[1]):
            if self._is_deleted(name):
                keep_tailer(self._queue, name, *at)
            else:
                self._in_use[name] = at

    def _was_moved(self, name: str, version: int) -> bool:
        """Return whether a tailer has read here beyond its position at the source."""
        own = _tailers_of(self._queue).get(name)
        return own is not None and own[1] > version

    def _delete_tailers_not_in(self, versions: Mapping[str, int]) -> None:
        """Delete the tailers that the source has deleted, including those that it re-created."""
        self._in_use.clear()
        for name, (_, version) in _tailers_of(self._queue).items():
            if version > versions.get(name, -1) and self._is_deleted(name):
                _log.info(
                    "the source has deleted a tailer: name=%s path=%s", name, self._queue.path
                )

    def _is_deleted(self, name: str) -> bool:
        """Delete a tailer of the source; return False while it is open locally."""
        try:
            self._queue.delete_tailer(name)
        except TailerInUseError as error:
            self._in_use.setdefault(name, None)
            if name not in self._warned:
                self._warned.add(name)
                text = "a tailer of the source is open in the replica"
                hint = "its position at the source is stored once it is closed here"
                _log.warning(
                    "%s: name=%s pid=%d path=%s (%s)", text, name, error.pid, self._queue.path, hint
                )
            return False
        self._in_use.pop(name, None)
        self._warned.discard(name)
        return True

    @property
    def is_waiting(self) -> bool:
        """Whether local consumers use a group of the source, or local tailers a name."""
        return bool(self._waiting or self._in_use)

    def _forget_others(self, names: tuple[str, ...]) -> None:
        for file in side_files(self._queue.path):
            if file.stem not in names and group_forget(file):
                _log.info("a group was deleted by the source: group=%s path=%s", file.stem, file)

    def _keep_groups(self, states: Mapping[str, bytes]) -> None:
        waiting = dict[str, bytes]()
        for name, state in states.items():
            file = side_file(self._queue.path, name)
            if group_keep(self._queue.path, name, state, file_mode=_mode_of(self._queue, file)):
                continue
            waiting[name] = state
            if name not in self._waiting:
                text = "the source has a group of this name, which consumers of the replica use"
                _log.warning(
                    "%s: group=%s path=%s (it is replaced by the source's group once they leave)",
                    text,
                    name,
                    self._queue.path,
                )
        self._waiting = waiting


def take_groups(queue: JournalQueue) -> None:
    """Close the groups of a queue that becomes a replica."""
    for file in side_files(queue.path):
        if not group_is_kept(file):
            group_take(file, file_mode=_mode_of(queue, file))


def fit_groups(queue: JournalQueue, end: int) -> None:
    """Cut the stored groups of a replica that lost messages off at its end."""
    for file in _kept(queue.path):
        found = group_backlog(file)
        if found is not None and found[0] > end:
            _store(queue, file, end)


def free_groups(queue: JournalQueue, *, is_exact: bool = False) -> None:
    """
    Open the groups of a promoted replica for consumers.

    Args:
        queue: The replica, while appends are refused.
        is_exact: Whether the source had closed its groups before it sent their states: otherwise
            messages of the replica may have been delivered meanwhile.

    """
    end = end_of(queue)
    for file in _kept(queue.path):
        _store(queue, file, end, kept=False, known=0 if is_exact else end)


def _store(queue: JournalQueue, file: Path, end: int, *, kept: bool = True, known: int = 0) -> None:
    """Create a side file again, with its state of the messages before an index."""
    state = group_snapshot(file, end)
    if state is not None:
        mode = _mode_of(queue, file)
        group_keep(queue.path, file.stem, state, kept=kept, known=known, file_mode=mode)


def _mode_of(queue: JournalQueue, file: Path) -> int:
    with suppress(OSError):
        return file.stat().st_mode & 0o777
    options: dict[str, Any] = getattr(queue, "_options", {})
    return int(options.get("file_mode", 0o600))


def has_kept_groups(queue: JournalQueue) -> bool:
    """Return whether some groups of a queue are closed, like the source's groups in a replica."""
    return bool(_kept(queue.path))


def _kept(path: str) -> list[Path]:
    found = list[Path]()
    for file in side_files(path):
        with suppress(QuireError):
            if group_is_kept(file):
                found.append(file)
    return found


def end_of(queue: JournalQueue) -> int:
    """Return the index after the last message; 0 if there is none."""
    last = queue.last_index
    return 0 if last is None else last + 1
