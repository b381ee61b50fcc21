"""Encodes Arrow columns as messages, one per row: the inverse of decoding with a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

import pyarrow as pa
import pyarrow.compute as pc

from quire import _native
from quire.arrow.column_types import (
    encoded_type,
    fields_of,
    is_binary,
    is_castable,
    is_text,
    type_text,
)
from quire.arrow.names import ERROR, METHOD, PAYLOAD, VALUE
from quire.arrow.plan import Method, plan_field, plan_method
from quire.arrow.schema import Schema

if TYPE_CHECKING:
    from quire._native import Borrowed

Form = Literal["raw", "text", "map", "fields", "typed", "method"]

FORMS: Final[tuple[Form, ...]] = get_args(Form)


class _Encoding(NamedTuple):
    """The plan of the native encoder."""

    content: Literal["raw", "value", "entries", "fields", "typed", "call", "calls"]
    columns: pa.Schema
    """The columns, in the order of the native encoder."""
    methods: tuple[Method, ...] = ()


class Encoder:
    """
    Encodes the rows of Arrow batches as messages, without a Python object per row.

    Args:
        columns: The schema of the batches.
        form: The form of a message. ``raw``: the bytes of the only column, unchanged. ``text``: the
            string of the only column as a text value. ``map``: an entry for each column, as Java's
            ``writeMap``. ``fields``: a field for each column, as ``write_message`` writes an object
            of a message class. ``typed``: the same after the name of a type. ``method``: a call.
            None: ``typed`` with *type*; ``method`` with *method* or a schema of methods;
            ``fields`` with the schema of a message class; ``raw`` for one binary column
            ``payload``; ``text`` for one string column ``value``; otherwise ``map``.
        type: The name of the type that precedes the fields.
        method: The method to call, with a column for each argument (an object is a struct), or,
            with a schema of methods, the columns that ``read_batch(method=…)`` returns.
        schema: The schema of the messages: columns are checked against it, and cast if no value
            changes; columns that it adds to a batch (index, history) are left out. With a schema
            of methods and no *method*, batches have the form that ``read_batch`` returns: the name
            in ``method``, and a struct for each method.
        omit_nulls: Leave out null fields instead of writing a null.
        fieldless: For a queue of wire type ``FIELDLESS_BINARY``.

    Raises:
        ValueError: The columns cannot become such messages; the error lists every problem.

    """

    def __init__(  # noqa: PLR0913 - by keywords
        self,
        columns: pa.Schema,
        *,
        form: Form | None = None,
        type: str | None = None,  # noqa: A002
        method: str | None = None,
        schema: Schema | None = None,
        omit_nulls: bool = False,
        fieldless: bool = False,
    ) -> None:
        """Check the columns."""
        problems: list[str] = []
        self.form: Final[Form] = form or _form_of(columns, type, method, schema)
        problems += _contradictions(self.form, type, method, schema)
        plan = None if problems else _plan(self.form, columns, method, schema, problems.append)
        if plan is None or problems:
            raise ValueError("; ".join(problems))
        self._plan: Final = plan
        self._native: Final = (
            None
            if plan.content == "raw"
            else _native.Encoder(
                plan.content,
                [plan_method(it) for it in plan.methods]
                if plan.methods
                else [plan_field(field) for field in fields_of(plan.columns)],
                type_name=type or "",
                omit_nulls=omit_nulls,
                fieldless=fieldless,
            )
        )

    def encode(self, batch: pa.RecordBatch) -> pa.Array[Any]:
        """
        Return a message for each row, as a ``large_binary`` array.

        Raises:
            ValueError: A value does not fit its column in the schema, or a column that is not
                nullable has nulls.
            WireError: A value has no encoding.

        """
        arrays = [_cast(batch.column(it.name), it) for it in fields_of(self._plan.columns)]
        if self._native is None:
            return _payloads(arrays[0])
        offsets, data = self._native.encode(batch.num_rows, [_borrowed(it) for it in arrays])
        buffers: list[Any] = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), batch.num_rows, buffers, 0)


def _form_of(
    columns: pa.Schema, type_name: str | None, method: str | None, schema: Schema | None
) -> Form:
    if type_name is not None:
        return "typed"
    if method is not None or (schema is not None and schema.methods):
        return "method"
    if schema is not None:
        return {"value": "text"}.get(schema.shape, "fields" if schema.types else "map")  # type: ignore[return-value]
    if columns.names == [PAYLOAD] and is_binary(columns.field(0).type):
        return "raw"
    return "text" if columns.names == [VALUE] and is_text(columns.field(0).type) else "map"


def _contradictions(
    form: str, type_name: str | None, method: str | None, schema: Schema | None
) -> Iterable[str]:
    if form not in FORMS:
        yield f"unknown form of messages: form={form} known={', '.join(FORMS)}"
        return
    if (form == "typed") != (type_name is not None):
        yield f"type= and form=typed require each other: form={form} type={type_name}"
    if form != "method" and method is not None:
        yield f"method= requires form=method: form={form} method={method}"
    has_methods = schema is not None and bool(schema.methods)
    if form == "method" and method is None and not has_methods:
        yield "form=method requires method= or a schema of methods"
    if form == "method" and schema is not None and not has_methods:
        yield "with form=method, schema= must be a schema of methods"
    if form != "method" and has_methods:
        yield f"a schema of methods requires form=method: form={form}"
    if form in {"raw", "text"} and schema is not None and schema.shape != VALUE:
        yield f"with form={form}, schema= must be a Schema.of_value"


def _plan(
    form: Form,
    columns: pa.Schema,
    method: str | None,
    schema: Schema | None,
    report: Callable[[str], None],
) -> _Encoding | None:
    if form in {"raw", "text"}:
        return _one_column(form, columns, schema, report)
    if form == "method":
        return _calls(columns, method, schema, report)
    wanted = columns if schema is None else schema.columns
    fields = _fields(columns, wanted, _added(schema), report)
    if not len(fields):
        report("a message must have at least one value: columns=0")
    return _Encoding("entries" if form == "map" else form, fields)  # type: ignore[arg-type]


def _one_column(
    form: Form, columns: pa.Schema, schema: Schema | None, report: Callable[[str], None]
) -> _Encoding | None:
    fields = [it for it in fields_of(columns) if it.name not in _added(schema)]
    fits, kind, wanted = {
        "raw": (is_binary, pa.binary(), "binary"),
        "text": (is_text, pa.string(), "string"),
    }[form]
    if len(fields) != 1 or not fits(fields[0].type):
        found = ", ".join(f"{it.name} {type_text(it.type)}" for it in fields)
        report(f"form={form} requires one {wanted} column: found={found}")
        return None
    content: Literal["raw", "value"] = "raw" if form == "raw" else "value"
    kind = fields[0].type if form == "raw" else kind
    return _Encoding(content, pa.schema([fields[0].with_type(kind)]))


def _calls(
    columns: pa.Schema,
    method: str | None,
    schema: Schema | None,
    report: Callable[[str], None],
) -> _Encoding | None:
    if schema is None:
        fields = _fields(columns, columns, (), report)
        return _Encoding("call", fields, (Method(method or "", None, "arguments", fields),))
    methods = {it.name: it for it in schema.calls}
    if method is not None:
        called = methods.get(method)
        if called is None:
            report(f"no such method in the schema: method={method} known={', '.join(methods)}")
            return None
        _fields(columns, called.columns, _added(schema), report)
        return _Encoding("call", called.columns, (called,))
    fields = _fields(columns, schema.union, _added(schema), report)
    return _Encoding("calls", fields, tuple(methods.values()))


def _fields(
    columns: pa.Schema,
    wanted: pa.Schema,
    added: Iterable[str],
    report: Callable[[str], None],
) -> pa.Schema:
    """Return the columns that are written, with the types to which they are cast."""
    known = {it.name: it for it in fields_of(columns) if it.name not in added}
    if len(known) < len([it for it in columns.names if it not in added]):
        report(f"duplicate column name: columns={', '.join(columns.names)}")
    for name in known.keys() - set(wanted.names):
        report(f"the schema has no such column: column={name} known={_names(wanted)}")
    fields: list[Any] = []
    for field in fields_of(wanted):
        found = known.get(field.name)
        if found is None:
            report(f"a column of the schema is missing: column={field.name}")
            continue
        try:
            fields.append(field.with_type(encoded_type(field.type)))
            plan_field(fields[-1])
        except ValueError:
            kind = type_text(field.type)
            report(f"messages hold no values of this type: column={field.name} type={kind}")
            continue
        if not is_castable(found.type, fields[-1].type):
            report(
                f"the column does not fit the schema: column={field.name}"
                f" type={type_text(found.type)}"
                f" expected={type_text(field.type)}"
            )
    return pa.schema(fields)


def _added(schema: Schema | None) -> tuple[str, ...]:
    """Return the columns of a batch of the schema that are not in messages."""
    if schema is None:
        return ()
    own = {*schema.columns.names, METHOD}
    return (*(name for name in schema.arrow.names if name not in own), ERROR)


def _names(schema: pa.Schema) -> str:
    return ", ".join(schema.names)


def _cast(array: Any, field: pa.Field[Any]) -> Any:  # noqa: ANN401 - as above
    if array.type != field.type:
        try:
            array = array.cast(field.type)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"a value does not fit: column={field.name} type={type_text(array.type)}"
                f" expected={type_text(field.type)} ({error})"
            ) from None
    if array.null_count and not field.nullable:
        raise ValueError(
            f"a column that must not have nulls has some: column={field.name}"
            f" null_count={array.null_count}"
        )
    return array


def _payloads(array: Any) -> pa.Array[Any]:  # noqa: ANN401 - as above
    """Return messages as they are, checked."""
    if array.null_count:
        raise ValueError(f"a message cannot be null: null_count={array.null_count}")
    compute: Any = pc  # its stubs leave the results open
    if compute.min(compute.binary_length(array)).as_py() == 0:
        raise ValueError("a message must have at least one byte: the column has an empty element")
    found: pa.Array[Any] = array.cast(pa.large_binary())
    return found


def _borrowed(array: Any) -> Borrowed:  # noqa: ANN401 - as above
    """Return the buffers of an array and of its children."""
    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        length, start, _, buffers, _, _ = _borrowed(array.indices)
        return length, start, False, buffers, [], _borrowed(array.dictionary)
    children: list[Any] = []
    count = 2
    if types.is_struct(kind):
        children, count = [array.field(number) for number in range(kind.num_fields)], 1
    elif types.is_map(kind):
        children = [array.keys, array.items]
    elif types.is_list(kind):
        children = [array.values]
    elif types.is_string(kind) or types.is_binary(kind):
        count = 3
    has_zone = types.is_timestamp(kind) and kind.tz is not None
    buffers = array.buffers()[:count]
    return len(array), array.offset, has_zone, buffers, [_borrowed(it) for it in children], None
