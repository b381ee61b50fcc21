"""
The columns of a read, as Spark and as the decoder see them.

Some columns exist for every message, whatever it contains: :data:`METADATA`. All others are fields
of the messages, or derived from them by a schema of Quire. The Arrow schema of the rows must equal
the one that Spark expects, types and nullability included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as spark

import quire
from quire.arrow import names
from quire.arrow.column_types import MESSAGE_COLUMNS, spark_columns
from quire.arrow.content import Content, RowContent
from quire.arrow.infer import infer
from quire.arrow.names import ERROR, PAYLOAD
from quire.arrow.schema import Schema
from quire.arrow.schema_loader import REFERENCE, load_reference
from quire.arrow.timed_columns import timed
from quire.errors import OptionsError
from quire.spark.arrow_types import from_arrow_type, to_arrow_schema
from quire.spark.source_options import ReadOptions, refuse
from quire.spark.topics import open_queue, selected_topics, topic_in_errors

METADATA: Final[Mapping[str, spark.DataType]] = {
    name: from_arrow_type(kind) for name, kind in MESSAGE_COLUMNS.items()
}
"""An index is a long, as Spark has no unsigned integers; the index of no message reaches 2**63."""

_DEFAULT: Final = (names.TOPIC, names.INDEX, names.CYCLE, names.SEQUENCE, PAYLOAD)
_WITH_FIELDS: Final = (names.TOPIC, names.INDEX)
_LIMITED: Final = re.compile(r"([\s:<])(?:varchar|char|character)\s*\(\s*\d+\s*\)", re.IGNORECASE)
_VARIANT: Final = re.compile(r'"(?:type|elementType|keyType|valueType)":"variant"|^"variant"$')
# pyarrow-stubs have a class for each type.
_Type: TypeAlias = Any
_Field: TypeAlias = Any


def is_message_column(field: spark.StructField) -> bool:
    """Whether a column exists for every message; a binary ``payload`` does, too."""
    return field.name in METADATA or (
        field.name == PAYLOAD and isinstance(field.dataType, spark.BinaryType)
    )


def default_columns(options: ReadOptions) -> str | spark.StructType:
    """
    Return the columns of a read without a Spark schema, in Spark's notation or as a schema.

    Raises:
        OptionsError: The options determine no columns.

    """
    base = base_schema(options)
    if base is not None:
        return _chosen(base, options)
    written = None if options.schema is None else _limited_as_text(options.schema.strip())
    if options.columns is None:
        chosen = [*(_DEFAULT if written is None else _WITH_FIELDS)]
        chosen += [ERROR] if options.keep_errors else []
        given = {_name_of(item) for item in split_columns(written or "") if item}
        chosen = [name for name in chosen if name not in given]
        return ", ".join([*map(_declared, chosen), *([] if written is None else [written])])
    items = [*split_columns(_limited_as_text(options.columns))]
    known = {_name_of(item): item for item in split_columns(written or "") if item}
    problems = [
        f"column without a type: {item!r}; write '{item} string'"
        for item in items
        if _is_bare(item)
        and item not in METADATA
        and item != PAYLOAD
        and _name_of(item) not in known
    ]
    refuse(problems)
    return ", ".join(
        known.get(_name_of(item)) or _declared(item) if _is_bare(item) else item for item in items
    )


def base_schema(options: ReadOptions) -> Schema | None:
    """
    Return the schema that the options give; None if they give only columns, or nothing.

    Raises:
        OptionsError: The class does not exist or is not a message class, or no schema can be
            inferred.

    """
    try:
        if options.infer_schema:
            return _inferred(options, options.sample_rows)
        if options.schema is None:
            return None
        schema = schema_of(options.schema)
        if options.method is not None:
            _check_method(options.method, {} if schema is None else schema.methods)
    except (ValueError, TypeError, ImportError, AttributeError, quire.QuireError, OSError) as error:
        asked = "inferSchema" if options.infer_schema else f"schema={options.schema}"
        refuse([f"{asked}: {error}"])
        raise
    return schema


def schema_of(text: str) -> Schema | None:
    """
    Return the schema of a text or of ``module:Name``; None for other texts.

    Raises:
        ValueError: The text is not a schema. Loading the named object may raise other exceptions.

    """
    text = text.strip()
    if text.startswith("{"):
        return Schema.from_text(text)
    place = REFERENCE.fullmatch(text)
    return load_reference(place[1], place[2]) if place else None


def _check_method(method: str, known: Mapping[str, pa.Schema]) -> None:
    if method not in known:
        raise ValueError(f"no such method: method={method} known={', '.join(known) or 'none'}")


def checked(schema: spark.StructType, options: ReadOptions) -> spark.StructType:
    """
    Check that the source can fill a schema, and return it.

    Raises:
        OptionsError: The schema has no columns, columns of a wrong or unsupported type, or other
            columns than the options name; the error lists every problem.

    """
    problems = [problem for field in schema for problem in _problems(field)]
    problems += _doubles(schema.names, inferred=options.infer_schema)
    if not schema.fields:
        problems.append("the schema has no columns")
    if options.columns is not None:
        items = [*split_columns(options.columns)]
        names_of = [{item, _name_of(item)} for item in items]
        if len(items) != len(schema.names) or any(
            name not in names for name, names in zip(schema.names, names_of, strict=True)
        ):
            problems.append("give a schema or the option columns, not both")
    if options.keep_errors and ERROR not in schema.names:
        problems.append(f"onError=column needs a column for the reason: add {ERROR} string")
    refuse(problems)
    return schema


def _doubles(names: list[str], *, inferred: bool) -> Iterator[str]:
    """Yield problems with names; inferred names may differ only by case."""
    by_case: dict[str, list[str]] = {}
    for name in [*dict.fromkeys(names)]:
        by_case.setdefault(name.lower(), []).append(name)
        if (count := names.count(name)) > 1:
            yield f"a column occurs {count} times: column={name}"
    for lower, found in by_case.items():
        if lower in METADATA and found != [lower]:
            wrong = next(name for name in found if name != lower)
            yield f"a field cannot have the name of a message column: column={wrong}, write {lower}"
        elif len(found) > 1 and not inferred:
            yield f"columns differ only by case: {', '.join(found)}"


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects the rows to have."""
    return to_arrow_schema(schema)


def decoding(schema: spark.StructType, options: ReadOptions) -> Schema:
    """
    Return the decoder's schema for the fields of a checked Spark schema.

    Raises:
        OptionsError: The columns do not fit the form of messages that the options declare.

    """
    fields = [field for field in schema if not is_message_column(field)]
    base = base_schema(options) if options.schema or (options.infer_schema and fields) else None
    wanted: dict[str, _Field] = {
        field.name: arrow_schema(spark.StructType([field])).field(0) for field in fields
    }
    try:
        if base is None:
            content: Content = RowContent(pa.schema([*wanted.values()]))
        elif options.infer_schema:
            content = _as_inferred(_spark_content(base.content), wanted)
        else:
            content = _spark_content(base.content)
            _check_columns(_offered(content, options.method), wanted)
            content = _narrowed(content, wanted)
        if names.TIMESTAMP in schema.names:
            content = timed(content, options.time_field, options.method)
        has_history = content.history or names.SPARK_HISTORY in schema.names
        return Schema.of_content(replace(content, index_name=names.INDEX, history=has_history))
    except ValueError as error:
        raise OptionsError(f"quire source: {error}") from None


def spark_schema(fields: Mapping[str, _Type]) -> spark.StructType:
    """Return Spark's columns for Arrow columns."""
    return spark.StructType(
        [spark.StructField(name, from_arrow_type(kind)) for name, kind in fields.items()]
    )


def _spark_content(content: Content) -> Content:
    """Convert every column to a type that Spark supports; the source adds the index itself."""
    return replace(content.convert(spark_columns), history=False, index_name=names.INDEX)


def _offered(content: Content, method: str | None) -> dict[str, _Type]:
    """Return the columns that messages provide, with their Arrow types."""
    schema = Schema.of_content(content)
    columns = schema.arrow if method is None else schema.methods[method]
    return {name: columns.field(name).type for name in columns.names if name != names.INDEX}


def _check_columns(offered: Mapping[str, _Type], wanted: Mapping[str, _Field]) -> None:
    problems: list[str] = []
    for name, field in wanted.items():
        if name not in offered:
            problems.append(f"no such column: column={name} known={', '.join(offered)}")
        elif _plain(offered[name]) != field.type:
            known = spark_schema({name: _plain(offered[name])})[0].dataType.simpleString()
            found = spark_schema({name: field.type})[0].dataType.simpleString()
            problems.append(f"column {name} is {known}, not {found}")
    refuse(problems)


def _as_inferred(content: Content, wanted: Mapping[str, _Field]) -> Content:
    """Take the shape from the messages, whose types may have changed since Spark planned."""
    inferred = content.columns
    seen: dict[str, _Field] = {name: inferred.field(name) for name in inferred.names}
    columns: list[_Field] = [
        seen[name] if name in seen and _plain(seen[name].type) == field.type else field
        for name, field in wanted.items()
    ]
    return content.convert(lambda _: pa.schema(columns))


def _plain(kind: _Type) -> _Type:
    """Return the type that Spark receives: a UUID becomes its bytes."""
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def _narrowed(content: Content, wanted: Mapping[str, _Field]) -> Content:
    """Push the projection down to the decoder, unless that would change the rows."""
    if not isinstance(content, RowContent) or content.is_value:
        return content
    fields: list[_Field] = [content.fields.field(name) for name in wanted]
    return replace(content, fields=pa.schema(fields))


def _chosen(base: Schema, options: ReadOptions) -> spark.StructType:
    """Return the columns of a Quire schema: all of them, or those of the option."""
    offered = _offered(_spark_content(base.content), options.method)
    known = {
        field.name: field
        for field in spark_schema({name: _plain(kind) for name, kind in offered.items()})
    }
    offered_fields = known
    known = known | {name: spark.StructField(name, kind) for name, kind in METADATA.items()}
    known.setdefault(PAYLOAD, spark.StructField(PAYLOAD, spark.BinaryType()))
    if options.columns is None:
        every = [*_WITH_FIELDS, *offered, *([ERROR] if options.keep_errors else [])]
        chosen = [*dict.fromkeys(every)]
        refuse([*_other_types(offered_fields)] if not options.infer_schema else [])
    else:
        items = split_columns(options.columns)
        chosen = [item if item in known else _name_of(item, item) for item in items]
        refuse(
            [
                f"no such column: column={name} known={', '.join(known)}"
                for name in chosen
                if name not in known
            ]
        )
    return spark.StructType([known[name] for name in chosen])


def _other_types(offered: Mapping[str, spark.StructField]) -> Iterator[str]:
    """Yield problems with fields that have the name of a message column."""
    for name in offered.keys() & METADATA.keys():
        yield from _problems(offered[name])


def _inferred(options: ReadOptions, sample: int) -> Schema:
    try:
        content = infer(_one_by_one(options), sample, as_text=True, skip_errors=options.keep_errors)
    except quire.errors.WireError as error:
        raise ValueError(
            f"{error} (give a schema, or leave out messages that are not mappings: onError=column)"
        ) from None
    clashes = [
        name
        for name in content.columns.names
        if name == names.INDEX or (name not in METADATA and name.lower() in METADATA)
    ]
    if clashes:
        raise ValueError(
            f"a field has the name of a message column: field={clashes[0]}"
            " (list the other fields in a schema; this name is that of the message column)"
        )
    return Schema.of_content(content)


def _one_by_one(options: ReadOptions) -> Iterator[quire.Queue]:
    """Yield each topic's queue, one open at a time, to save file descriptors."""
    problems: list[str] = []
    topics = selected_topics(options.path, options, problems.append)
    refuse(problems)
    for topic, path in topics.items():
        with topic_in_errors(topic):
            queue = open_queue(path, options)
        with queue:
            yield queue


def _declared(name: str) -> str:
    kind = METADATA.get(name, spark.BinaryType())
    return f"{name} {kind.simpleString()}"


def _problems(field: spark.StructField) -> Iterator[str]:
    kind = field.dataType.simpleString()
    wanted = METADATA.get(field.name)
    if isinstance(field.dataType, (spark.CharType, spark.VarcharType)):
        yield f"Spark accepts no {kind} from a Python source: column={field.name}, write string"
    elif has_variant(field.dataType):
        yield (
            f"a column cannot be a variant: column={field.name}, declare the type of the field, or"
            " read JSON as `payload string` and parse it with parse_json"
        )
    elif wanted is not None and field.dataType != wanted:
        yield f"column {field.name} is {wanted.simpleString()}, not {kind}"
    elif not is_message_column(field):
        try:
            Schema(arrow_schema(spark.StructType([field])), index=None)
        except (PySparkException, ValueError, TypeError):
            yield f"type of column {field.name} is not supported: {kind}"


def any_texts(schema: spark.StructType) -> spark.StructType:
    """Return a schema with string columns instead of varchar and char columns."""
    limited = (spark.CharType, spark.VarcharType)
    return spark.StructType(
        [
            spark.StructField(it.name, spark.StringType(), it.nullable, it.metadata)
            if isinstance(it.dataType, limited)
            else it
            for it in schema.fields
        ]
    )


def has_variant(kind: spark.DataType) -> bool:
    """Return whether a type is a variant, or has one inside."""
    return _VARIANT.search(kind.json()) is not None


def _is_bare(item: str) -> bool:
    """Return whether a column has no type."""
    if item.startswith("`"):
        return item.endswith("`")
    return " " not in item and ":" not in item


def _limited_as_text(columns: str) -> str:
    """Replace varchar and char by string in columns in Spark's notation."""
    return _LIMITED.sub(r"\1string", columns)


def _name_of(item: str, plain: str | None = None) -> str:
    """Return the name of a column in Spark's notation; *plain*, if given, unless in backticks."""
    if item.startswith("`"):
        return item[1:].replace("``", "\0").partition("`")[0].replace("\0", "`")
    return re.split(r"[\s:]", item, maxsplit=1)[0] if plain is None else plain


def split_columns(columns: str) -> Iterator[str]:
    """Yield the columns of a list in Spark's notation: the parts between top-level commas."""
    depth, start, is_quoted = 0, 0, False
    for place, letter in enumerate(columns + ","):
        is_quoted ^= letter == "`"
        if is_quoted:
            continue
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth <= 0:
            yield " ".join(columns[start:place].split())
            start = place + 1
