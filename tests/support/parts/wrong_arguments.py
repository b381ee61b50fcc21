"""Arguments of the wrong kind, which a call takes as it is meant, or refuses by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import quire

WRONG: dict[str, Any] = {
    "None": None,
    "text": "no such thing",
    "integer": 7,
    "negative": -1,
    "huge": 10**30,
    "digits": 10**400,
    "float": 1.5,
    "nan": float("nan"),
    "infinite": float("inf"),
    "dict": {"a": object()},
    "list": [1],
    "bytes": b"x",
    "object": object(),
}
INTERNAL = re.compile(
    r"can't convert|too (big|large) to convert|out of range integral|has no attribute|unhashable"
    r"|not subscriptable|not supported between|not iterable|unpack|argument must"
)


def check(call: Callable[[Any], object], name: str) -> None:
    """Call with every wrong kind; each either works or is refused by name."""
    for kind, wrong in WRONG.items():
        try:
            call(wrong)
        except (TypeError, ValueError, KeyError, quire.QuireError, OSError) as error:
            said = "\n".join([str(error), *getattr(error, "__notes__", ())])
            is_clear = re.search(name, said) and not INTERNAL.search(said)
            if not is_clear:
                pytest.fail(f"{kind}: {type(error).__name__}: {said}")
