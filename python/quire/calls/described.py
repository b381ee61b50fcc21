"""Interfaces whose calls stand in messages as people write and read them: every field by name."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Mapping
from typing import Any

from quire._native import Codec, Method
from quire.calls.interfaces import methods_of
from quire.calls.messages import described_codec


def described_methods_of(interface: object, names: Mapping[str, Any]) -> dict[str, Method]:
    """
    Return the methods of an interface, for calls without numbers and byte layouts.

    They have the names of the methods, and the objects in them those of their fields.

    Args:
        interface: As for :func:`quire.calls.interfaces.methods_of`.
        names: Names that annotations may use besides the globals of their module.

    Raises:
        TypeError: A method cannot be encoded in messages.

    """
    return methods_of(interface, names, _described)


def _described(annotation: Any) -> Any:  # noqa: ANN401 - any annotation
    """Return an annotation with other classes for those that are registered."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated or origin is typing.Literal:
        return annotation
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(map(_described, arguments))]  # noqa: UP007 - of a tuple
    if origin is not None and arguments:
        found = tuple(it if it is ... else _described(it) for it in arguments)
        return annotation if found == arguments else origin[found]
    codec = getattr(annotation, "__dict__", {}).get("__quire_codec__")
    if not isinstance(codec, Codec) or codec.members is not None:
        return annotation
    return _stand_in(annotation, codec)


@functools.cache
def _stand_in(cls: type, codec: Codec) -> type:
    """Return a class with another encoding for the objects of *cls*."""
    described = described_codec(cls, codec, _described)
    return type(cls.__name__, (), {"__quire_codec__": described})
