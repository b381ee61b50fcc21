"""The entry of a cycle, stored in the metadata of its file and in the manifest of its topic."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from quire.archive.digest import sha256_of

METADATA_KEY: Final = b"quire"
LAYOUT: Final = 1
"""The layout of files that are written now: without statistics of float columns."""

_FILE: Final = re.compile(r"[^./\0][^/\0]*\.parquet")


@dataclass(frozen=True, slots=True)
class Entry:
    """
    A cycle in an archive.

    Attributes:
        cycle: The number of the cycle.
        file: The name of its Parquet file.
        messages: The number of messages.
        rows: The number of rows: larger than *messages* if a message holds several calls.
        misfits: The number of malformed rows, which have null typed columns and the reason in
            ``_error``.
        first_index: The index of the first message; None if there is none.
        last_index: The index of the last message; None if there is none.
        digest: SHA-256 over the indexes, lengths and payloads of the messages.
        payload_bytes: The total length of the payloads.
        ended: Whether an end-of-file marker closed the cycle; otherwise a later cycle had messages.
        previous: The cycle before it that had a file then; None if it was the oldest.
        decoding: The position of its typed columns in the manifest's list of decodings.
        sha256: The SHA-256 of the file; only in the manifest.
        size: The file's length; only in the manifest, and 0 in manifests of earlier versions.
        past: The sequence after the last message; None if it equals *messages*.
        layout: The layout of the file: 0 is that of earlier versions, with the minimum and maximum
            of float columns, which ignore NaN.

    Examples:
        >>> import quire.archive
        >>> for entry in quire.archive.archive("orders", "archive").entries:
        ...     print(entry.cycle, entry.messages, entry.file)

    """

    cycle: int
    file: str
    messages: int
    rows: int
    misfits: int
    first_index: int | None
    last_index: int | None
    digest: str
    payload_bytes: int
    ended: bool
    previous: int | None
    decoding: int = 0
    sha256: str = ""
    size: int = 0
    past: int | None = None
    layout: int = 0

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> Entry:
        """
        Return the entry in a JSON object; fields of later versions are ignored.

        Raises:
            ValueError: The JSON object is not an entry of an archive.

        """
        found = cls(**{it.name: known[it.name] for it in fields(cls) if it.name in known})
        numbers = (found.cycle, found.messages, found.rows, found.misfits, found.size, found.layout)
        if not all(type(it) is int and it >= 0 for it in (*numbers, found.decoding)):
            raise ValueError(f"numbers: cycle={found.cycle!r} messages={found.messages!r}")
        if type(found.file) is not str or not _FILE.fullmatch(found.file):
            raise ValueError(f"not the plain name of a Parquet file: file={found.file!r}")
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the entry as a JSON object for :meth:`of`."""
        absent = {"past": None, "layout": 0}
        return {k: it for k, it in asdict(self).items() if k not in absent or it != absent[k]}

    def metadata(self, about: Mapping[str, Any]) -> dict[bytes, bytes]:
        """Return the metadata for the file itself, including facts *about* the queue."""
        values = {**about, **self.to_json()}
        del values["sha256"], values["size"]
        return {METADATA_KEY: json.dumps(values).encode()}

    @property
    def end(self) -> int:
        """The sequence after the last message."""
        return self.messages if self.past is None else self.past

    @property
    def recorded(self) -> Entry:
        """The entry as its file stores it, without fields that only the manifest has."""
        return replace(self, sha256="", size=0, layout=0)


def completed(entry: Entry, file: Path) -> Entry:
    """Return an entry with the fields that only the manifest has: the file's hash and size."""
    return replace(entry, sha256=sha256_of(file), size=file.stat().st_size)
