"""The entry of a cycle, in the metadata of its file and in the manifest of its topic."""

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
"""Of the files that are written now: readers prune by no float column."""

_FILE: Final = re.compile(r"[^./\0][^/\0]*\.parquet")


@dataclass(frozen=True, slots=True)
class Entry:
    """
    A cycle that is in the archive.

    Attributes:
        cycle: Its number.
        file: The name of its Parquet file.
        messages: How many it has.
        rows: How many rows they became: more, where one message holds several calls.
        misfits: How many rows have no typed columns, and the reason in ``_error``.
        first_index: Its first message's index; None if it has none.
        last_index: Its last message's.
        digest: SHA-256 over the indexes, lengths and payloads of its messages.
        payload_bytes: The length of all payloads together.
        ended: Whether an end-of-file marker closed it; else it was left for newer ones.
        previous: The cycle before it that had a file then; None if it was the oldest.
        decoding: The place, in the list of the topic, of what its typed columns are.
        sha256: Of the file; it stands in the list alone.
        size: The file's length, in the list alone, too; 0 in lists of earlier versions.
        past: The sequence after its last message, where that is not how many it has.
        layout: How its file is made: 0 is that of earlier versions, with the minimum and maximum of
            float columns, which leave NaN out.

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
        Return the entry in a JSON object; fields of later versions are skipped.

        Raises:
            ValueError: The JSON is not an entry that a run writes.

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
        """Return the file's own metadata, with more *about* its queue."""
        values = {**about, **self.to_json()}
        del values["sha256"], values["size"]
        return {METADATA_KEY: json.dumps(values).encode()}

    @property
    def end(self) -> int:
        """The sequence after its last message."""
        return self.messages if self.past is None else self.past

    @property
    def recorded(self) -> Entry:
        """The entry as its file holds it, without what earlier versions do not list."""
        return replace(self, sha256="", size=0, layout=0)


def completed(entry: Entry, file: Path) -> Entry:
    """Return an entry with the facts that only the manifest holds: its file's hash and size."""
    return replace(entry, sha256=sha256_of(file), size=file.stat().st_size)
