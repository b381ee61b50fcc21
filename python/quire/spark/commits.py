"""
Appending what tasks staged, each batch once.

The driver does it, under one lock for each queue (the file `lock` in `.quire-sink`):

1. finish what an earlier writer left half done;
2. if the batch is recorded as done, drop what was staged: it is a replay;
3. write `manifest.json`: the parts in their order, and the queue's last index;
4. append the parts in chunks. In front of each chunk, under the same hold of the queue's write
   lock, goes a metadata document, the mark: it tells the manifest, the part, the row, and how many
   messages follow;
5. sync the queue, and record the batch as done in `done.json`;
6. remove the manifest, then the parts.

A crash before 3 leaves nothing in the queue, and the batch comes again. From 3 on the batch is
finished by whoever comes next: the marks behind the manifest's index tell which chunk was last, and
as many messages behind its mark as equal the staged ones are there already.
"""

from __future__ import annotations

import bisect
import contextlib
import fcntl
import json
import logging
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

import quire
from quire._native import entry_bytes
from quire.durable import make_folder, replace
from quire.errors import CycleFullError, LockLostError, LockTimeoutError, QuireError
from quire.spark.staging import FOLDER, Part, Staging, messages_of, remove
from quire.spark.topics import stored_wire_type

CHUNK_ROWS: Final = 8192
CHUNK_BYTES: Final = 4 << 20
BLOCK_BYTES: Final = 64 << 20
"""What files grow by where nothing else was asked for."""

_MARK: Final = "quireSink"
_MARK_START: Final = entry_bytes(_MARK, "")[:-1]
_LOCK: Final = "lock"
_MANIFEST: Final = "manifest.json"
_DONE: Final = "done.json"
_LOCK_TIMEOUT_S: Final = 600.0
_LOCK_POLL_S: Final = 0.02
_RECORDS_MAX: Final = 1000
_LEFT_OVER_S: Final = 7 * 24 * 3600
_PASSING: Final = (CycleFullError, LockLostError, LockTimeoutError)

_log = logging.getLogger("quire")


class UnfinishedWriteError(QuireError):
    """A write stands half in the queue, and the rest cannot be appended: it says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """
    A queue that batches are appended to.

    Attributes:
        path: Its directory.
        options: What it is opened, or made, with.
        sync: Have each batch on the medium before it is recorded as done.

    """

    path: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sync: bool = True

    @property
    def folder(self) -> Path:
        """What is remembered of its writers."""
        return Path(self.path, FOLDER)


class Place(NamedTuple):
    """A message among those that were staged."""

    part: int
    row: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A batch that is to be in the queue."""

    writer: str
    batch: int
    token: str
    after: int | None
    """The queue's last index before it; None: there was no message."""
    parts: list[Part]
    kept: bool
    """Whether it is remembered that it was done."""
    block_bytes: int = 0
    """What the queue's files grow by, which says how long a message may be."""

    @property
    def rows(self) -> int:
        """How many messages it has."""
        return sum(part.rows for part in self.parts)

    @classmethod
    def read(cls, file: Path) -> Manifest:
        """Read one."""
        found = json.loads(file.read_text("utf-8"))
        return cls(**found | {"parts": [Part(*part) for part in found["parts"]]})


def commit(
    target: Target, writer: str, batch: int, parts: Sequence[Part], *, kept: bool = True
) -> bool:
    """
    Have a batch in the queue, once however often it comes.

    Args:
        target: The queue.
        writer: Who writes: batches are numbered by writer.
        batch: Its number.
        parts: What was staged.
        kept: Remember that it was done; else it is never asked for again.

    Returns:
        Whether the batch was new; if not, its parts were dropped.

    Raises:
        UnfinishedWriteError: An earlier write cannot be finished.
        OSError: The disk is full, or the like: what is missing is appended by the next commit.

    """
    ordered = sorted(parts, key=lambda part: part.partition)
    with opened(target) as queue:
        _finish_all(target, queue)
        folder = target.folder / writer
        is_new = batch > _last_done(folder)
        if is_new and ordered:
            after = queue.last_index
            manifest = Manifest(writer, batch, uuid4().hex, after, ordered, kept, queue.block_bytes)
            make_folder(folder / str(batch))
            replace(folder / str(batch) / _MANIFEST, json.dumps(asdict(manifest)).encode())
            with _told(target, manifest):
                _append(target, queue, manifest, Place(0, 0))
            _record(target, manifest)
        _sweep(target, writer, batch, ordered, all_of_it=not kept)
    return is_new


def abort(target: Target, staging: Staging, writer: str, batch: int) -> None:
    """Remove what was staged for a batch, unless its appending has begun."""
    if not (target.folder / writer / str(batch) / _MANIFEST).exists():
        remove(staging.batch(writer, batch))


def finish(path: str) -> int:
    """
    Append what is missing of writes to a queue that were cut short after their tasks were done.

    The next write does so too.

    Returns:
        How many there were.

    Raises:
        UnfinishedWriteError: What was staged is gone.

    """
    if not Target(str(path)).folder.exists():
        return 0
    target = Target(str(path), {"create": False, "wire_type": stored_wire_type(path)})
    with opened(target) as queue:
        return _finish_all(target, queue)


def has(path: str, writer: str, batch: int) -> bool:
    """
    Whether a writer's batch is in a queue; what was cut short is finished first.

    Raises:
        UnfinishedWriteError: What was staged for the rest of it is gone.

    """
    target = Target(path)
    if _unfinished(target):
        finish(path)
    return _last_done(target.folder / writer) >= batch


@contextlib.contextmanager
def opened(target: Target) -> Generator[quire.Queue]:
    """Open the queue, as the only one of its sinks."""
    make_folder(target.folder)
    with (target.folder / _LOCK).open("a") as lock:
        _take(lock, target)
        with quire.open(target.path, **_options(target)) as queue:
            yield queue


def _options(target: Target) -> dict[str, Any]:
    """Return what to open the queue with, so that what is unfinished goes into it too."""
    blocks = [Manifest.read(file).block_bytes for file in _unfinished(target)]
    if (asked := target.options.get("block_bytes") or BLOCK_BYTES) < max(blocks, default=0):
        asked = max(blocks)
    return {**target.options, "block_bytes": asked}


def _unfinished(target: Target) -> list[Path]:
    return sorted(target.folder.glob(f"*/*/{_MANIFEST}"))


def _take(lock: Any, target: Target) -> None:  # noqa: ANN401 - a file
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LockTimeoutError(
                    f"another write to the queue goes on: path={target.path}"
                    f" waited_s={_LOCK_TIMEOUT_S:.0f}"
                ) from None
            time.sleep(_LOCK_POLL_S)
        else:
            return


def _finish_all(target: Target, queue: quire.Queue) -> int:
    count = 0
    for file in _unfinished(target):
        manifest = Manifest.read(file)
        if manifest.batch > _last_done(target.folder / manifest.writer):
            with _told(target, manifest):
                place = _reached(queue, manifest)
                _log.warning(
                    "a write was cut short and is finished: path=%s writer=%s batch=%d rows=%d"
                    " part=%d row=%d",
                    *(target.path, manifest.writer, manifest.batch, manifest.rows, *place),
                )
                _append(target, queue, manifest, place)
            _record(target, manifest)
            count += 1
        _sweep(target, manifest.writer, manifest.batch, manifest.parts, all_of_it=not manifest.kept)
    return count


def _append(target: Target, queue: quire.Queue, manifest: Manifest, start: Place) -> None:
    """Append the parts from a place on."""
    with queue.appender() as appender:
        for number, part in enumerate(manifest.parts[start.part :], start.part):
            skipped = start.row if number == start.part else 0
            row = 0
            for messages in messages_of(part):
                length = len(messages)
                if skipped < row + length:
                    first = max(skipped - row, 0)
                    _append_array(appender, manifest.token, Place(number, row), messages, first)
                row += length
        if target.sync:
            appender.sync()


@contextlib.contextmanager
def _told(target: Target, manifest: Manifest) -> Generator[None]:
    """Tell what to do where trying again does not help."""
    try:
        yield
    except _PASSING:
        raise
    except FileNotFoundError as error:
        why = f"what was staged for a write is gone: file={error.filename}"
    except (QuireError, ValueError) as error:
        why = f"a write cannot be finished: {error}"
    else:
        return
    folder = target.folder / manifest.writer / str(manifest.batch)
    raise UnfinishedWriteError(
        f"{why} path={target.path} writer={manifest.writer} batch={manifest.batch}"
        f" rows={manifest.rows} (to give the rest of it up, remove {folder})"
    )


def _append_array(
    appender: quire.Appender,
    token: str,
    place: Place,
    messages: Any,  # noqa: ANN401 - a large_binary array
    first: int,
) -> None:
    """Append the messages of an array from the *first* on, which is at *place*, in chunks."""
    _, offsets, data = messages.buffers()
    ends = memoryview(offsets).cast("q")[messages.offset :]
    row, count = first, len(messages)
    while row < count:
        last = bisect.bisect_right(ends, ends[row] + CHUNK_BYTES, row + 1, count + 1) - 1
        end = min(max(last, row + 1), row + CHUNK_ROWS)
        appender.write_column(
            offsets,
            data or b"",
            count=end - row,
            start=messages.offset + row,
            wide=True,
            text=False,
            note=entry_bytes(_MARK, [token, place.part, place.row + row, end - row]),
        )
        row = end


def _reached(queue: quire.Queue, manifest: Manifest) -> Place:
    """Find the first message of a batch that is not in the queue."""
    reached, left = Place(0, 0), 0
    expected: Iterator[bytes] = iter(())
    with queue.tailer() as tailer:
        if manifest.after is None or not tailer.move_to_index(manifest.after):
            tailer.to_start()
        while True:
            with tailer.reading_document(include_metadata=True) as document:
                if not document.is_present:
                    return reached
                if document.is_metadata:
                    mark = _mark_of(document, manifest.token)
                    if mark is not None:
                        reached, left = mark
                        expected = _staged(manifest, reached)
                elif left and bytes(document.bytes) == next(expected):
                    reached, left = Place(reached.part, reached.row + 1), left - 1
                else:
                    left = 0


def _mark_of(document: quire.ReadDocument, token: str) -> tuple[Place, int] | None:
    if bytes(document.bytes[: len(_MARK_START)]) != _MARK_START:
        return None
    found, part, row, count = document.map()[_MARK]
    return (Place(part, row), count) if found == token else None


def _staged(manifest: Manifest, place: Place) -> Iterator[bytes]:
    """Yield the messages of a part from a place on."""
    row = 0
    for messages in messages_of(manifest.parts[place.part]):
        if place.row < row + len(messages):
            yield from (it.as_py() for it in messages[max(place.row - row, 0) :])
        row += len(messages)


def _last_done(folder: Path) -> int:
    """Return the number of the writer's last batch that is in the queue; -1: none is."""
    try:
        found: int = json.loads((folder / _DONE).read_text("utf-8"))["batch"]
    except FileNotFoundError:
        return -1
    return found


def _record(target: Target, manifest: Manifest) -> None:
    record = {"batch": manifest.batch, "token": manifest.token, "rows": manifest.rows}
    replace(target.folder / manifest.writer / _DONE, json.dumps(record).encode())


def _sweep(
    target: Target, writer: str, batch: int, parts: Sequence[Part], *, all_of_it: bool
) -> None:
    """Remove what is no longer needed: the manifest first, or it would be looked at again."""
    folder = target.folder / writer
    (folder / str(batch) / _MANIFEST).unlink(missing_ok=True)
    for staged in {*(Path(part.file).parent for part in parts), folder / str(batch)}:
        for name in [it for it in staged.parent.glob("[0-9]*") if int(it.name) <= batch]:
            remove(name)
    if all_of_it:
        for place in {*(Path(part.file).parent.parent for part in parts), folder}:
            remove(place)
    if batch % 64 == 0:
        for place in {*(Path(part.file).parents[2] for part in parts), target.folder}:
            _sweep_old(place)


def _sweep_old(root: Path) -> None:
    """Remove the oldest records, and what tasks left whose write never came to its end."""
    long_ago = time.time() - _LEFT_OVER_S
    records: list[tuple[float, Path]] = []
    for folder in root.iterdir():
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for batch in folder.glob("[0-9]*"):
                newest = max((it.stat().st_mtime for it in batch.iterdir()), default=0.0)
                if max(newest, batch.stat().st_mtime) < long_ago:
                    remove(batch)
            records.append((folder.stat().st_mtime, folder))
    for changed, folder in sorted(records)[:-_RECORDS_MAX]:
        if changed < long_ago and not any(folder.glob("[0-9]*")):
            remove(folder)
