"""The format of Indexed Chronicles, as the rest of the package uses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

from quire._native import IndexedQueue, IndexedTailer, VanillaExcerpt
from quire.errors import UnsupportedError
from quire.formats.adapter import Adapter, Explained, Piece
from quire.formats.detection import INDEXED as NAME
from quire.formats.numbering import Numbering

_ONE_CYCLE: Final = 62  # bits, so that every index is of cycle 0

WHY_NO_GROUPS: Final = "an Indexed Chronicle is only read: convert it"


class IndexedAdapter(Adapter[IndexedQueue]):
    """Indexed Chronicle: a file of the index and one of data. All is cycle 0."""

    name = NAME
    title = "Indexed Chronicle"
    handles = (IndexedQueue, IndexedTailer)
    is_written = False
    leaves_path_free = True
    why_no_groups = WHY_NO_GROUPS

    def open(self, path: str, *, read_only: bool = True) -> IndexedQueue:
        """Open a queue without options."""
        return IndexedQueue(path, read_only=read_only, create=not read_only)

    def appender(self, queue: IndexedQueue) -> NoReturn:
        """Refuse: its one writer knows no lock that would keep a second one out."""
        raise UnsupportedError(f"an Indexed Chronicle is only read: path={queue.path}")

    def tailer(self, queue: IndexedQueue) -> IndexedTailer:
        """Return a new tailer, at the first message."""
        return IndexedTailer(queue)

    def numbering(self, queue: IndexedQueue) -> Numbering:
        """Return how messages are numbered; gaps are possible."""
        del queue
        return Numbering(_ONE_CYCLE, is_dense=False)

    def cycles(self, queue: IndexedQueue) -> list[int]:
        """Return the one cycle, if there is a message."""
        return [] if queue.last_index is None else [0]

    def count(self, queue: IndexedQueue, cycle: int) -> int:
        """Return the number of index entries in use."""
        del cycle
        last = queue.last_index
        return 0 if last is None else last + 1

    def first_index(self, queue: IndexedQueue) -> int | None:
        """Return the index of the oldest message."""
        return queue.first_index

    def place(self, queue: IndexedQueue, cycle: int) -> Path:
        """Return the file of the index."""
        del cycle
        path = Path(queue.path)
        return path.with_name(f"{path.name}.index")

    def files(self, queue: IndexedQueue) -> list[Path]:
        """Return the file of the index and that of the data."""
        path = Path(queue.path)
        return [path.with_name(path.name + suffix) for suffix in (".index", ".data")]

    def pieces(self, queue: IndexedQueue) -> Iterator[Piece]:
        """Yield the file of the index and that of the data."""
        index, data = self.files(queue)
        yield Piece(index.name, [index], 0)
        yield Piece(data.name, [data], None)

    def excerpt(self, queue: IndexedQueue, index: int, data: bytes) -> VanillaExcerpt:
        """Return a message as a tailer would."""
        del queue
        return VanillaExcerpt(index, data)

    def options_like(self, queue: IndexedQueue) -> dict[str, Any]:
        """Return none: what is made of it is a Chronicle Queue."""
        del queue
        return {}

    def identity(self, queue: IndexedQueue) -> dict[str, Any]:
        """Return the format."""
        del queue
        return {"format": self.name}

    def explain(self, queue: IndexedQueue, index: int) -> Explained | None:
        """Refuse: nothing stands between messages."""
        del index
        raise UnsupportedError(
            "messages of an Indexed Chronicle are not explained, as nothing stands between them:"
            f" path={queue.path}"
        )


INDEXED = IndexedAdapter()
