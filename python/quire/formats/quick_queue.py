"""The format of Quick-Queues, as the rest of the package uses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from quire._native import QuickAppender, QuickExcerpt, QuickQueue, QuickTailer
from quire.errors import CorruptError
from quire.formats.adapter import Adapter, End, Explained, Piece, Snapshot, Verified
from quire.formats.detection import QUICK_QUEUE as NAME
from quire.formats.numbering import Numbering

_STEP: Final = 16


class QuickQueueAdapter(Adapter[QuickQueue]):
    """Quick-Queue: pages of an index over raw messages. A page stands for a cycle."""

    name = NAME
    title = "Quick-Queue"
    handles = (QuickQueue, QuickTailer, QuickAppender)
    has_unfinished = has_snapshots = True
    step = _STEP
    block_option = "page_bytes"

    def open(self, path: str, *, read_only: bool = True) -> QuickQueue:
        """Open a queue without options."""
        return QuickQueue(path, read_only=read_only, create=not read_only)

    def appender(self, queue: QuickQueue) -> QuickAppender:
        """Return a new appender."""
        return QuickAppender(queue)

    def tailer(self, queue: QuickQueue) -> QuickTailer:
        """Return a new tailer, at the first message."""
        return QuickTailer(queue)

    def numbering(self, queue: QuickQueue) -> Numbering:
        """Return how messages are numbered: by the place of an entry in the index."""
        return Numbering(queue.page_bytes.bit_length() - 1, _STEP, is_dense=False)

    def cycles(self, queue: QuickQueue) -> list[int]:
        """Return the pages with messages."""
        first, last = queue.first_index, queue.last_index
        if first is None or last is None:
            return []
        numbering = self.numbering(queue)
        return [*range(numbering.to_cycle(first), numbering.to_cycle(last) + 1)]

    def count(self, queue: QuickQueue, cycle: int) -> int:
        """Return the number of entries in use of a page."""
        numbering, last = self.numbering(queue), queue.last_index
        if last is None or cycle > numbering.to_cycle(last):
            return 0
        used = last + numbering.step - numbering.to_index(cycle, 0)
        return min(used, 1 << numbering.bits) // numbering.step

    def first_index(self, queue: QuickQueue) -> int | None:
        """Return the index of the oldest message."""
        return queue.first_index

    def place(self, queue: QuickQueue, cycle: int) -> Path:
        """Return the page of the index."""
        return Path(queue.path, f"{cycle}.{'qx' if queue.form == 'single' else 'qmx'}")

    def end(self, queue: QuickQueue, cycle: int) -> End:
        """Return where a page ends: it is full where another one follows."""
        return End(0, self.count(queue, cycle), ended=cycle + 1 in self.cycles(queue))

    def pieces(self, queue: QuickQueue) -> Iterator[Piece]:
        """Yield the pages of the index, which count messages, and those of data."""
        root = Path(queue.path)
        for pattern in ("*.qx", "*.qmx", "*.qd", "*/*.qd"):
            found = sorted(root.glob(pattern), key=lambda file: (file.parent, len(file.stem), file))
            for file in found:
                is_counting = file.suffix != ".qd" and file.stem.isdecimal()
                cycle = int(file.stem) if is_counting else None
                own = {"producer": None if file.parent == root else file.parent.name}
                yield Piece(file.relative_to(root).as_posix(), [file], cycle, own)

    def excerpt(self, queue: QuickQueue, index: int, data: bytes) -> QuickExcerpt:
        """Return a message as a tailer would."""
        del queue
        return QuickExcerpt(index, data)

    def sync(self, appender: QuickAppender) -> None:
        """Return when the queue is on the medium."""
        appender.force()

    def options_like(self, queue: QuickQueue) -> dict[str, Any]:
        """Return the format and the length of its pages."""
        return self.identity(queue)

    def identity(self, queue: QuickQueue) -> dict[str, Any]:
        """Return the format and the length of its pages."""
        return {"format": self.name, "page_bytes": queue.page_bytes}

    def properties(self, queue: QuickQueue) -> dict[str, Any]:
        """Return the length of its pages, and who writes it."""
        return {
            "format": self.name,
            "form": queue.form,
            "page_bytes": queue.page_bytes,
            "entries_per_page": queue.page_bytes // _STEP,
            "producers": sorted(file.stem for file in Path(queue.path).glob("*.qm")),
        }

    def verify(self, path: str) -> Verified:
        """Check each entry of the index; pages that do not fit together are one finding."""
        try:
            with self.open(path) as queue:
                return queue._verify()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        except CorruptError as error:
            found, expected = error.found or str(error), error.expected or "a page of this queue"
            return [("page", error.file or path, error.position, found, expected)], 1, 0, 0

    def snapshot(self, queue: QuickQueue) -> Snapshot:
        """Return what a consistent copy of a queue holds."""
        return Snapshot(*queue._snapshot())  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def explain(self, queue: QuickQueue, index: int) -> Explained | None:
        """Return what surrounds the bytes of a message."""
        return queue._explain(index)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


QUICK_QUEUE = QuickQueueAdapter()
