"""Features that a format lacks: its handles raise the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, NoReturn

from quire.errors import UnsupportedAttributeError, UnsupportedError


class Handle:
    """A handle whose error for a missing attribute says why this format lacks the attribute."""

    _format: ClassVar[str]
    _missing: ClassVar[Mapping[str, str]]
    """Why each attribute is missing."""

    if not TYPE_CHECKING:  # to type checkers, what a class lacks is absent

        def __getattr__(self, name: str) -> NoReturn:
            """Say why an attribute of the journal's handles is missing."""
            if name not in self._missing:
                raise AttributeError(
                    f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self
                )
            why = self._missing[name]
            raise UnsupportedAttributeError(
                f"not supported in {article(self._format)}: {name} ({why})"
            )


def reasons(by_names: Mapping[str, str]) -> dict[str, str]:
    """Return why each name is missing, from lists of names that share a reason."""
    return {name: reason for names, reason in by_names.items() for name in names.split()}


def article(format_name: str) -> str:
    """Return the name of a format with its article."""
    return f"{'an' if format_name[0] in 'AEIOU' else 'a'} {format_name}"


def refuse_options(
    handle: object, call: str, options: Iterable[str], known: Iterable[str], why: str
) -> None:
    """
    Refuse options of a journal's call that have no meaning in another format.

    Raises:
        UnsupportedError: The journal's call has the option.
        TypeError: No call of a journal has the option, either.

    """
    for name in options:
        if name not in known:
            raise TypeError(f"{call}() got an unexpected keyword argument '{name}'")
        handle_name = type(handle).__name__
        raise UnsupportedError(f"not supported: {call}({name}=) of a {handle_name} ({why})")
