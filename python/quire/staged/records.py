"""The records of the writers to a queue, and when they are removed."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Final

from quire._common.durable import SafeFolder
from quire._native import Cipher
from quire.errors import CorruptError, UnsafePathError
from quire.maintenance.sink_writes import DONE
from quire.staged.record_seals import check_seal, hidden, to_json
from quire.staged.sink_manifest import Manifest, is_count, numbered

_LONGEST: Final = 4096
_RECORDS_MAX: Final = 1000
_LEFT_OVER_S: Final = 7 * 24 * 3600


def last_done(root: SafeFolder, writer: str, cipher: Cipher | None) -> int:
    """
    Return the number of the writer's last batch that is in the queue; -1 if there is none.

    Args:
        root: The folder of the records.
        writer: The name of the writer.
        cipher: The cipher of an encrypted queue, without whose key no valid record can be made.

    Raises:
        CorruptError: The record is damaged, or was not made with a key of the encrypted queue.
        EncryptionError: The data key of the record cannot be opened.
        UnsafePathError: The record is not a regular file, or is too long.

    """
    try:
        with root.sub(writer) as folder:
            content = folder.read(DONE, _LONGEST)
    except FileNotFoundError:
        return -1
    try:
        found = json.loads(content)
        batch: int = found["batch"]
        if not is_count(batch):
            raise ValueError("batch is not a batch number")  # noqa: TRY301 - as those of JSON
        if cipher is not None:
            check_seal(found, _place(writer), cipher)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        file = str(root.path / writer / DONE)
        raise CorruptError(
            f"not a record of a sink: file={file} ({type(error).__name__}: {error!s:.200}; if the"
            " file is removed, batches that Spark repeats are appended again)",
            file,
        ) from None
    return batch


def record(root: SafeFolder, manifest: Manifest, cipher: Cipher | None) -> None:
    """Record that a batch is done."""
    token = manifest.token if cipher is None else hidden(manifest.token, cipher)
    values = {"batch": manifest.batch, "token": token, "rows": manifest.rows}
    with root.sub(manifest.writer) as folder:
        folder.replace(DONE, to_json(values, _place(manifest.writer), cipher))


def _place(writer: str) -> str:
    return f"{writer}/{DONE}"


def sweep(root: SafeFolder, writer: str, batch: int, *, all_of_it: bool) -> None:
    """Remove staged files of a batch and earlier ones, and from time to time old records."""
    with contextlib.suppress(FileNotFoundError), root.sub(writer) as folder:
        folder.sweep()
        for number in [it for it in numbered(folder) if it <= batch]:
            folder.remove(str(number))
    if all_of_it:
        root.remove(writer)
    if batch % 64 == 0:
        _sweep_old(root)


def _sweep_old(root: SafeFolder) -> None:
    """Remove the oldest records, and old staged files of writes that never completed."""
    long_ago = time.time() - _LEFT_OVER_S
    records: list[tuple[float, str]] = []
    for writer in root.folders():
        with contextlib.suppress(FileNotFoundError, UnsafePathError), root.sub(writer) as folder:
            for batch in map(str, numbered(folder)):
                if _changed(folder, batch) < long_ago:
                    folder.remove(batch)
            records.append((folder.changed, writer))
    for changed, writer in sorted(records)[:-_RECORDS_MAX]:
        if changed < long_ago and not _has_batches(root, writer):
            root.remove(writer)


def _changed(writer: SafeFolder, batch: str) -> float:
    """Return when the last file was staged for a batch."""
    try:
        with writer.sub(batch) as folder:
            inside = [it.st_mtime for name in folder.names() if (it := folder.stat(name))]
            return max([*inside, folder.changed])
    except FileNotFoundError:
        return 0.0


def _has_batches(root: SafeFolder, writer: str) -> bool:
    with root.sub(writer) as folder:
        return bool(numbered(folder))
