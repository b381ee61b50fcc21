"""Methods that stand in messages as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

METHOD_ID = "__quire_method_id__"
"""Where a method keeps its number."""

_F = TypeVar("_F", bound=Callable[..., object])


def method_id(number: int | str, /) -> Callable[[_F], _F]:
    """
    Have a method stand in messages as a number instead of its name, as Java's ``@MethodId``.

    Args:
        number: At most 32 bits, signed, and another one for each method; or one character.

    """
    value = ord(number) if isinstance(number, str) else number
    if not -(2**31) <= value < 2**31:
        raise ValueError(f"a method id has 32 bits: method_id={number}")

    def mark(function: _F) -> _F:
        setattr(function, METHOD_ID, value)
        return function

    return mark
