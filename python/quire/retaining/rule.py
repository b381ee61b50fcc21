"""Retention rules: what a queue keeps, and what happens to the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from quire._common import arguments
from quire._common.units import milliseconds, size
from quire.opening.discovery import result_path

if TYPE_CHECKING:
    from quire.retaining.prune_report import PrunedCycle

Age: TypeAlias = "str | float | timedelta"
"""A duration: text such as ``7d``, seconds, or a timedelta."""
Action: TypeAlias = Literal["delete", "move", "archive", "compress"]
"""What happens to a cycle that is not kept."""

_ACTIONS: Final = get_args(Action)
_LONGEST_MS: Final = 2**53


class Limits(NamedTuple):
    """The limits of a rule in plain units; None: no limit."""

    keep_ms: int | None
    max_bytes: int | None
    max_cycles: int | None
    stale_ms: int | None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The fields of :class:`quire.Retention`, checked."""

    keep: Age | None = None
    max_bytes: int | str | None = None
    max_cycles: int | None = None
    action: Action = "delete"
    dest: str | PathLike[str] | None = None
    stale_after: Age | None = None
    on_removed: Callable[[PrunedCycle], object] | None = None

    def __post_init__(self) -> None:
        """Check the rule."""
        arguments.one_of(*_ACTIONS)("action", self.action)
        if self.dest is not None:
            result_path("dest", self.dest)
        if (self.dest is None) != (self.action in {"delete", "compress"}):
            wanted = "none" if self.dest is not None else "a directory"
            raise ValueError(f"invalid dest: action={self.action} expected {wanted}")
        check = arguments.optional(arguments.function("a callable or None"))
        check("on_removed", self.on_removed)
        if all(limit is None for limit in self.limits[:3]):
            raise ValueError("no limit: give at least one of keep, max_bytes and max_cycles")

    @property
    def limits(self) -> Limits:
        """The limits in plain units."""
        return Limits(
            _milliseconds("keep", self.keep),
            _bytes("max_bytes", self.max_bytes),
            arguments.optional(arguments.whole(1, 2**31 - 1))("max_cycles", self.max_cycles),
            _milliseconds("stale_after", self.stale_after),
        )


def _milliseconds(name: str, found: object) -> int | None:
    if found is None:
        return None
    ms = milliseconds(name, found)
    if not 0 < ms <= _LONGEST_MS:
        raise arguments.out_of_range(name, "a duration above 0", found)
    return ms


def _bytes(name: str, found: object) -> int | None:
    bytes_: int | None = arguments.optional(arguments.whole(1, 2**63 - 1))(name, size(name, found))
    return bytes_
