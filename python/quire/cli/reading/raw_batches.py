"""Messages of a queue in batches, of any format, as the reading verbs take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import quire
from quire._common.terminal import escape_controls, escape_json, escape_line
from quire._native import Tailer, render_rows
from quire.cli.output.message_formats import encoded, readable_text
from quire.formats.adapters import adapter_of, numbering_of
from quire.formats.protocols import AnyQueue, AnyTailer
from quire.ranges.cycles import count_of, cycles_of
from quire.ranges.damage import Skipper

if TYPE_CHECKING:
    from quire._native import Buffer

BATCH: Final = 4_096
Columns: TypeAlias = tuple[Any, Any, Any]


class Batch:
    """
    Consecutive messages.

    Attributes:
        count: How many.
        columns: The buffers of their indexes, offsets and payloads.
        is_raw: Whether the format says nothing about the payloads.
        is_metadata: Whether they are metadata.

    """

    def __init__(  # noqa: PLR0913 - its columns
        self,
        count: int,
        indexes: Buffer | bytes,
        offsets: Buffer | bytes,
        data: Buffer | bytes,
        *,
        is_raw: bool = False,
        is_metadata: bool = False,
    ) -> None:
        """Take over the columns."""
        self.count = count
        self.columns: Columns = (indexes, offsets, data)
        self.is_raw = is_raw
        self.is_metadata = is_metadata
        self._data = memoryview(data)
        self._offsets = memoryview(offsets).cast("B").cast("i")
        self.indexes = memoryview(indexes).cast("B").cast("Q")

    @classmethod
    def of_one(
        cls, index: int, data: bytes, *, is_raw: bool = False, is_metadata: bool = False
    ) -> Batch:
        """Return a batch of one message."""
        offsets = b"".join(end.to_bytes(4, "little") for end in (0, len(data)))
        index_bytes = index.to_bytes(8, "little")
        return cls(1, index_bytes, offsets, data, is_raw=is_raw, is_metadata=is_metadata)

    def payload(self, row: int) -> memoryview:
        """Return the bytes of a message."""
        return self._data[self._offsets[row] : self._offsets[row + 1]]

    def excerpt(self, row: int) -> quire.Excerpt:
        """Return a message with its index."""
        return quire.Excerpt(self.indexes[row], bytes(self.payload(row)))

    def rendered(self, style: str, rows: range, *, with_index: bool) -> tuple[bytes, int]:
        """Return rows as printed, up to one that this style cannot show, and its number."""
        columns = (self.columns[0] if with_index else None, *self.columns[1:])
        text, stopped, is_plain = render_rows(style, columns, rows.start, rows.stop)
        if not is_plain:
            escape = escape_json if style == "jsonl" else escape_controls
            text = encoded(escape(text.decode()))
        return text, stopped

    def text(self, style: str, row: int) -> str:
        """Return one message as text, without its index."""
        data = self.payload(row)
        if style == "hex":
            return data.hex()
        if self.is_raw and (plain := _plain(data)) is not None:
            return _as_style(style, plain)
        text, stopped, _ = render_rows(style, (None, *self.columns[1:]), row, row + 1)
        if stopped == row:
            return _unreadable(style, bytes(data))
        found = text.decode()
        if style == "yaml":
            return escape_controls(found.removeprefix("---\n"))
        if style == "jsonl":
            return escape_json(found.removesuffix("\n"))
        return escape_line(found.removesuffix("\n")) if style == "text" else escape_controls(found)


def _plain(data: memoryview) -> str | None:
    """Return bytes that are printable text as such."""
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        return None
    return text if text == escape_controls(text) else None


def _as_style(style: str, text: str) -> str:
    import json

    if style == "jsonl":
        return escape_json(json.dumps(text, ensure_ascii=False))
    return escape_line(text) if style == "text" else text if text.endswith("\n") else f"{text}\n"


def _unreadable(style: str, data: bytes) -> str:
    """Return bytes that hold no values."""
    if style == "jsonl":
        return f'{{"bytes": "{data.hex()}"}}'
    if style == "text":
        return escape_line(data.decode("utf-8", "backslashreplace"))
    return readable_text(data)


def runs_of(rows: Sequence[int]) -> Iterator[range]:
    """Yield consecutive rows together."""
    if isinstance(rows, range) and rows.step == 1:
        yield rows
        return
    start = stop = -1
    for row in rows:
        if row != stop:
            if start >= 0:
                yield range(start, stop)
            start = row
        stop = row + 1
    if start >= 0:
        yield range(start, stop)


def next_batch(tailer: AnyTailer, size: int = BATCH) -> Batch:
    """Return up to *size* messages; an empty batch if there is none yet."""
    count, indexes, offsets, data = tailer._read_columns(size)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return Batch(count, indexes, offsets, data, is_raw=not adapter_of(tailer).is_wire)


def next_document(tailer: Tailer) -> Batch:
    """Return the next document, a message or metadata."""
    with tailer.reading_document(include_metadata=True) as document:
        if not document.is_present:
            return Batch(0, b"", bytes(4), b"")
        data = bytes(document.bytes)
        return Batch.of_one(document.index, data, is_metadata=document.is_metadata)


def backward(
    queue: AnyQueue, tailer: AnyTailer, start: int, end: int
) -> Iterator[tuple[Batch, range]]:
    """Yield the messages from *start* to *end* (exclusive), the last first: rows are descending."""
    for first, past in _blocks(queue, start, end):
        yield from _backward_within(tailer, first, past)


def _blocks(queue: AnyQueue, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of indexes, the last first, each of a batch at most."""
    numbering = numbering_of(queue)
    for cycle in reversed(cycles_of(queue)):
        low = max(start, numbering.to_index(cycle, 0))
        high = min(end, numbering.to_index(cycle, 0) + count_of(queue, cycle) * numbering.step)
        while low < high:
            first = max(low, high - BATCH * numbering.step)
            yield first, high
            high = first


def backward_past_damage(
    queue: AnyQueue, tailer: AnyTailer, start: int, end: int, skipper: Skipper
) -> Iterator[tuple[Batch, range]]:
    """Yield as :func:`backward` what can be read: each cycle is looked through from its start."""
    numbering = numbering_of(queue)
    for cycle in reversed(cycles_of(queue)):
        low = max(start, numbering.to_index(cycle, 0))
        high = min(end, numbering.to_index(cycle + 1, 0))
        with suppress(quire.errors.CorruptError):
            high = min(high, numbering.to_index(cycle, count_of(queue, cycle)))
        stretches = [*_readable(tailer, low, high, skipper)] if low < high else []
        for first, past in reversed(stretches):
            yield from _backward_within(tailer, first, past)


def _backward_within(tailer: AnyTailer, first: int, past: int) -> Iterator[tuple[Batch, range]]:
    """Yield the messages between two indexes, which are few, the last first."""
    tailer.move_to_index(first)
    for batch, count in reversed([*_until(tailer, past)]):
        yield batch, range(count - 1, -1, -1)


def _readable(
    tailer: AnyTailer, low: int, high: int, skipper: Skipper
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a cycle that can be read, each of a batch at most."""
    if not skipper.go_to(tailer, low):
        return
    past = low
    while past < high:
        try:
            batch = next_batch(tailer)
            if not batch.count:
                skipper.check_end(tailer.index)
                return
        except quire.errors.CorruptError as error:
            if skipper.skip(tailer, error):
                continue
            return
        indexes = [index for index in batch.indexes if index < high]
        if indexes:
            past = indexes[-1] + 1
            yield indexes[0], past
        if len(indexes) < batch.count:
            return


def _until(tailer: AnyTailer, past: int) -> Iterator[tuple[Batch, int]]:
    """Yield batches, and how many messages of each lie before an index."""
    while (batch := next_batch(tailer)).count:
        count = sum(index < past for index in batch.indexes)
        if count:
            yield batch, count
        if count < batch.count or batch.indexes[-1] + 1 >= past:
            return
