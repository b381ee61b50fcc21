"""What ``--where`` asks of single values, as messages hold them: the answers that columns give."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, time
from typing import Any, Final, TypeAlias

from quire._common.optional_arrow import need_arrow
from quire.errors import WhereError
from quire.ranges.event_time import epoch_ns_of

Literal: TypeAlias = str | int | float | bool

_KINDS: Final[Mapping[type[object], str]] = {
    bool: "truth",
    int: "number",
    float: "number",
    str: "text",
}
# Times that Python's cannot be are texts here: those of nanoseconds.
_FINE_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7,9}(Z|[+-]\d\d:\d\d)?(\[[^\]]*\])?"
)


@dataclass(frozen=True)
class Pattern:
    """
    A regular expression of RE2, which columns are searched for, too.

    Raises:
        WhereError: RE2 does not understand it.

    """

    text: str

    def __post_init__(self) -> None:
        """Check it."""
        self.is_found_in("")

    def is_found_in(self, text: str) -> bool:
        """Return whether a part of a text matches."""
        need_arrow()
        import pyarrow as pa
        import pyarrow.compute as pc

        options = pc.MatchSubstringOptions(self.text)
        try:
            found: Any = pc.call_function("match_substring_regex", [pa.scalar(text)], options)
        except pa.ArrowInvalid as error:
            raise WhereError(f"not a regular expression: {self.text!r}: {error}") from None
        return bool(found.as_py())


def _pair(left: object, right: object) -> tuple[Any, Any] | None:
    """Return two values as what is compared; None if they cannot be."""
    if isinstance(left, time) or isinstance(right, time):
        return _both(_time_of_day, left, right)
    if any(isinstance(it, date) or _is_fine_time(it) for it in (left, right)):
        found = _both(_moment, left, right)
        if found is not None:
            return found
    kind = _KINDS.get(type(left))
    return (left, right) if kind is not None and kind is _KINDS.get(type(right)) else None


def _both(made: Callable[[object], Any], left: object, right: object) -> tuple[Any, Any] | None:
    found = made(left), made(right)
    return None if None in found else found


def _is_fine_time(value: object) -> bool:
    return isinstance(value, str) and _FINE_TIME.fullmatch(value) is not None


def _moment(value: object) -> int | None:
    """Return a date, a time or its text as nanoseconds since 1970; None: it is none of these."""
    try:
        if isinstance(value, str):
            return epoch_ns_of(value.partition("[")[0])
        return epoch_ns_of(value) if isinstance(value, date) else None
    except ValueError:
        return None


def _time_of_day(value: object) -> time | None:
    """Return a time of day, or its text as one; None: it is neither."""
    try:
        found = time.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return found.replace(tzinfo=None) if isinstance(found, time) else None


def _if_comparable(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    def compared(left: object, right: object) -> bool | None:
        pair = _pair(left, right)
        return None if pair is None else compare(*pair)

    return compared


_equal: Final = _if_comparable(operator.eq)


def _is_in(found: object, choices: tuple[Literal, ...]) -> bool | None:
    return None if found is None else any(_equal(found, it) for it in choices)


def _is_matched(found: object, pattern: Pattern) -> bool | None:
    return pattern.is_found_in(found) if isinstance(found, str) else None


FUNCTIONS: Final[Mapping[str, Callable[[Any, Any], bool | None]]] = {
    "equal": _equal,
    "not_equal": _if_comparable(operator.ne),
    "less": _if_comparable(operator.lt),
    "less_equal": _if_comparable(operator.le),
    "greater": _if_comparable(operator.gt),
    "greater_equal": _if_comparable(operator.ge),
    "is_in": _is_in,
    "matches": _is_matched,
    "is_null": lambda found, _: found is None,
    "is_true": lambda found, _: found if isinstance(found, bool) else None,
}
"""Each question with its answer: true, false, or null where it is not known."""
