"""Infers the schema of a queue from a sample of its messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from quire._native import Seen
from quire.arrow.column_types import BY_VALUE
from quire.arrow.content import RowContent
from quire.arrow.names import VALUE
from quire.errors import WireError
from quire.formats.adapters import end_index_of, journal_tailer_of, numbering_of, tailer_of
from quire.formats.protocols import AnyQueue, AnyTailer
from quire.ranges.cycles import cycle_ranges

if TYPE_CHECKING:
    from quire._native import Sample

_RANGES: Final = 10
_NUMBERS: Final = {"whole": "int"}
"""Integers of more than 32 bits may be stored as floats, and are recognised by their size."""
_WITHOUT_TEXT: Final = {"bytes", "struct", "keyed", "list"}


def infer(
    queues: Iterable[AnyQueue], sample: int, *, as_text: bool, skip_errors: bool = False
) -> RowContent:
    """
    Infer one content for the messages of several queues, from *sample* messages of each.

    The queues are sampled one at a time: each may be closed when the next is requested. With
    *skip_errors*, messages that do not decode are ignored; if some messages are mappings, so are
    single values.

    Raises:
        ValueError: The queues are empty, or types conflict.
        WireError: A message does not decode.

    """
    seen, values, count = Seen(), Seen(), 0
    paths: list[str] = []
    for queue in queues:
        paths.append(queue.path)
        with tailer_of(queue) as tailer:
            for index, messages in sampled(queue, sample):
                if tailer.move_to_index(index):
                    if skip_errors:
                        count += _look_one_by_one(seen, values, tailer, messages)
                    else:
                        count += look(seen, tailer, messages)
    if not count:
        raise ValueError(
            f"no messages to infer a schema from: path={', '.join(paths)} sample={sample}"
        )
    sorts, fields, _ = found = seen.found() if seen.found()[0] else values.found()
    if _is_mapping(sorts):
        columns = [_field(name, inner, as_text=as_text) for name, inner in fields]
        return RowContent(pa.schema(columns))
    return RowContent(pa.schema([_field(VALUE, found, as_text=as_text)]), is_value=True)


def look(seen: Seen, tailer: AnyTailer, count: int) -> int:
    """Inspect up to *count* messages, and return how many there were."""
    if (journal := journal_tailer_of(tailer)) is not None:
        return seen.look(journal, count)
    payloads = tailer.read_many(count)
    for payload in payloads:
        seen.look_at(payload)
    return len(payloads)


def _look_one_by_one(mappings: Seen, values: Seen, tailer: AnyTailer, count: int) -> int:
    """Inspect those of *count* messages that decode, and return their number."""
    decoded = 0
    for payload in tailer.read_many(count):
        alone = Seen()
        with suppress(WireError):
            alone.look_at(payload)
            (mappings if _is_mapping(alone.found()[0]) else values).look_at(payload)
            decoded += 1
    return decoded


def _is_mapping(sorts: list[str]) -> bool:
    """Whether messages are mappings, whose keys that are not names do not become columns."""
    return "struct" in sorts and {*sorts} <= {"struct", "keyed"}


def sampled(queue: AnyQueue, sample: int) -> Iterator[tuple[int, int]]:
    """Yield first index and count of ranges across the queue, of *sample* messages in total."""
    step = numbering_of(queue).step
    between = cycle_ranges(queue, 0, end_index_of(queue))
    runs = [(run.first_index, run.count) for run in between]
    total = sum(count for _, count in runs)
    if total <= sample:
        yield from runs
        return
    pieces = min(_RANGES, sample)
    starts = [(total - sample // pieces) * piece // max(pieces - 1, 1) for piece in range(pieces)]
    before = 0
    for first, count in runs:
        for start in starts:
            if before <= start < before + count:
                yield first + (start - before) * step, sample // pieces
        before += count


def _field(name: str, seen: Sample, *, as_text: bool, path: str = "") -> pa.Field[Any]:
    path = f"{path}.{name}" if path else name
    sorts, fields, item = seen
    sorts = [*dict.fromkeys(_NUMBERS.get(sort, sort) for sort in sorts)]
    known = set(sorts) - {"empty"}
    if "keyed" in known:
        known.discard("struct")
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
    if sort == "keyed":
        inside = [*fields, *(() if item is None else [("value", item)])]
        values = [_field(*it, as_text=as_text, path=path) for it in inside]
        return pa.field(name, _map_of(values, path, as_text=as_text))
    if sort == "struct":
        inside = [_field(inner, of, as_text=as_text, path=path) for inner, of in fields]
        return pa.field(name, pa.struct(inside))
    if sort == "list" and item is not None:
        return pa.field(name, pa.list_(_field("item", item, as_text=as_text, path=path)))
    if "empty" in sorts:
        raise ValueError(f"values of different types: field={path} types={', '.join(sorts)}")
    return pa.field(name, BY_VALUE[sort])


def _map_of(values: list[pa.Field[Any]], path: str, *, as_text: bool) -> Any:  # noqa: ANN401 - a type
    """Return a map with text keys, and values of one type or of text."""
    kinds: list[Any] = [*dict.fromkeys(it.type for it in values)]
    map_of: Any = pa.map_
    if len(kinds) == 1:
        return map_of(pa.string(), kinds[0])
    if not as_text or any(pa.types.is_nested(it) or pa.types.is_binary(it) for it in kinds):
        raise ValueError(
            f"values of different types: field={path} types={', '.join(map(str, kinds))}"
            " (name the columns wanted in a Schema)"
        )
    return map_of(pa.string(), pa.string())
