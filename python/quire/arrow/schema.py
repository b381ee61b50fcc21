"""Schemas: what the messages of a queue look like, and which of it becomes Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, cast

from quire import _arguments as arguments
from quire._arrow import need_arrow
from quire._native import Plan
from quire.arrow.content import Content, Shape

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa

    from quire._native import Queue, Table
    from quire.arrow.plan import Method, TypeLike

# What stands for a schema: see Schema.given.
SchemaLike: TypeAlias = "Schema | Mapping[str, TypeLike] | pa.Schema | type"

HISTORY: Final = "history"
METHOD: Final = "method"


class Schema:
    """
    What the messages of a queue look like, and which of it becomes columns.

    Args:
        fields: The columns: names of fields in the messages, and their types. A type is the name
            of an Arrow type (``int32``, ``utf8``, ``timestamp[us]``, ``decimal128(20, 4)``), one of
            ``uuid``, ``category`` (text out of a few), ``timestamp``, ``date`` and ``time``, a type
            of Python (``float`` has 64 bits, by name too; ``float32`` is the other) or of pyarrow,
            ``{name: type}`` for fields inside, or ``[type]`` for a list. Or a schema of
            pyarrow; a field that is not nullable there must be in every message.
        history: Add the column ``history``: the sources and timings in front of a message.
        index: The name of the first column, the messages' indexes; None leaves it out.

    Raises:
        ValueError: A type is none that messages are decoded into, or a name is there twice.

    """

    __slots__ = ("_content", "_plan")

    _content: Content
    _plan: Plan

    def __init__(
        self,
        fields: Mapping[str, TypeLike] | pa.Schema,
        *,
        history: bool = False,
        index: str | None = "index",
    ) -> None:
        """Check the columns and make the decoder's plan."""
        need_arrow()
        import pyarrow as pa

        from quire.arrow.plan import columns_of

        given = cast("object", fields)
        if not isinstance(given, pa.Schema | Mapping):
            raise TypeError(
                f"columns are given by name and type: fields={fields!r:.80}"
                " (such as {'price': 'float64'}, or a schema of pyarrow)"
            )
        columns = fields if isinstance(fields, pa.Schema) else columns_of(fields)
        self._set(Content("fields", columns, history, index))

    @classmethod
    def given(cls, schema: SchemaLike) -> Schema:
        """
        Return what stands for a schema as one: names and types, or a class of messages.

        Raises:
            TypeError: It is nothing of the kind.

        """
        if isinstance(schema, Schema):
            return schema
        if isinstance(schema, type):
            return cls.from_message(schema)
        try:
            return cls(schema)
        except TypeError as error:
            if isinstance(schema, Mapping):
                raise
            expected = "a Schema, names and types, a class of quire.message, or a schema of pyarrow"
            raise arguments.refusal("schema", expected, schema) from error

    @classmethod
    def of_value(cls, type: TypeLike = "utf8", name: str = "value") -> Self:  # noqa: A002
        """
        Return the schema of messages that are one value without a name, such as texts.

        Args:
            type: The type of the column, as in :class:`Schema`.
            name: Its name.

        """
        need_arrow()
        from quire.arrow.plan import columns_of

        return cls.of_content(Content("value", columns_of({name: type})))

    @classmethod
    def from_message(
        cls,
        message: type,
        *,
        types: Mapping[str, TypeLike] = MappingProxyType({}),
        history: bool = False,
        index: str | None = "index",
    ) -> Self:
        """
        Return the schema of a class's messages, as its annotations declare them.

        A message that names another type is a misfit. A field that a message lacks is null,
        whatever its default. ``Decimal`` and ``timedelta``
        become text, an enum a ``category``, nested messages structs, a ``dict`` a map.

        Args:
            message: A class of :func:`quire.message`.
            types: Types for some of its fields, in place of those of the annotations.
            history: As in :class:`Schema`.
            index: As in :class:`Schema`.

        Raises:
            TypeError: It is no such class.
            ValueError: A field may hold anything, and *types* does not say what.

        """
        need_arrow()
        from quire.arrow.plan import of_codec

        codec = getattr(message, "__dict__", {}).get("__quire_codec__")
        if codec is None:
            found = getattr(message, "__qualname__", arguments.kind(message))
            raise TypeError(f"not a class of quire.message: class={found}")
        columns = of_codec(codec, types)
        return cls.of_content(Content("fields", columns, history, index, (*_aliases(message),)))

    @classmethod
    def from_methods(
        cls,
        interface: Callable[..., Any] | Mapping[str, Mapping[str, TypeLike] | Schema],
        *,
        ids: Mapping[str, int] = MappingProxyType({}),
        history: bool = False,
        index: str | None = "index",
    ) -> Self:
        """
        Return the schema of method calls.

        Each method becomes a table: a column for each argument or, where there is one argument and
        it is a message, a column for each of its fields.

        Args:
            interface: A Protocol, an ABC, or another class, whose annotations tell the types, those
                of the interfaces that its methods return too. Or the arguments of each method by
                its name: their names and types, or a Schema for the fields of the one argument.
            ids: The numbers that stand for methods in the messages, if no ``method_id`` tells.
            history: As in :class:`Schema`.
            index: As in :class:`Schema`.

        Raises:
            TypeError: A method of the interface cannot stand in messages.
            ValueError: An argument may hold anything, or two methods of one name differ.

        """
        need_arrow()
        from quire.arrow.plan import Method, columns_of, of_methods

        methods: list[Method]
        if isinstance(interface, Mapping):
            named = cast("Mapping[str, Any]", interface)
            for name, takes in named.items():
                if not isinstance(takes, Schema | Mapping):
                    raise arguments.refusal(f"interface[{name!r}]", "names and types", takes)
            methods = [
                Method(name, ids.get(name), "object", takes.columns)
                if isinstance(takes, Schema)
                else Method(name, ids.get(name), "arguments", columns_of(takes))
                for name, takes in named.items()
            ]
        else:
            from quire.calls.interfaces import methods_of
            from quire.types import names_around

            methods = of_methods(methods_of(interface, names_around()), ids)
        return cls.of_content(Content("calls", tuple(methods), history, index))

    @classmethod
    def infer(
        cls,
        queue: Queue | str | PathLike[str],
        sample: int = 1000,
        *,
        conflicts: Literal["text", "raise"] = "text",
    ) -> Self:
        """
        Return the schema of what a sample of the messages holds.

        Integers of any width become ``int64``, integers and floats ``float64``; named values become
        structs. Every column may be null.

        Args:
            queue: The queue, or its path; its messages are fields, or values without a name.
            sample: Look at so many messages, spread over the queue.
            conflicts: What becomes of a field with values of different types: a column of ``text``,
                or an error. Nested values beside others are an error always.

        Raises:
            ValueError: The queue is empty, or types are in conflict: the error names both.
            WireError: A message does not decode.

        """
        from quire._opening import opened
        from quire.arrow.infer import inferred

        arguments.one_of("text", "raise")("conflicts", conflicts)
        arguments.whole(1, 2**63 - 1)("sample", sample)
        with opened(queue, "queue") as source:
            shape, fields = inferred(source, sample, as_text=conflicts == "text")
        return cls.of_content(Content(shape, fields))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """
        Return the schema that :meth:`to_text` told.

        Raises:
            ValueError: The text is no such thing.

        """
        need_arrow()
        from quire.arrow.schema_json import content_of

        return cls.of_content(content_of(text))

    def to_text(self) -> str:
        """Return the schema as one line of JSON, for files, options and command lines."""
        from quire.arrow.schema_json import text_of

        return text_of(self._content)

    @classmethod
    def of_content(cls, content: Content) -> Self:
        """Return the schema that is made of this; as :class:`Schema`."""
        schema = cls.__new__(cls)
        schema._set(content)  # noqa: SLF001 - its own
        return schema

    def _set(self, content: Content) -> None:
        from quire.arrow.plan import ERROR, fields_of, plan_field, plan_method

        self._content = content
        parts = content.parts
        for schema in self.methods.values() if isinstance(parts, tuple) else [self.arrow]:
            twice = [name for name in schema.names if schema.names.count(name) > 1]
            if twice or ERROR in schema.names:
                raise ValueError(f"two columns of one name: name={(twice or [ERROR])[0]}")
        plan: list[Any] = (
            [plan_method(method) for method in parts]
            if isinstance(parts, tuple)
            else [plan_field(field) for field in fields_of(parts)]
        )
        self._plan = Plan(content.shape, plan, history=content.history, types=content.types)

    @property
    def content(self) -> Content:
        """What the schema is made of."""
        return self._content

    @property
    def plan(self) -> Plan:
        """What the native decoder works from."""
        return self._plan

    @property
    def shape(self) -> Shape:
        """What messages are: ``fields``, one ``value``, or ``calls``."""
        return self._content.shape

    @property
    def types(self) -> tuple[str, ...]:
        """The types that messages may name; any if there are none."""
        return self._content.types

    @property
    def calls(self) -> tuple[Method, ...]:
        """The methods, without those that are passed over; none if the messages are no calls."""
        parts = self._content.parts
        if not isinstance(parts, tuple):
            return ()
        return tuple(method for method in parts if method.takes != "passed over")

    @property
    def union(self) -> pa.Schema:
        """The columns of calls as a tagged union, without index and history."""
        import pyarrow as pa

        columns: list[Any] = [pa.field(METHOD, pa.string()), *self.columns]
        return pa.schema(columns)

    @property
    def names(self) -> list[str]:
        """The names of the columns; of methods, their names."""
        if isinstance(self._content.parts, tuple):
            return [method.name for method in self._content.parts if method.takes != "passed over"]
        return list(self._content.parts.names)

    @property
    def columns(self) -> pa.Schema:
        """The columns alone, without index and history; of methods, a struct for each."""
        import pyarrow as pa

        if not isinstance(self._content.parts, tuple):
            return self._content.parts
        return pa.schema(
            [
                pa.field(method.name, pa.struct(list(method.columns)))
                for method in self._content.parts
                if method.takes != "passed over"
            ]
        )

    @property
    def arrow(self) -> pa.Schema:
        """The schema of a batch, as pyarrow has it; of methods, that of the tagged union."""
        import pyarrow as pa

        from quire.arrow.plan import fields_of

        columns = fields_of(self.columns)
        if isinstance(self._content.parts, tuple):
            columns.insert(0, pa.field(METHOD, pa.string()))
        return self._around(columns)

    @property
    def methods(self) -> dict[str, pa.Schema]:
        """The schema of each method's table; none if the messages are no calls."""
        if not isinstance(self._content.parts, tuple):
            return {}
        return {
            method.name: self._around(list(method.columns))
            for method in self._content.parts
            if method.takes != "passed over"
        }

    def select(self, columns: Iterable[str]) -> Self:
        """
        Return the schema of some of the columns, in this order; the others are not decoded.

        Args:
            columns: Their names, ``trade.price`` for one inside another; of methods, their names.

        Raises:
            KeyError: There is no such column.

        """
        from quire.arrow.plan import select, selected_methods

        names = arguments.names("columns", columns)
        parts: pa.Schema | tuple[Method, ...] = (
            selected_methods(self._content.parts, names)
            if isinstance(self._content.parts, tuple)
            else select(self._content.parts, names)
        )
        return self.of_content(self._content._replace(parts=parts))

    def batches(self, tables: Sequence[Table], layout: str) -> dict[str, pa.RecordBatch]:
        """Return what the decoder made as batches: by method, or under an empty name."""
        from quire.arrow.plan import ERROR, record_batch

        if not isinstance(self._content.parts, tuple) or layout == "union":
            return {"": record_batch(self.arrow, tables[0], self._content.index_name)}
        known = self.methods
        if layout != "tables":
            return {"": record_batch(known[layout], tables[0], self._content.index_name)}
        batches = {
            method.name: record_batch(known[method.name], table, self._content.index_name)
            for method, table in zip(self._content.parts, tables, strict=False)
            if method.name in known
        }
        *_, rest = tables
        if rest[4] is not None:
            batches[ERROR] = record_batch(self._around([]), rest, self._content.index_name)
        return batches

    def _around(self, fields: list[pa.Field[Any]]) -> pa.Schema:
        """Put the index in front, and the history behind."""
        import pyarrow as pa

        if self._content.index_name is not None:
            fields = [pa.field(self._content.index_name, pa.uint64(), nullable=False), *fields]
        if self._content.history:
            source = pa.struct([("id", pa.int32()), ("index", pa.int64())])
            parts: list[Any] = [("sources", pa.list_(source)), ("timings", pa.list_(pa.int64()))]
            fields = [*fields, pa.field(HISTORY, pa.struct(parts))]
        return pa.schema(fields)

    def __repr__(self) -> str:
        """Show the columns and their types."""
        from quire.arrow.plan import lines

        if not isinstance(self._content.parts, tuple):
            columns = "".join(f"\n  {line}," for line in lines(self._content.parts))
            shape = "Schema.of_value" if self._content.shape == "value" else "Schema"
            return f"{shape}({columns}\n)" if columns else f"{shape}()"
        calls = "".join(
            f"\n  {method.name}({', '.join(lines(method.columns))}),"
            for method in self._content.parts
            if method.takes != "passed over"
        )
        return f"Schema.from_methods({calls}\n)"

    def __eq__(self, other: object) -> bool:
        """Compare the columns."""
        return isinstance(other, Schema) and self._content == other._content

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash((self._content.shape, *self.names))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the columns; the plan is made again."""
        return self.of_content, (self._content,)


def _aliases(message: type) -> Iterator[str]:
    """Yield the names of a class and of those derived from it, which stand in its place."""
    codec = vars(message).get("__quire_codec__")
    if codec is not None:
        yield codec.alias
    derived_classes: list[type] = message.__subclasses__()
    for derived in derived_classes:
        yield from _aliases(derived)
