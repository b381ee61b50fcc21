"""The entry of a cycle, in the metadata of its file and in the manifest of its topic."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

METADATA_KEY: Final = b"quire"

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

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> Entry:
        """
        Return the entry that JSON holds; what later versions add is passed over.

        Raises:
            ValueError: It is none that a run would have made.

        """
        found = cls(**{it.name: known[it.name] for it in fields(cls) if it.name in known})
        numbers = (found.cycle, found.messages, found.rows, found.misfits, found.size)
        if not all(type(it) is int and it >= 0 for it in (*numbers, found.decoding)):
            raise ValueError(f"numbers: cycle={found.cycle!r} messages={found.messages!r}")
        if type(found.file) is not str or not _FILE.fullmatch(found.file):
            raise ValueError(f"not the plain name of a Parquet file: file={found.file!r}")
        return found

    def to_json(self) -> dict[str, Any]:
        """Return what :meth:`of` takes."""
        found = asdict(self)
        return found if self.past is not None else {k: found[k] for k in found if k != "past"}

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
        """The entry as its file holds it."""
        return replace(self, sha256="", size=0)
