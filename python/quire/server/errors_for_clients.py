"""The texts of errors as clients see them: paths are relative to the served directory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from quire.errors import MovedError, RefusedError

_BEFORE: Final = r"(?<![\w.~-])"
"""Not in the middle of another path."""
_AFTER: Final = r"""(?:/+|(?=[\s'"`),:;\]]|$))"""


class ErrorsForClients:
    """
    Makes the texts of errors that clients see.

    Args:
        directory: The served directory, whose path is left out.

    """

    def __init__(self, directory: Path) -> None:
        places = {text for it in (directory, directory.resolve()) for text in _written(it)}
        places.discard("/")
        wanted = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
        self._places = re.compile(f"{_BEFORE}(?:{wanted}){_AFTER}") if places else None

    def text(self, error: Exception | str) -> str:
        """Return the text of an error; the served directory itself is a dot."""
        text = str(error)
        if self._places is None:
            return text
        return self._places.sub(lambda found: "" if found[0].endswith("/") else ".", text)

    def refusal(self, error: RefusedError) -> RefusedError:
        """Return a refusal with the text that clients see."""
        return error if isinstance(error, MovedError) else RefusedError(self.text(error))


def _written(path: Path) -> tuple[str, str]:
    """Return a path as it is, and in the form of the system's error texts."""
    return str(path), repr(str(path))[1:-1]
