"""The schema of a queue, from a sample of its messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from quire._native import Queue, Seen, Tailer
from quire.ranges.cycles import runs_between

if TYPE_CHECKING:
    from quire._native import Sample

_STRETCHES: Final = 10
_TYPES: Final[dict[str, Any]] = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("ns"),
    "datetime": pa.timestamp("ns"),
    "instant": pa.timestamp("ns", "UTC"),
    "uuid": pa.binary(16),
}
_WITHOUT_TEXT: Final = {"bytes", "struct", "list"}
VALUE: Final = "value"


def inferred(
    queue: Queue, sample: int, *, as_text: bool
) -> tuple[Literal["fields", "value"], pa.Schema]:
    """Return what the messages are, and their columns: see :meth:`quire.Schema.infer`."""
    return inferred_of([queue], sample, as_text=as_text)


def inferred_of(
    queues: Iterable[Queue], sample: int, *, as_text: bool
) -> tuple[Literal["fields", "value"], pa.Schema]:
    """
    Return what the messages of several queues are, taken together; *sample* of each are looked at.

    One queue is asked for after the other, and none is used behind the next.

    Raises:
        ValueError: The queues are empty, or types are in conflict.
        WireError: A message does not decode.

    """
    seen, count = Seen(), 0
    paths: list[str] = []
    for queue in queues:
        paths.append(queue.path)
        with Tailer(queue) as tailer:
            for index, messages in stretches(queue, sample):
                if tailer.move_to_index(index):
                    count += seen.look(tailer, messages)
    if not count:
        raise ValueError(
            f"there is nothing to infer a schema from: path={', '.join(paths)} sample={sample}"
        )
    sorts, fields, _ = found = seen.found()
    if sorts == ["struct"]:
        return "fields", pa.schema([_field(name, inner, as_text=as_text) for name, inner in fields])
    return "value", pa.schema([_field(VALUE, found, as_text=as_text)])


def stretches(queue: Queue, sample: int) -> Iterator[tuple[int, int]]:
    """Yield first indexes and counts: *sample* messages, in stretches spread over the queue."""
    last = queue.last_index
    between = () if last is None else runs_between(queue, 0, last + 1)
    runs = [(run.first_index, run.count) for run in between]
    total = sum(count for _, count in runs)
    if total <= sample:
        yield from runs
        return
    pieces = min(_STRETCHES, sample)
    starts = [(total - sample // pieces) * piece // max(pieces - 1, 1) for piece in range(pieces)]
    before = 0
    for first, count in runs:
        for start in starts:
            if before <= start < before + count:
                yield first + start - before, sample // pieces
        before += count


def _field(name: str, seen: Sample, *, as_text: bool, path: str = "") -> pa.Field[Any]:
    path = f"{path}.{name}" if path else name
    sorts, fields, item = seen
    known = set(sorts) - {"empty"}
    if known == {"int", "float"}:
        known = {"float"}
    if not known:
        empty = "empty" in sorts
        return pa.field(name, pa.list_(pa.string()) if empty else pa.string())
    if len(known) > 1:
        if not as_text or known & _WITHOUT_TEXT or "empty" in sorts:
            raise ValueError(
                f"values of different types: field={path} types={', '.join(sorts)}"
                " (name the columns wanted in a Schema)"
            )
        return pa.field(name, pa.string())
    (sort,) = known
    if sort == "struct":
        inside = [_field(inner, of, as_text=as_text, path=path) for inner, of in fields]
        return pa.field(name, pa.struct(inside))
    if sort == "list" and item is not None:
        return pa.field(name, pa.list_(_field("item", item, as_text=as_text, path=path)))
    if "empty" in sorts:
        raise ValueError(f"values of different types: field={path} types={', '.join(sorts)}")
    return pa.field(name, _TYPES[sort])
