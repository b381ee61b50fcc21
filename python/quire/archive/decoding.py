"""How messages become typed columns: the options of a run, as the manifest stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, Literal

import pyarrow as pa

from quire.arrow.column_types import PARQUET_TIME, fields_of, spark_columns, type_text
from quire.arrow.content import Content, RowContent
from quire.arrow.names import (
    CYCLE,
    ERROR,
    INDEX,
    METHOD,
    PAYLOAD,
    SEQUENCE,
    SUBTOPIC,
    TIMESTAMP,
    TOPIC,
)
from quire.arrow.schema import Schema
from quire.errors import ArchiveError
from quire.formats.adapters import tailer_of
from quire.handles.base import Queue
from quire.ranges.event_time import TimeField

INFER: Final = "infer"
HISTORY: Final = "history"

LEADING: Final = (INDEX, CYCLE, SEQUENCE, TOPIC)
"""The columns that each file begins with."""
_RESERVED: Final = {*LEADING, SUBTOPIC, TIMESTAMP, ERROR, PAYLOAD}


@dataclass(frozen=True, slots=True)
class Decoding:
    """
    The typed columns of messages, in addition to their bytes.

    Attributes:
        schema: The structure of the messages, as the text of a schema; None: do not decode.
        method: The method whose arguments are columns; None: each method is a struct.
        time_field: The field for ``_timestamp``, or ``history``; None: no such column.
        time_unit: The unit of numbers in that field; None: see :class:`TimeField`.
        inferred: Whether the schema was inferred from samples of the messages.

    """

    schema: str | None = None
    method: str | None = None
    time_field: str | None = None
    time_unit: str | None = None
    inferred: bool = False

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> Decoding:
        """Return the decoding in a JSON object."""
        return cls(**{it.name: known[it.name] for it in fields(cls) if it.name in known})

    def to_json(self) -> dict[str, Any]:
        """Return the decoding as a JSON object for :meth:`of`."""
        return asdict(self)

    @property
    def timed(self) -> TimeField | None:
        """The event time field; None if there is none, or the history is used."""
        if self.time_field in {None, HISTORY}:
            return None
        return TimeField(str(self.time_field), self.time_unit)

    def content(self) -> Content | None:
        """Return the columns, with types that Spark and other readers of Parquet support."""
        return (
            None if self.schema is None else _spark_content(Schema.from_text(self.schema).content)
        )

    def types(self) -> dict[str, Any]:
        """
        Return the typed columns by name.

        Raises:
            ArchiveError: A field has the name of another column, or the schema has no method of
                this name.

        """
        content = self.content()
        if content is None:
            return {}
        columns = columns_of(content, self.method)
        if taken := sorted(_RESERVED & {*columns.names}):
            raise ArchiveError(
                f"a field has the name of a column that every archive has: name={taken[0]}"
                " (remove it from the schema: the payload holds it)"
            )
        return {field.name: field.type for field in fields_of(columns)}


def decoding_of(  # noqa: PLR0913 - by keywords
    queue: Queue,
    known: Sequence[Decoding],
    *,
    schema: Schema | Literal["infer"] | None,
    method: str | None,
    timed: TimeField | None,
    sample: int,
) -> Decoding:
    """
    Return how to decode the messages of a queue: as in the run before, unless options are given.

    Args:
        queue: The queue.
        known: The decodings of earlier runs; the last is that of the newest one.
        schema: As for :func:`quire.archive.archive`, and so are the others.
        method: The one method.
        timed: The event time.
        sample: How many messages to infer from.

    Raises:
        ArchiveError: No columns can be inferred from the messages, a column had another type in
            any earlier run, or *method* was given without a schema.

    """
    before = known[-1] if known else None
    if schema is None and timed is None and method is None:
        return before or Decoding()
    text = None if before is None or before.schema is None else before.schema
    inferred = schema == INFER
    if inferred and _is_empty(queue):
        return before or Decoding()  # as for each queue of a directory that has nothing yet
    if inferred:
        text = _inferred(queue, sample, known).to_text()
    elif isinstance(schema, Schema):
        text = schema.to_text()
    if method is not None and text is None:
        raise ArchiveError(f"method= requires schema=, the interface: method={method}")
    name, unit = (None, None) if timed is None else (timed.name, timed.unit)
    made = Decoding(text, method, name, unit, inferred)
    types = made.types()
    for each in known:
        _check_kept(types, each.types())
    return made


def columns_of(content: Content, method: str | None) -> pa.Schema:
    """
    Return the typed columns; for methods, a struct for each, or the arguments of one.

    Raises:
        ArchiveError: The schema has no method of this name.

    """
    schema = Schema.of_content(content)
    if method is None:
        return pa.schema([it for it in fields_of(schema.arrow) if it.name != INDEX])
    if method not in schema.methods:
        known = ", ".join(schema.methods) or "none"
        raise ArchiveError(f"no such method: method={method} known={known}")
    arguments = [it for it in fields_of(schema.methods[method]) if it.name != INDEX]
    return pa.schema([pa.field(METHOD, pa.string()), *arguments])


def _spark_content(content: Content) -> Content:
    converted = content.convert(lambda columns: spark_columns(columns, PARQUET_TIME))
    return replace(converted, history=False, index_name=INDEX)


def _is_empty(queue: Queue) -> bool:
    with tailer_of(queue) as tailer:
        return tailer.read_bytes() is None


def _inferred(queue: Queue, sample: int, known: Sequence[Decoding]) -> Schema:
    """Infer the schema of the messages; columns inferred before keep their types."""
    try:
        content = Schema.infer(queue, sample).content
    except ValueError as error:
        raise ArchiveError(str(error)) from None
    before = next((it.content() for it in reversed(known) if it.inferred), None)
    kept: list[Any] = []
    if isinstance(before, RowContent):
        if before.shape != content.shape:
            raise ArchiveError(
                f"the messages have another shape than in earlier runs: path={queue.path}"
                f" found={content.shape} archived={before.shape}"
            )
        kept = fields_of(before.columns)
    names = {*_RESERVED, *(field.name for field in kept)}
    new = [field for field in fields_of(content.columns) if field.name not in names]
    return Schema.of_content(content.convert(lambda _: pa.schema([*kept, *new])))


def _check_kept(types: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    for name in types.keys() & before.keys():
        if types[name] != before[name]:
            raise ArchiveError(
                f"a column cannot change its type: column={name} type={type_text(types[name])}"
                f" archived={type_text(before[name])} (use another DEST for the new type)"
            )
