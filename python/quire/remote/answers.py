"""Errors that a server answers with, as exceptions."""

from __future__ import annotations

import json
from typing import Any, Final

from quire import errors
from quire.errors import QuireError, RefusedError, WaitTimeoutError

_BY_CODE: Final[dict[str, type[QuireError]]] = {
    name.removesuffix("Error").upper(): getattr(errors, name)
    for name in errors.__all__
    if name.endswith("Error")
}
_FACTS: Final = ' {"index"'
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
    if found is WaitTimeoutError:
        return _late(rest)
    try:
        return found(rest)
    except TypeError:  # it takes more than a text
        return RefusedError(text)


def _late(text: str) -> WaitTimeoutError:
    """Return the error of replicas that were late: at its end is what is known of them, as JSON."""
    said, begins, facts = text.partition(_FACTS)
    try:
        known: dict[str, Any] = json.loads(begins.strip() + facts)
    except ValueError:
        return WaitTimeoutError(text)
    error = WaitTimeoutError(said)
    error.index, error.acknowledged = known.get("index"), known.get("acknowledged") or {}
    return error
