"""
Appending staged messages, each batch once.

The driver commits, under one lock per queue (the file `lock` in `.quire-sink`):

1. complete batches that an earlier writer left unfinished;
2. if the batch is recorded as done, this is a repetition: drop the staged messages;
3. write `manifest.json`: the parts in order, and the queue's last index;
4. append the parts in chunks. Before each chunk, without releasing the queue's write lock in
   between, write a metadata document, the mark: the manifest's token, the part, the row, and the
   number of messages that follow;
5. sync the queue, and record the batch as done in `done.json`;
6. remove the manifest, then the parts.

After a crash before step 3, the queue is unchanged, and the writer repeats the batch. From step 3
on, the next writer completes the batch: the last mark after the manifest's index names the last
chunk, and the messages after the mark that equal the staged ones are already in the queue.

Files in `.quire-sink` are not trusted: see `sink_manifest` and `quire._common.durable`.
"""

from __future__ import annotations

import bisect
import contextlib
import logging
from collections.abc import Generator, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from quire._common import arguments
from quire._common.durable import Access, SafeFolder
from quire._common.file_identity import identity_at
from quire._native import entry_bytes
from quire.errors import (
    AppendLockedError,
    CorruptError,
    CycleFullError,
    EncryptionError,
    LockHeldError,
    LockLostError,
    LockTimeoutError,
    QuireError,
    TableLostError,
    UnfinishedWriteError,
    UnsafePathError,
)
from quire.maintenance.sink_writes import FOLDER, MANIFEST
from quire.opening.discovery import lost
from quire.opening.opener import open as open_queue
from quire.opening.options import WaitOptions
from quire.sealed.key_file import cipher_of, is_encrypted
from quire.sealed.key_ring import KeyRing, default_ring, ring_of
from quire.sealed.key_source import KeySource
from quire.staged.batch_target import NO_KEY, Target
from quire.staged.records import last_done, record, sweep
from quire.staged.sink_manifest import Manifest, is_begun, unfinished
from quire.staged.staging import Part, Staging, check_key, messages_of

if TYPE_CHECKING:
    from quire._native import Cipher, ReadDocument
    from quire.handles.journal.appender import JournalAppender
    from quire.handles.journal.queue import JournalQueue

CHUNK_ROWS: Final = 8192
CHUNK_BYTES: Final = 4 << 20
BLOCK_BYTES: Final = 64 << 20
"""By how much the queue's files grow, unless another amount is requested."""

_MARK: Final = "quireSink"
_MARK_START: Final = entry_bytes(_MARK, "")[:-1]
_LOCK: Final = "lock"
_WAIT: Final = WaitOptions(eof_grace_s=0.0)
"""For every commit: with another grace time, an unfinished batch might not be found."""
_PASSING: Final = (
    AppendLockedError,
    CycleFullError,
    LockLostError,
    LockTimeoutError,
    TableLostError,
)

_log = logging.getLogger("quire")


class StagedRow(NamedTuple):
    """The place of a staged message: the number of its part, and its row there."""

    part: int
    row: int


class _Open(NamedTuple):
    """A queue whose sink lock this process holds."""

    target: Target
    queue: JournalQueue
    root: SafeFolder
    ring: KeyRing | None
    cipher: Cipher | None


def commit(
    target: Target, writer: str, batch: int, parts: Sequence[Part], *, kept: bool = True
) -> bool:
    """
    Append a batch exactly once, however often it is repeated.

    Args:
        target: The queue.
        writer: The name of the writer; each writer numbers its own batches.
        batch: The number of the batch.
        parts: The staged parts.
        kept: Whether to keep the record that the batch is done; False: it is never repeated.

    Returns:
        Whether the batch was new; if not, its parts were dropped.

    Raises:
        AppendLockedError: The queue is a replica, or the lease of its source is over. If nothing
            was appended, nothing remains to be completed.
        CorruptError: The writer's record is damaged, or was not made with a key of the queue.
        TableLostError: The queue's directory was renamed, removed or replaced meanwhile.
        UnfinishedWriteError: An earlier write cannot be completed.
        UnsafePathError: The side files of the queue were not made by a sink.
        EncryptionError: The key does not open the queue, or a part.
        OSError: The system refused to append, for example because the disk is full; the next commit
            appends what is missing.

    """
    ordered = sorted(parts, key=lambda part: part.partition)
    if ordered and target.location is None and not target.folder.exists():
        raise lost(target.path)  # with what was staged: no queue is made in its place
    with opened(target) as found:
        _finish_all(found)
        is_new = _is_new(found, writer, batch)
        if is_new and ordered:
            _check_staged(found, writer, batch, ordered)
            manifest = Manifest(
                writer=writer,
                batch=batch,
                token=uuid4().hex,
                after=found.queue.last_index,
                parts=ordered,
                kept=kept,
                block_bytes=found.queue.block_bytes,
                elsewhere=target.location is not None,
            )
            with found.root.made(writer) as own, own.made(str(batch)) as folder:
                folder.replace(MANIFEST, manifest.to_json(found.cipher))
            with _with_remedy(found, manifest), _undone_if_locked(found, manifest):
                _append(found, manifest, StagedRow(0, 0))
            record(found.root, manifest, found.cipher)
        _sweep(found, writer, batch, all_of_it=not kept)
    return is_new


def _is_new(found: _Open, writer: str, batch: int) -> bool:
    """Return whether a batch is to be appended; log if a later batch is already done."""
    done = last_done(found.root, writer, found.cipher)
    if batch < done:
        _log.warning(
            "a batch is dropped, because a later one is recorded as done: path=%s writer=%s"
            " batch=%d done=%d",
            *(found.target.path, writer, batch, done),
        )
    return batch > done


def _check_staged(found: _Open, writer: str, batch: int, parts: Sequence[Part]) -> None:
    """
    Check that all parts of a batch exist and can be decrypted, before the first append.

    Raises:
        EncryptionError: No key opens a part; nothing was appended.
        UnfinishedWriteError: A part is missing; nothing was appended.

    """
    target = found.target
    place = target.staging.batch(writer, batch)
    missing = parts[0].file
    with contextlib.suppress(FileNotFoundError), place.opened() as folder:
        missing = next((it.file for it in parts if folder.stat(it.file) is None), "")
        if not missing and found.ring is not None:
            for part in parts:
                check_key(folder, part, found.ring)
    if missing:
        raise UnfinishedWriteError(
            "a staged part of the write was removed, nothing was appended:"
            f" file={place.path / missing} path={target.path} writer={writer} batch={batch}"
        )


def abort(target: Target, writer: str, batch: int) -> None:
    """Remove the staged parts of a batch, unless appending has begun."""
    with contextlib.suppress(FileNotFoundError), _records(target).opened() as root:
        if is_begun(root, writer, batch):
            return
    with (
        contextlib.suppress(FileNotFoundError),
        target.staging.opened() as root,
        root.sub(writer) as folder,
    ):
        folder.remove(str(batch))


def finish(
    path: str | PathLike[str],
    *,
    staging_location: str | None = None,
    key: bytes | KeyRing | None = None,
) -> int:
    """
    Complete writes to a queue that were interrupted while the driver appended.

    The next write would do so too.

    Args:
        path: The queue.
        staging_location: The ``stagingLocation`` of those writes, if they had one.
        key: The key of an encrypted queue, 32 bytes or a key ring; None: that of
            :meth:`KeyRing.as_default`.

    Returns:
        The number of writes completed.

    Raises:
        EncryptionError: The queue is encrypted, and the key is missing or wrong.
        UnfinishedWriteError: The staged parts of a batch were removed.

    Examples:
        >>> import quire.spark
        >>> quire.spark.finish("orders")
        0

    """
    place = arguments.path("path", path)
    location = arguments.optional(arguments.path)("staging_location", staging_location)
    given = default_ring() if key is None and is_encrypted(place) else key
    return _finish(place, location, NO_KEY if given is None else ring_of(given))


def _finish(path: str, location: str | None, key: KeyRing | KeySource) -> int:
    if not Target(path, location=location).folder.exists():
        return 0
    with opened(Target.existing(path, location=location, key=key)) as found:
        return _finish_all(found)


def has(
    path: str,
    writer: str,
    batch: int,
    *,
    staging_location: str | None = None,
    key: KeySource = NO_KEY,
) -> bool:
    """
    Return whether a writer's batch is in a queue, after completing unfinished writes.

    Raises:
        CorruptError: The writer's record is damaged, or was not made with a key of the queue.
        EncryptionError: The queue is encrypted, and the key is missing or wrong.
        UnfinishedWriteError: The staged parts that complete the batch were removed.

    """
    if not Path(path, FOLDER).exists():
        return False
    target = Target(path, key=key)
    cipher = _cipher(target, target.ring())
    with _records(target).opened() as root:
        if unfinished(root):
            _finish(path, staging_location, key)
        return last_done(root, writer, cipher) >= batch


@contextlib.contextmanager
def opened(target: Target) -> Generator[_Open]:
    """Take the sink lock of a queue, and open the queue."""
    ring = target.ring()
    cipher = _cipher(target, ring)  # refuses a wrong key before anything is created
    with _records(target).made() as root, _only_one(target, root):
        _check_place(target, root)
        root.sweep()
        options = _options(target, root, cipher)
        if cipher is not None:
            options["allow_plain"] = True  # plain messages of other writers are skipped
        options["read_after_replica_acknowledged"] = False  # else its own rows are not found again
        with open_queue(
            target.path, format="chronicle", buffer_mode="none", key=ring, **options
        ) as queue:
            _check_place(target, root)
            yield _Open(target, queue, root, ring, _cipher(target, ring))


def _check_place(target: Target, root: SafeFolder) -> None:
    """
    Check that the records are those of the queue at the path.

    Raises:
        TableLostError: The directory was replaced, perhaps while the lock was waited for.

    """
    if identity_at(target.folder, follow_links=False) != root.identity:
        raise lost(target.path)


def _cipher(target: Target, ring: KeyRing | None) -> Cipher | None:
    """Return a cipher with the queue's data keys; None if there is no encrypted queue."""
    return cipher_of(target.path, ring) if ring is not None and is_encrypted(target.path) else None


def _records(target: Target) -> Staging:
    """Return the folder of records, which is in the queue's directory."""
    return Staging(target.path, FOLDER, Access.of(target.path))


@contextlib.contextmanager
def _only_one(target: Target, root: SafeFolder) -> Generator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(root.locked(_LOCK, target.lock_timeout_s))
        except LockHeldError as error:
            raise LockTimeoutError(
                f"another write to the queue is in progress: path={target.path} pid={error.holder}"
                f" waited_s={target.lock_timeout_s:.0f}"
            ) from None
        yield


def _options(target: Target, root: SafeFolder, cipher: Cipher | None) -> dict[str, Any]:
    """Return the options to open the queue with, so that unfinished batches fit too."""
    asked = target.options.get("block_bytes") or BLOCK_BYTES
    for writer, batch in unfinished(root):
        asked = max(asked, _block_bytes(target, root, _manifest(root, writer, batch, cipher)))
    return {**target.options, "block_bytes": asked, "wait": _WAIT}


def _block_bytes(target: Target, root: SafeFolder, manifest: Manifest) -> int:
    """Return the block size of an unfinished batch, limited to what its parts can need."""
    with contextlib.suppress(FileNotFoundError), _parts_of(target, root, manifest) as folder:
        sizes = [found.st_size for it in manifest.parts if (found := folder.stat(it.file))]
        needed = 1 << (4 * max(sizes, default=0)).bit_length()
        return min(manifest.block_bytes, needed)
    return 0


def _manifest(root: SafeFolder, writer: str, batch: int, cipher: Cipher | None) -> Manifest:
    """
    Read the manifest of a batch.

    Raises:
        EncryptionError: The data key of the manifest cannot be opened.
        UnfinishedWriteError: The batch's manifest is damaged.

    """
    with root.sub(writer) as own, own.sub(str(batch)) as folder:
        try:
            return Manifest.read(folder, writer, batch, cipher)
        except (CorruptError, UnsafePathError) as error:
            raise UnfinishedWriteError(f"{error} {_giving_up(folder.path)}") from None


@contextlib.contextmanager
def _parts_of(target: Target, root: SafeFolder, manifest: Manifest) -> Generator[SafeFolder]:
    """
    Open the folder of a batch's parts: that of its manifest, or the user's staging location.

    Raises:
        FileNotFoundError: The folder does not exist.
        UnfinishedWriteError: The manifest names no folder: give *staging_location*.

    """
    if not manifest.elsewhere:
        with root.sub(manifest.writer) as own, own.sub(str(manifest.batch)) as folder:
            yield folder
        return
    if target.location is None:
        raise UnfinishedWriteError(
            f"an unfinished write was staged in another folder: path={target.path}"
            f" writer={manifest.writer} batch={manifest.batch} (name the folder: write with the"
            " option stagingLocation, or call quire.spark.finish(path, staging_location=...))"
        )
    with target.staging.batch(manifest.writer, manifest.batch).opened() as folder:
        yield folder


def _finish_all(found: _Open) -> int:
    count = 0
    for writer, batch in unfinished(found.root):
        manifest = _manifest(found.root, writer, batch, found.cipher)
        if batch > last_done(found.root, writer, found.cipher):
            with _with_remedy(found, manifest):
                start = _reached(found, manifest)
                _log.warning(
                    "completing an interrupted write: path=%s writer=%s batch=%d rows=%d"
                    " part=%d row=%d",
                    *(found.target.path, writer, batch, manifest.rows, *start),
                )
                _append(found, manifest, start)
            record(found.root, manifest, found.cipher)
            count += 1
        _sweep(found, writer, batch, all_of_it=not manifest.kept)
    return count


def _append(found: _Open, manifest: Manifest, start: StagedRow) -> None:
    """Append the parts from *start* on."""
    with (
        _parts_of(found.target, found.root, manifest) as folder,
        found.queue.appender() as appender,
    ):
        for number, part in enumerate(manifest.parts[start.part :], start.part):
            skipped = start.row if number == start.part else 0
            row = 0
            for messages in messages_of(folder, part, found.ring):
                length = len(messages)
                if skipped < row + length:
                    first = max(skipped - row, 0)
                    _append_array(appender, manifest.token, StagedRow(number, row), messages, first)
                row += length
        if found.target.sync:
            appender.sync()


@contextlib.contextmanager
def _undone_if_locked(found: _Open, manifest: Manifest) -> Generator[None]:
    """Forget a batch that the queue refused from its first message on, as a replica does."""
    try:
        yield
    except AppendLockedError:
        if _reached(found, manifest) == StagedRow(0, 0):
            _forget(found, manifest.writer, manifest.batch)
        raise


@contextlib.contextmanager
def _with_remedy(found: _Open, manifest: Manifest) -> Generator[None]:
    """Add a remedy to errors that a retry cannot solve."""
    try:
        yield
    except (*_PASSING, EncryptionError, UnfinishedWriteError):
        raise
    except FileNotFoundError as error:
        why = f"a staged part of an unfinished write was removed: file={error.filename}"
    except (QuireError, ValueError) as error:
        why = f"cannot complete an unfinished write: {error}"
    else:
        return
    folder = found.target.folder / manifest.writer / str(manifest.batch)
    raise UnfinishedWriteError(
        f"{why} path={found.target.path} writer={manifest.writer} batch={manifest.batch}"
        f" rows={manifest.rows} {_giving_up(folder)}"
    )


def _giving_up(folder: Path) -> str:
    return f"(to give up the rest of the write, remove {folder})"


def _append_array(
    appender: JournalAppender,
    token: str,
    start: StagedRow,
    messages: Any,  # noqa: ANN401 - a large_binary array
    first: int,
) -> None:
    """Append the messages of an array, which begins at *start*, from row *first* on, in chunks."""
    _, offsets, data = messages.buffers()
    ends = memoryview(offsets).cast("q")[messages.offset :]
    row, count = first, len(messages)
    while row < count:
        last = bisect.bisect_right(ends, ends[row] + CHUNK_BYTES, row + 1, count + 1) - 1
        end = min(max(last, row + 1), row + CHUNK_ROWS)
        appender._write_column(  # noqa: SLF001 - the package's own
            offsets,
            data or b"",
            count=end - row,
            start=messages.offset + row,
            wide=True,
            text=False,
            note=entry_bytes(_MARK, [token, start.part, start.row + row, end - row]),
        )
        row = end


def _check_still_there(queue: JournalQueue, manifest: Manifest) -> None:
    """
    Check that the marks of a batch can still be in the queue.

    Raises:
        UnfinishedWriteError: The cycle in which the batch began was deleted.

    """
    if manifest.after is None:
        return
    cycle, oldest = queue.roll_cycle.to_cycle(manifest.after), min(queue.cycles, default=None)
    if oldest is None or cycle < oldest:
        folder = Path(queue.path, FOLDER, manifest.writer, str(manifest.batch))
        raise UnfinishedWriteError(
            "the cycle in which a write began is gone, so it is unknown how much was appended:"
            f" cycle={cycle} path={queue.path} writer={manifest.writer} batch={manifest.batch}"
            f" rows={manifest.rows} {_giving_up(folder)}"
        )


def _reached(found: _Open, manifest: Manifest) -> StagedRow:
    """Find the first message of a batch that is not in the queue."""
    _check_still_there(found.queue, manifest)
    reached, left = StagedRow(0, 0), 0
    expected: Iterator[bytes] = iter(())
    with (
        _parts_of(found.target, found.root, manifest) as folder,
        found.queue.tailer() as tailer,
    ):
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
                        expected = _staged(folder, manifest, reached, found.ring)
                elif left and bytes(document.bytes) == next(expected, None):
                    reached, left = StagedRow(reached.part, reached.row + 1), left - 1
                else:
                    left = 0


def _mark_of(document: ReadDocument, token: str) -> tuple[StagedRow, int] | None:
    if bytes(document.bytes[: len(_MARK_START)]) != _MARK_START:
        return None
    found, part, row, count = document.map()[_MARK]
    return (StagedRow(part, row), count) if found == token else None


def _staged(
    folder: SafeFolder, manifest: Manifest, start: StagedRow, ring: KeyRing | None
) -> Iterator[bytes]:
    """Yield the messages of a part from *start* on."""
    row = 0
    for messages in messages_of(folder, manifest.parts[start.part], ring):
        if start.row < row + len(messages):
            yield from (it.as_py() for it in messages[max(start.row - row, 0) :])
        row += len(messages)


def _sweep(found: _Open, writer: str, batch: int, *, all_of_it: bool) -> None:
    """Remove files that are no longer needed: the manifest first, so that it is not read again."""
    _forget(found, writer, batch)
    sweep(found.root, writer, batch, all_of_it=all_of_it)
    if found.target.location is not None:
        with contextlib.suppress(FileNotFoundError), found.target.staging.opened() as root:
            sweep(root, writer, batch, all_of_it=all_of_it)


def _forget(found: _Open, writer: str, batch: int) -> None:
    """Remove the manifest of a batch."""
    with (
        contextlib.suppress(FileNotFoundError),
        found.root.sub(writer) as own,
        own.sub(str(batch)) as folder,
    ):
        folder.remove(MANIFEST)
