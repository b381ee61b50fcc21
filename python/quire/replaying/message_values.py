"""Messages as the values that they hold, regardless of the encoding."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias, cast

from quire._native import to_json
from quire.errors import WireError

Scalar: TypeAlias = str | int | float | bool | bytes | None

_EMPTY: Final = {"map": "{}", "list": "[]"}
_TYPE: Final = "@"


class Node(NamedTuple):
    """
    A value; equal to another with the same content, whatever the encoding and order of fields.

    Attributes:
        kind: ``map``, ``list``, ``type``; ``bool`` for a boolean, empty for other scalars.
        content: The scalar, or the values inside by name; those of a list by number.

    """

    kind: str
    content: tuple[tuple[str, Node], ...] | Scalar


class Values:
    """
    Decodes messages into values.

    Args:
        ignore: Names of fields to leave out at any depth; ``trade.time`` leaves out a ``time``
            within a ``trade``.

    """

    def __init__(self, ignore: Iterable[str] = ()) -> None:
        """Split the names at their dots."""
        self._ignored = [tuple(name.split(".")) for name in ignore]

    def of(self, message: bytes) -> Node:
        """Return the value of a message; its bytes if it holds no values."""
        try:
            parsed = json.loads(to_json(message), object_pairs_hook=_Pairs)
        except (WireError, ValueError):
            return Node("", message)
        return self._node(parsed, ())

    def _node(self, value: Any, path: tuple[str, ...]) -> Node:  # noqa: ANN401 - what JSON holds
        if isinstance(value, _Pairs):
            if len(value) == 1 and value[0][0].startswith(_TYPE):
                return Node("type", ((value[0][0], self._node(value[0][1], path)),))
            return Node("map", tuple(self._fields(value, path)))
        if isinstance(value, list):
            items = enumerate(cast("Iterable[Any]", value))
            return Node("list", tuple((f"[{n}]", self._node(item, path)) for n, item in items))
        if isinstance(value, bool):
            return Node("bool", value)
        is_whole = isinstance(value, float) and value.is_integer()
        return Node("", int(value) if is_whole else value)

    def _fields(self, pairs: _Pairs, path: tuple[str, ...]) -> Iterator[tuple[str, Node]]:
        for name, value in sorted(pairs, key=lambda pair: pair[0]):  # stable for equal names
            inner = (*path, name)
            if not any(inner[-len(ignored) :] == ignored for ignored in self._ignored):
                yield name, self._node(value, inner)


def changes(left: Node, right: Node) -> Iterator[tuple[str, Node | None, Node | None]]:
    """Yield the path of each value that differs, and both values; None on a side without it."""
    lefts, rights = dict(_leaves(left, "")), dict(_leaves(right, ""))
    for path in {**lefts, **rights}:
        pair = lefts.get(path), rights.get(path)
        if pair[0] != pair[1]:
            yield path, *pair


def shown(node: Node) -> str:
    """Return a scalar, or an empty map or list, as text."""
    if node.kind in _EMPTY:
        return _EMPTY[node.kind]
    if isinstance(node.content, bytes):
        return node.content.hex()
    return json.dumps(node.content, ensure_ascii=False)


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON, in which a name may repeat."""


def _leaves(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    if not isinstance(node.content, tuple) or not node.content:
        yield path, node
        return
    if node.kind == "type":
        ((name, inner),) = node.content
        yield _joined(path, _TYPE), Node("", name[1:])
        yield from _leaves(inner, path)
        return
    seen: dict[str, int] = {}
    for name, inner in node.content:
        again = seen[name] = seen.get(name, 0) + 1
        yield from _leaves(inner, _joined(path, name if again == 1 else f"{name}#{again}"))


def _joined(path: str, name: str) -> str:
    return path + name if not path or name.startswith("[") else f"{path}.{name}"
