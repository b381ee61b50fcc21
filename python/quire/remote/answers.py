"""Errors that a server answers with, as exceptions."""

from __future__ import annotations

from typing import Final

from quire import errors
from quire.errors import QuireError, RefusedError

_BY_CODE: Final[dict[str, type[QuireError]]] = {
    name.removesuffix("Error").upper(): getattr(errors, name)
    for name in errors.__all__
    if name.endswith("Error")
}
TRY_AGAIN: Final = "TRYAGAIN"
"""The code of an append whose first try is still under way."""


def refused(text: str) -> Exception:
    """Return the exception for the text of an error: that of the server's, if it is Quire's own."""
    code, _, rest = text.partition(" ")
    if code == "INVALID":
        return ValueError(rest)
    if code == "NOAUTH":
        return RefusedError("NOAUTH the server wants a token, and none was given")
    found = _BY_CODE.get(code)
    if found is None or found is QuireError:
        return RefusedError(text)
    try:
        return found(rest)
    except TypeError:  # it takes more than a text
        return RefusedError(text)
