"""
Putting aside the end of a replica that differs from its source; nothing is deleted.

The file of the cycle with the first different message, and those of later cycles, are moved into
the folder ``aside`` of the queue, and a file with the earlier messages replaces the first.

1. that file is built in ``aside/.building``, and synced; 2. the folder is renamed to ``.built``,
with a note of the remaining steps; 3. the files are moved, the newest first; 4. the new file takes
its place; 5. the table forgets the moved cycles; 6. ``.built`` is removed. If it is killed before
2, nothing has changed; after that, the next sink, or a promotion, continues from there.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from quire._common.durable import SafeFolder
from quire._common.roll_file_names import COMPRESSED, side_files, uncompressed
from quire._native import BatchReader, BatchWriter
from quire.errors import CorruptError, QuireError, UnsafePathError
from quire.handles.journal.queue import JournalQueue
from quire.opening.opener import open_without_key as open_queue
from quire.replication import layout
from quire.replication.epochs import cut
from quire.sealed.needed_files import bring_needed

FOLDER: Final = "aside"
"""The folder of a queue that holds the parts put aside, each a queue of its own."""

_log = logging.getLogger("quire")
_BUILDING: Final = ".building"
_BUILT: Final = ".built"
_NOTE: Final = "aside.json"
_NOTE_LIMIT: Final = 4096
_MOST_PARTS: Final = 10_000
_BATCH_BYTES: Final = 256 << 10
_HEAD: Final = struct.Struct("<qIII")
_RETENTION_LOCK: Final = "quire.retention.lock"
_RETENTION_S: Final = 600.0


class PutAside(NamedTuple):
    """
    A part of a replica that was put aside.

    Attributes:
        folder: The queue that now holds the messages, and the earlier ones of its first cycle.
        first_index: The index of the first message that differed.
        messages: How many messages were put aside, as far as they could be counted.

    """

    folder: Path
    first_index: int
    messages: int


@dataclass(frozen=True, slots=True)
class _Note:
    """The remaining steps, as recorded in ``.built``."""

    index: int
    name: str
    folder: str
    messages: int
    is_built: bool


def put_aside(
    path: str | PathLike[str], index: int, options: Mapping[str, Any] | None = None
) -> PutAside:
    """
    Put aside the messages from an index on: the queue then ends before it.

    Appends are refused from then on: this takes the append lock, as a sink does, and keeps it.

    Args:
        path: The queue, which no sink of this process may have open.
        index: The index of the first message to put aside.
        options: Options of :func:`quire.open` for the queue and the file that is built.

    Raises:
        AppendLockedError: A sink keeps the queue.
        LockHeldError: Retention of the queue is running, and did not end in time.

    Examples:
        >>> from quire.replication.aside import put_aside
        >>> with quire.open("lone") as queue:
        ...     first, second = queue.appender().write_text("a"), queue.appender().write_text("b")
        >>> part = put_aside("lone", second)
        >>> part.messages, quire.open("lone", read_only=True).tailer().read_text()
        (1, 'a')
        >>> with quire.open(part.folder, read_only=True) as queue:
        ...     tailer = queue.tailer()
        ...     tailer.move_to_index(second), tailer.read_text()
        (True, 'b')

    """
    given = dict(options or {})
    with ExitStack() as stack:
        folder = stack.enter_context(SafeFolder.at(path))
        stack.enter_context(folder.locked(_RETENTION_LOCK, _RETENTION_S))
        queue = stack.enter_context(_opened(path, create=False, **given))
        writer = stack.enter_context(BatchWriter(queue))
        aside = stack.enter_context(folder.made(FOLDER))
        finished = _go_on(queue, writer, folder, aside)
        if finished is not None and finished.first_index <= index:
            return finished
        _build(queue, aside, index, given)
        done = _go_on(queue, writer, folder, aside)
    if done is None:  # another process removed it
        raise UnsafePathError(
            f"the folder being built has vanished: path={fspath(path)}/{FOLDER}/{_BUILT}"
        )
    return done


def finish(queue: JournalQueue, writer: BatchWriter) -> PutAside | None:
    """Complete a repair that was killed; return what it put aside, if there was one."""
    with SafeFolder.at(queue.path) as folder:
        if not folder.has(FOLDER):
            return None
        with folder.sub(FOLDER) as aside:
            if not aside.has(_BUILT):
                aside.remove(_BUILDING)
                return None
            with folder.locked(_RETENTION_LOCK, _RETENTION_S):
                return _go_on(queue, writer, folder, aside)


def _opened(path: str | PathLike[str], **options: Any) -> JournalQueue:  # noqa: ANN401
    return cast("JournalQueue", open_queue(path, **options))


def _build(queue: JournalQueue, aside: SafeFolder, index: int, options: dict[str, Any]) -> None:
    """Do steps 1 and 2."""
    aside.remove(_BUILDING)
    cycle = queue.roll_cycle.to_cycle(index)
    name = _file_name(queue, cycle)
    with aside.made(_BUILDING) as building:
        is_built = queue.roll_cycle.to_sequence(index) > 0
        if is_built:
            _copy_messages(queue, building, index, options)
        note = _Note(index, name, _new_name(aside, index), _counted(queue, index), is_built)
        building.replace(_NOTE, json.dumps(asdict(note)).encode())
        building.sync_tree()
    aside.publish(_BUILDING, _BUILT)


def _copy_messages(
    queue: JournalQueue, building: SafeFolder, index: int, options: dict[str, Any]
) -> None:
    """Copy the earlier messages of a message's cycle; their append times become the present."""
    start = queue.roll_cycle.to_index(queue.roll_cycle.to_cycle(index), 0)
    laid_out = layout.options_of(layout.of_queue(queue), options)
    with (
        _opened(building.path, **laid_out) as built,
        BatchWriter(built) as writer,
        queue.tailer(on_missing="raise") as tailer,
    ):
        reader = BatchReader(tailer, (start, 0, False))
        while batch := _still_open(reader.read(_BATCH_BYTES, until=index)):
            writer.apply(batch)
        writer.sync()


def _still_open(batch: bytes | None) -> bytes | None:
    """Return a batch without the flag that its cycle has ended; None if it has no documents."""
    if batch is None:
        return None
    first, metadata, count, _ = _HEAD.unpack_from(batch)
    return _HEAD.pack(first, metadata, count, 0) + batch[_HEAD.size :] if count else None


def _counted(queue: JournalQueue, index: int) -> int:
    with suppress(QuireError):  # damaged files are put aside as well
        end = queue.last_index
        return 0 if end is None or end < index else queue.count_excerpts(index, end + 1)
    return 0


def _new_name(aside: SafeFolder, index: int) -> str:
    for number in range(1, _MOST_PARTS):
        name = f"{index:x}" if number == 1 else f"{index:x}-{number}"
        if not aside.has(name):
            return name
    raise UnsafePathError(f"too many parts were put aside: path={aside.path} limit={_MOST_PARTS}")


def _go_on(
    queue: JournalQueue, writer: BatchWriter, folder: SafeFolder, aside: SafeFolder
) -> PutAside | None:
    """Do the remaining steps of 3 to 6."""
    if not aside.has(_BUILT):
        return None
    with aside.sub(_BUILT) as built:
        note = _note_in(built)
        with _cut_from(queue, note.index), aside.made(note.folder) as part:
            bring_needed(folder, part)
            _move_later(queue, folder, part, queue.roll_cycle.to_cycle(note.index))
            if not note.is_built or built.has(note.name):
                _move(folder, part, note.name)
            if built.has(note.name):
                built.move(note.name, folder, note.name)
            part.sync()
        folder.sync()
    writer.forget_from(note.index)
    _make_table(queue, aside.path / note.folder)
    aside.remove(_BUILT)
    aside.sync()
    done = PutAside(aside.path / note.folder, note.index, note.messages)
    _log.warning(
        "messages from the first difference from the source on were put aside: messages=%d"
        " first=%#x folder=%s",
        done.messages,
        done.first_index,
        done.folder,
    )
    return done


def _cut_from(queue: JournalQueue, index: int) -> AbstractContextManager[None]:
    """Void acknowledgements of messages from an index on, before these are removed."""
    return cut(queue.path, index - 1 if queue.roll_cycle.to_sequence(index) else None)


def _note_in(built: SafeFolder) -> _Note:
    content = built.read(_NOTE, _NOTE_LIMIT)
    try:
        found = _Note(**json.loads(content))
        numbers = (found.index, found.messages)
        if all(0 <= it < 1 << 63 for it in numbers) and found.name.endswith(".cq4"):
            return found
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    text = f"{_NOTE} does not say what is to be put aside: path={built.path}"
    hint = "move the folder away: the sink then compares again"
    raise CorruptError(f"{text} ({hint})", _NOTE, 0, repr(content[:64]), "a JSON object")


def _move_later(queue: JournalQueue, folder: SafeFolder, part: SafeFolder, cycle: int) -> None:
    queue.refresh()
    for later in reversed(queue.cycles):
        if later > cycle:
            _move(folder, part, _file_name(queue, later))


def _move(folder: SafeFolder, part: SafeFolder, name: str) -> None:
    """Move the file of a cycle, and its side files."""
    for each in (*side_files(name), name + COMPRESSED, name):
        with suppress(FileNotFoundError):
            folder.move(each, part, each)
    part.sync()
    folder.sync()


def _file_name(queue: JournalQueue, cycle: int) -> str:
    return uncompressed(queue.file_for_cycle(cycle).rpartition("/")[2])


def _make_table(queue: JournalQueue, path: Path) -> None:
    """Give the part a table of its own, if its files can be read."""
    try:
        _opened(path, **layout.options_of(layout.of_queue(queue), {})).close()
    except (QuireError, OSError, ValueError) as error:
        _log.warning("what was put aside has no table: path=%s reason=%s", path, error)
