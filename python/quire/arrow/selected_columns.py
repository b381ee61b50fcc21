"""Selects columns of a schema by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from quire.arrow.column_types import fields_of
from quire.arrow.plan import Method


def select(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """
    Return the columns of these names, in their order.

    Raises:
        KeyError: The schema has no column of one of the names.

    """
    return pa.schema(_selected(fields_of(schema), _grouped(names)))


def select_methods(methods: tuple[Method, ...], names: list[str]) -> tuple[Method, ...]:
    """
    Return the methods, with those that are not among *names* marked as skipped.

    Raises:
        KeyError: The schema has no such method, or the method's only argument has no such field.

    """
    asked = _grouped(names)
    known = [method.name for method in methods if method.is_selected]
    if unknown := [name for name in asked if name not in known]:
        raise KeyError(f"no such method: method={unknown[0]} known={', '.join(known)}")
    chosen: list[Method] = []
    for method in methods:
        columns = asked.get(method.name, ())
        if columns == ():
            method = method._replace(takes="skipped", columns=pa.schema([]))  # noqa: PLW2901
        elif columns is not None:
            if method.takes == "arguments":
                raise KeyError(
                    f"arguments are stored by position and cannot be selected: method={method.name}"
                )
            method = method._replace(columns=select(method.columns, columns))  # noqa: PLW2901
        chosen.append(method)
    return tuple(chosen)


def _selected(fields: list[Any], groups: Mapping[str, list[str] | None]) -> list[pa.Field[Any]]:
    known = {field.name: field for field in fields}
    found: list[pa.Field[Any]] = []
    for name, inner in groups.items():
        field = known.get(name)
        if field is None or not (inner is None or pa.types.is_struct(field.type)):
            raise KeyError(f"no such column: column={name} known={', '.join(known)}")
        if inner is not None:
            inside = _selected(fields_of(field.type), _grouped(inner))
            field = field.with_type(pa.struct(inside))
        found.append(field)
    return found


def _grouped(names: Iterable[str]) -> dict[str, list[str] | None]:
    """Return the names after the first point by the name before it; None to select all."""
    groups: dict[str, list[str] | None] = {}
    for name in names:
        first, point, rest = name.partition(".")
        inner = groups.setdefault(first, [])
        if not point:
            groups[first] = None
        elif inner is not None:
            inner.append(rest)
    return groups
