"""
The manifest of a batch: the messages that have to be in the queue once appending has begun.

Its path is `<writer>/<batch>/manifest.json`, in the folder of the writer's record. The path gives
writer and batch, and parts are named without a path, so that the manifest in a copy of the queue
refers to the copy. Its content is not trusted before it is checked, as the queue may come from
anywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from quire._common.durable import SafeFolder
from quire._native import Cipher
from quire.errors import CorruptError
from quire.maintenance.sink_writes import MANIFEST
from quire.staged.record_seals import check_seal, hidden, shown, to_json
from quire.staged.staging import Part

BATCH: Final = re.compile(r"0|[1-9][0-9]{0,17}")

_TOKEN: Final = re.compile(r"[0-9a-f]{32}")
FILE: Final = re.compile(r"part-[0-9]{5,10}-[0-9a-f]{32}\.arrow")
_INDEX_LIMIT: Final = 1 << 63
_BLOCK_LIMIT: Final = 4 << 30
_STORED: Final = ("token", "after", "parts", "kept", "block_bytes", "elsewhere")


@dataclass(frozen=True, slots=True)
class Manifest:
    """
    A batch that is being appended.

    Attributes:
        writer: The name of the writer.
        batch: The number of the batch.
        token: Identifies the marks of the batch in the queue; secret if the queue is encrypted, so
            that marks cannot be forged without a key.
        after: The queue's last index before the batch; None: there was no message.
        parts: The staged parts, in order.
        kept: Whether the record that the batch is done is kept.
        block_bytes: By how much the queue's files grow, which limits the length of messages.
        elsewhere: Whether the parts are in a ``stagingLocation``, which the user has to name.

    """

    writer: str
    batch: int
    token: str
    after: int | None
    parts: list[Part]
    kept: bool
    block_bytes: int = 0
    elsewhere: bool = False

    @property
    def rows(self) -> int:
        """The number of messages in the batch."""
        return sum(part.rows for part in self.parts)

    def to_json(self, cipher: Cipher | None = None) -> bytes:
        """Return the content of the file for :meth:`read`, without writer and batch."""
        values = {name: getattr(self, name) for name in _STORED}
        if cipher is not None:
            values["token"] = hidden(self.token, cipher)
        return to_json(values, f"{self.writer}/{self.batch}", cipher)

    @classmethod
    def read(
        cls, folder: SafeFolder, writer: str, batch: int, cipher: Cipher | None = None
    ) -> Manifest:
        """
        Read the manifest in the folder of a batch.

        Args:
            folder: The folder of the batch.
            writer: The name of the writer.
            batch: The number of the batch.
            cipher: The cipher of an encrypted queue, without whose key no valid manifest can be
                made.

        Raises:
            CorruptError: The file is not a manifest.
            EncryptionError: The data key of the manifest cannot be opened.
            UnsafePathError: The entry is a link or not a regular file.

        """
        try:
            found = json.loads(folder.read(MANIFEST))
            parts = [Part(*part) for part in found["parts"]]
            values: dict[str, Any] = {name: found[name] for name in _STORED} | {"parts": parts}
            if cipher is not None:
                check_seal(found, f"{writer}/{batch}", cipher)
                values["token"] = shown(found["token"], cipher)
            manifest = cls(writer, batch, **values)
            if (wrong := next(manifest._wrong(), None)) is None:
                return manifest
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            wrong = f"{type(error).__name__}: {error}"
        file = str(folder.path / MANIFEST)
        raise CorruptError(f"not a manifest of a sink: file={file} ({wrong})", file)

    def _wrong(self) -> Iterator[str]:
        """Yield values that no sink would have written."""
        for part in self.parts:
            if not _matches(FILE, part.file):
                yield f"not the plain name of a part's file: part={part.file!r}"
            if not is_count(part.partition) or not is_count(part.rows):
                yield f"a part's numbers: partition={part.partition!r} rows={part.rows!r}"
        if not _matches(_TOKEN, self.token):
            yield f"token={self.token!r}"
        if not (self.after is None or is_count(self.after)):
            yield f"after={self.after!r}"
        if not is_count(self.block_bytes) or self.block_bytes > _BLOCK_LIMIT:
            yield f"block_bytes={self.block_bytes!r}"
        if type(self.kept) is not bool or type(self.elsewhere) is not bool:
            yield f"kept={self.kept!r} elsewhere={self.elsewhere!r}"


def unfinished(root: SafeFolder) -> list[tuple[str, int]]:
    """
    Return writer and number of each batch that has a manifest, in order.

    Raises:
        UnsafePathError: Something other than a folder has the name of a batch's folder.

    """
    found: list[tuple[str, int]] = []
    for writer in root.folders():
        with suppress(FileNotFoundError), root.sub(writer) as folder:  # other processes may write
            numbers = [it for it in numbered(folder) if _is_begun(folder, it)]
            found += [(writer, batch) for batch in numbers]
    return found


def is_begun(root: SafeFolder, writer: str, batch: int) -> bool:
    """Whether a batch has a manifest."""
    try:
        with root.sub(writer) as folder:
            return _is_begun(folder, batch)
    except FileNotFoundError:
        return False


def _is_begun(writer: SafeFolder, batch: int) -> bool:
    try:
        with writer.sub(str(batch)) as folder:
            return folder.has(MANIFEST)
    except FileNotFoundError:
        return False


def numbered(folder: SafeFolder) -> list[int]:
    """Return the numbers of the batches that have a folder in that of a writer, in order."""
    return sorted(int(name) for name in folder.names() if BATCH.fullmatch(name))


def _matches(pattern: re.Pattern[str], found: Any) -> bool:  # noqa: ANN401 - from JSON
    return isinstance(found, str) and pattern.fullmatch(found) is not None


def is_count(found: Any) -> bool:  # noqa: ANN401 - from JSON
    """Return whether a value is a whole number from 0 to 2**63 - 1."""
    return type(found) is int and 0 <= found < _INDEX_LIMIT
