"""The errors that a server answers, as exceptions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from quire import errors
from quire.errors import (
    MovedError,
    OptionsError,
    QuireError,
    RefusedError,
    ServerLostError,
    WaitTimeoutError,
)
from quire.remote.address import RemoteAddress, parse

_BY_CODE: Final[dict[str, type[QuireError]]] = {
    name.removesuffix("Error").upper(): getattr(errors, name)
    for name in errors.__all__
    if name.endswith("Error")
}
_MOVED: Final = re.compile(r"\d{1,5} ([A-Za-z0-9._:-]{1,255}):(\d{1,5})")
_FACTS: Final = ' {"index"'
_ENDING: Final = "ERR the server ends"
TRY_AGAIN: Final = "TRYAGAIN"
"""The code of a retried append whose first attempt is still in progress."""


def refused(text: str) -> Exception:
    """Return the exception for an error's text: the server's own, if it is one of Quire's."""
    code, _, rest = text.partition(" ")
    if text == _ENDING:  # of an older one: no answer to anything
        return ServerLostError("the server ends")
    if code in _MADE:
        return _MADE[code](rest)
    found = _BY_CODE.get(code)
    if found is None or found is QuireError:
        return RefusedError(text)
    try:
        return found(rest)
    except TypeError:  # it takes more than a text
        return RefusedError(text)


def _without_token(_text: str) -> RefusedError:
    return RefusedError("NOAUTH the server requires a token, but none was given")


def _moved(text: str) -> RefusedError:
    """Return the error for a queue on another server; an invalid address is shown."""
    found = _MOVED.fullmatch(text)
    address = "" if found is None else RemoteAddress(found[1], int(found[2]), "").url
    try:
        parse(address, names_queue=False)
    except OptionsError:
        return RefusedError(f"MOVED to an invalid address: {text!r:.200}")
    error = MovedError(f"the queue is served elsewhere: server={address} (open it there)")
    error.address = address
    return error


def _late(text: str) -> WaitTimeoutError:
    """Return the error of a timed-out wait: its text ends with the replicas' states, as JSON."""
    said, begins, facts = text.partition(_FACTS)
    try:
        known: dict[str, Any] = json.loads(begins.strip() + facts)
    except ValueError:
        return WaitTimeoutError(text)
    error = WaitTimeoutError(said)
    error.index, error.acknowledged = known.get("index"), known.get("acknowledged") or {}
    return error


_MADE: Final[dict[str, Callable[[str], Exception]]] = {
    "INVALID": ValueError,
    "MOVED": _moved,
    "NOAUTH": _without_token,
    "WAITTIMEOUT": _late,
}
