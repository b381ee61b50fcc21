"""Schemas: the form of a queue's messages, and the Arrow columns that they become."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast

from quire._common import arguments
from quire._common.optional_arrow import need_arrow
from quire._native import Plan

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa

    from quire._native import Table
    from quire.arrow.content import Content, Shape
    from quire.arrow.declared import TypeLike
    from quire.arrow.plan import Method
    from quire.formats.protocols import AnyQueue

# What is accepted as a schema: see Schema.given.
SchemaLike: TypeAlias = "Schema | Mapping[str, TypeLike] | pa.Schema | type"


class Schema:
    """
    The form of a queue's messages, and the columns that they become.

    Args:
        fields: The columns: names of fields in the messages, and their types. A type is the name
            of an Arrow type (``int32``, ``utf8``, ``timestamp[us]``, ``decimal128(20, 4)``); one of
            ``uuid``, ``category`` (text with few distinct values), ``timestamp``, ``date`` and
            ``time``; a type of Python or pyarrow (``float``, also as a name, has 64 bits;
            ``float32`` has 32); ``{name: type}`` for nested fields; or ``[type]`` for a list. Or a
            pyarrow schema, in which a field that is not nullable must be in every message.
        history: Add the column ``history``: the sources and timings that precede a message.
        index: The name of the first column, the messages' indexes; None leaves it out.

    Raises:
        ValueError: Messages cannot be decoded into a type, or a name occurs twice.

    Examples:
        >>> schema = quire.Schema({"symbol": "utf8", "price": "float64"})
        >>> schema
        Schema(
          symbol: string,
          price: float64,
        )
        >>> schema.names, schema.columns.names, schema.arrow.names, schema.methods
        (['symbol', 'price'], ['symbol', 'price'], ['index', 'symbol', 'price'], {})
        >>> quire.Schema.from_text(schema.to_text()) == schema
        True

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

        from quire.arrow.content import RowContent
        from quire.arrow.declared import columns_of

        given = cast("object", fields)
        if not isinstance(given, pa.Schema | Mapping):
            raise TypeError(
                f"expected columns by name and type: fields={fields!r:.80}"
                " (such as {'price': 'float64'}, or a pyarrow schema)"
            )
        columns = fields if isinstance(fields, pa.Schema) else columns_of(fields)
        self._set(RowContent(columns, history=history, index_name=index))

    @classmethod
    def given(cls, schema: SchemaLike) -> Schema:
        """
        Make a schema of names and types or of a message class; return a schema unchanged.

        Raises:
            TypeError: *schema* is not a schema, names with types, or a message class.

        Examples:
            >>> quire.Schema.given({"price": "float64"}).names
            ['price']

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
            expected = "a Schema, names and types, a class of quire.message, or a pyarrow schema"
            raise arguments.refusal("schema", expected, schema) from error

    @classmethod
    def of_value(cls, type: TypeLike = "utf8", name: str = "value") -> Self:  # noqa: A002
        """
        Return the schema of messages that are one value without a name, such as texts.

        Args:
            type: The type of the column, as in :class:`Schema`.
            name: Its name.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> tailer.read_batch(schema=quire.Schema.of_value("utf8"))["value"].to_pylist()
            ['hello']

        """
        need_arrow()
        from quire.arrow.content import RowContent
        from quire.arrow.declared import columns_of

        return cls.of_content(RowContent(columns_of({name: type}), is_value=True))

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

        A message that names another type is malformed. A field that a message lacks is null,
        whatever its default. ``Decimal`` and ``timedelta`` become text, an enum a ``category``,
        nested messages structs, and a ``dict`` a map.

        Args:
            message: A class of :func:`quire.message`.
            types: Types for some of its fields, which override the annotations.
            history: As in :class:`Schema`.
            index: As in :class:`Schema`.

        Raises:
            TypeError: *message* is not a message class.
            ValueError: A field may hold any type, and *types* does not name one.

        Examples:
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Row:
            ...     symbol: str
            ...     price: float
            >>> quire.Schema.from_message(Row).names
            ['symbol', 'price']

        """
        need_arrow()
        from quire.arrow.content import RowContent
        from quire.arrow.declared import of_codec

        codec = getattr(message, "__dict__", {}).get("__quire_codec__")
        if codec is None:
            found = getattr(message, "__qualname__", arguments.kind(message))
            raise TypeError(f"not a class of quire.message: class={found}")
        columns = of_codec(codec, types)
        types_named = (*_aliases(message),)
        return cls.of_content(
            RowContent(columns, types=types_named, history=history, index_name=index)
        )

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

        Each method becomes a table: a column for each argument or, if the only argument is a
        message, a column for each of its fields.

        Args:
            interface: A Protocol, an ABC, or another class, whose annotations give the types;
                interfaces that its methods return are included. Or a mapping of method names to
                their arguments: names and types, or a Schema for the fields of the only argument.
            ids: The ids of methods that have no ``method_id``.
            history: As in :class:`Schema`.
            index: As in :class:`Schema`.

        Raises:
            TypeError: A method of the interface cannot be encoded in messages.
            ValueError: An argument may hold any type, or two methods with the same name differ.

        Examples:
            >>> class Market:
            ...     def price(self, symbol: str, price: float) -> None: ...
            >>> quire.Schema.from_methods(Market).methods["price"].names
            ['index', 'symbol', 'price']

        """
        need_arrow()
        from quire.arrow.content import CallContent
        from quire.arrow.declared import columns_of, of_methods
        from quire.arrow.plan import Method

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
        return cls.of_content(CallContent(tuple(methods), history=history, index_name=index))

    @classmethod
    def infer(
        cls,
        queue: AnyQueue | str | PathLike[str],
        sample: int = 1000,
        *,
        conflicts: Literal["text", "raise"] = "text",
    ) -> Self:
        """
        Infer the schema from a sample of the messages.

        Integers of any width become ``int64``, integers and floats ``float64``; named values become
        structs. Every column may be null.

        Args:
            queue: The queue, or its path; its messages are fields, or values without a name.
            sample: The number of messages to inspect, spread over the queue.
            conflicts: How to treat a field with values of different types: ``text`` makes it a text
                column, ``raise`` raises an error. Both nested and other values in one field are
                always an error.

        Raises:
            ValueError: The queue is empty, or types conflict; the error names the columns.
            WireError: A message does not decode.

        Examples:
            >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
            >>> quire.Schema.infer(queue)
            Schema(
              symbol: string,
              price: float64,
            )

        """
        from quire.arrow.infer import infer
        from quire.opening.by_path import opened

        arguments.one_of("text", "raise")("conflicts", conflicts)
        arguments.whole(1, 2**63 - 1)("sample", sample)
        with opened(queue, "queue") as source:
            content = infer([source], sample, as_text=conflicts == "text")
        return cls.of_content(content)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """
        Return the schema that :meth:`to_text` wrote.

        Raises:
            ValueError: The text is not a schema.

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
        """Return the schema of a content; raises like :class:`Schema`."""
        schema = cls.__new__(cls)
        schema._set(content)  # noqa: SLF001 - its own
        return schema

    def _set(self, content: Content) -> None:
        content.check_names()
        self._content = content
        self._plan = Plan(
            content.shape, content.plan(), history=content.history, types=content.types
        )

    @property
    def content(self) -> Content:
        """The form of the messages."""
        return self._content

    @property
    def plan(self) -> Plan:
        """The plan for the native decoder."""
        return self._plan

    @property
    def shape(self) -> Shape:
        """The form of messages: ``fields``, one ``value``, or ``calls``."""
        return self._content.shape

    @property
    def types(self) -> tuple[str, ...]:
        """The types that messages may name; empty allows any type."""
        return self._content.types

    @property
    def calls(self) -> tuple[Method, ...]:
        """The methods without the skipped ones; empty if the messages are not calls."""
        return self._content.calls

    @property
    def union(self) -> pa.Schema:
        """The columns of a batch, without index and history; of calls, a tagged union."""
        return self._content.union

    @property
    def names(self) -> list[str]:
        """The names of the columns, or of the methods."""
        return self._content.names

    @property
    def columns(self) -> pa.Schema:
        """The columns alone, without index and history; of methods, a struct for each."""
        return self._content.columns

    @property
    def arrow(self) -> pa.Schema:
        """The pyarrow schema of a batch; of methods, that of the tagged union."""
        return self._content.arrow

    @property
    def methods(self) -> dict[str, pa.Schema]:
        """The schema of each method's table; empty if the messages are not calls."""
        return self._content.methods

    def select(self, columns: Iterable[str]) -> Self:
        """
        Return the schema of some of the columns, in this order; the others are not decoded.

        Args:
            columns: The names of the columns, ``trade.price`` for a nested one, or of the methods.

        Raises:
            KeyError: The schema has no column of one of the names.

        Examples:
            >>> quire.Schema({"symbol": "utf8", "price": "float64"}).select(["price"]).names
            ['price']

        """
        return self.of_content(self._content.select(arguments.names("columns", columns)))

    def batches(self, tables: Sequence[Table], layout: str) -> dict[str, pa.RecordBatch]:
        """Return decoded columns as batches: by method, or under an empty name."""
        return self._content.batches(tables, layout)

    def __repr__(self) -> str:
        """Return the columns and their types."""
        return str(self._content)

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
    """Yield the aliases of a class and of its subclasses, which are accepted instead."""
    codec = vars(message).get("__quire_codec__")
    if codec is not None:
        yield codec.alias
    derived_classes: list[type] = message.__subclasses__()
    for derived in derived_classes:
        yield from _aliases(derived)
