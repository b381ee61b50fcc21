"""Checks of arguments; errors name the argument, what is expected and what was found."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable
from math import isfinite, isnan
from types import UnionType
from typing import Any, Final, SupportsFloat, TypeAlias, cast

_MS_PER_S: Final = 1000
_FOREVER_MS: Final = 2**62

Check: TypeAlias = Callable[[str, object], Any]


def refusal(name: str, expected: str, found: object) -> TypeError:
    """Return the error for an argument of the wrong type."""
    return TypeError(f"invalid {name}: expected {expected}, found {kind(found)}")


def out_of_range(name: str, expected: str, found: object) -> ValueError:
    """Return the error for an argument of the right type with an invalid value."""
    return ValueError(f"invalid {name}: expected {expected}, found {shown(found)}")


def kind(found: object) -> str:
    """Return the type of an argument, as errors show it."""
    return "None" if found is None else type(found).__name__


def shown(found: object) -> str:
    """Return a value as errors show it; huge integers by their size."""
    if isinstance(found, int) and found.bit_length() > 128:  # noqa: PLR2004 - two machine words
        return f"an integer of {found.bit_length()} bits"
    return f"{found!r:.80}"


def path(name: str, found: object) -> str:
    """Check a path: text, bytes or a path object. An empty one is a mistake."""
    try:
        decoded = os.fsdecode(cast("str", found))
    except TypeError:
        raise refusal(name, "a path", found) from None
    if not decoded:
        raise out_of_range(name, "a path (the working directory is '.')", found)
    return decoded


def queue_path(name: str, found: object) -> str:
    """Check the path of a queue, where an open queue is allowed too."""
    try:
        return path(name, found)
    except TypeError:
        raise refusal(name, "a queue, or its path", found) from None


def text(name: str, found: object) -> str:
    """Check text."""
    if not isinstance(found, str):
        raise refusal(name, "text", found)
    return found


def flag(name: str, found: object) -> bool:
    """Check True or False, numpy's included; other truthy values are mistakes."""
    if not isinstance(found, bool) and type(found).__module__ != "numpy":
        raise refusal(name, "True or False", found)
    return bool(found)


def whole(low: int, high: int) -> Check:
    """Return a check for an integer within these bounds."""

    def check(name: str, found: object) -> int:
        try:
            number = operator.index(cast("int", found))
        except TypeError:
            raise refusal(name, "an integer", found) from None
        if not low <= number <= high:
            raise out_of_range(name, f"an integer from {low} to {high}", number)
        return number

    return check


def seconds(name: str, found: object) -> float:
    """Check a duration in seconds, which may be infinite."""
    return _not_negative(name, found, "seconds", "a duration")


def count(name: str, found: object) -> float:
    """Check a number that may be infinite."""
    return _not_negative(name, found, "a number", "a count")


def _not_negative(name: str, found: object, expected: str, what: str) -> float:
    if isinstance(found, bool | str | bytes) or not isinstance(found, SupportsFloat):
        raise refusal(name, expected, found)
    try:
        number = float(found)
    except OverflowError:
        number = float("inf" if cast("int", found) > 0 else "-inf")
    if isnan(number) or number < 0:
        raise ValueError(f"{what} cannot be negative: {name}={shown(found)}")
    return number


def milliseconds(name: str, found: object) -> int:
    """Check a duration in seconds, and return it in milliseconds."""
    ms = seconds(name, found) * _MS_PER_S
    return min(round(ms), _FOREVER_MS) if isfinite(ms) else _FOREVER_MS


def instance(of: type | UnionType, expected: str) -> Check:
    """Return a check for an instance of a class, or of one of several."""

    def check(name: str, found: object) -> object:
        if not isinstance(found, of):
            raise refusal(name, expected, found)
        return found

    return check


def function(expected: str = "a callable") -> Check:
    """Return a check for a function, or another callable."""

    def check(name: str, found: object) -> object:
        if not callable(found):
            raise refusal(name, expected, found)
        return found

    return check


def optional(check: Check) -> Check:
    """Return a check that also allows None."""
    return lambda name, found: None if found is None else check(name, found)


def names(name: str, found: object) -> list[str]:
    """Check names: an iterable of them, or a single one."""
    if isinstance(found, str):
        return [found]
    if not isinstance(found, Iterable) or isinstance(found, bytes):
        raise refusal(name, "names", found)
    given = [*cast("Iterable[object]", found)]
    wrong = next((one for one in given if not isinstance(one, str)), "")
    if not isinstance(wrong, str):
        raise refusal(name, "names", wrong)
    return cast("list[str]", given)


def one_of(*known: str) -> Check:
    """Return a check for one of these words."""

    def check(name: str, found: object) -> str:
        if not isinstance(found, str):
            raise refusal(name, f"one of {', '.join(known)}", found)
        if found not in known:
            raise out_of_range(name, f"one of {', '.join(known)}", found)
        return found

    return check
