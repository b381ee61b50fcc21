"""Answers, encoded as RESP2 or RESP3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, Union

from quire import errors
from quire.errors import MovedError, RefusedError

Answer: TypeAlias = Union[
    "bytes",
    "int",
    "Simple",
    "RefusedError",
    "Encoded",
    "ByName",
    "Sequence[Answer]",
    "Mapping[str, Answer]",
    "None",
]
"""A value: bytes are a bulk string, a dictionary is a map in RESP3 and a flat array in RESP2."""


class Simple(str):
    """A simple string, such as ``OK``."""

    __slots__ = ()


class Encoded(bytes):
    """Answers that are already encoded."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ByName:
    """
    Values by name, where a name may occur twice: a map in RESP3, and pairs in RESP2.

    Attributes:
        pairs: The names and their values, in order.

    """

    pairs: Sequence[tuple[str, Answer]]


_CODES: Final = {
    *(name.removesuffix("Error").upper() for name in errors.__all__),
    *(
        "BUSYGROUP",
        "CROSSSLOT",
        "ERR",
        "EXECABORT",
        "GAP",
        "INVALID",
        "NOAUTH",
        "NOGROUP",
        "NOPERM",
    ),
    *("NOPROTO", "TRYAGAIN", "WRONGPASS"),
}
"""The codes with which the texts of errors begin."""
OK: Final = Simple("OK")
NULL_ARRAY: Final = Encoded(b"*-1\r\n")


def encoded(answer: Answer, protocol: int) -> bytes:
    """Return an answer encoded in protocol 2 or 3."""
    out: list[bytes] = []
    _put(answer, protocol, out)
    return b"".join(out)


def bulk(text: bytes) -> bytes:
    """Return a bulk string."""
    return b"$%d\r\n%b\r\n" % (len(text), text)


def _put(answer: Answer, protocol: int, out: list[bytes]) -> None:
    match answer:
        case Encoded():
            out.append(b"_\r\n" if answer is NULL_ARRAY and protocol >= 3 else bytes(answer))  # noqa: PLR2004
        case bytes():
            out.append(b"$%d\r\n%b\r\n" % (len(answer), answer))
        case int():
            out.append(b":%d\r\n" % answer)
        case None:
            out.append(b"_\r\n" if protocol >= 3 else b"$-1\r\n")  # noqa: PLR2004
        case Simple():
            out.append(b"+%b\r\n" % answer.encode())
        case MovedError():
            out.append(moved(answer))
        case RefusedError():
            out.append(b"-%b\r\n" % _line(coded(str(answer))))
        case ByName():
            _put_pairs(answer.pairs, protocol, out)
        case _:
            _put_all(answer, protocol, out)


def _put_all(
    answer: Sequence[Answer] | Mapping[str, Answer], protocol: int, out: list[bytes]
) -> None:
    if isinstance(answer, Mapping):
        out.append((b"%%%d\r\n" if protocol >= 3 else b"*%d\r\n") % _count(answer, protocol))  # noqa: PLR2004
        for name, value in answer.items():
            out.append(bulk(name.encode("utf-8", "surrogateescape")))
            _put(value, protocol, out)
        return
    out.append(b"*%d\r\n" % len(answer))
    for value in answer:
        _put(value, protocol, out)


def _put_pairs(pairs: Sequence[tuple[str, Answer]], protocol: int, out: list[bytes]) -> None:
    is_map = protocol >= 3  # noqa: PLR2004
    out.append((b"%%%d\r\n" if is_map else b"*%d\r\n") % len(pairs))
    for name, value in pairs:
        if not is_map:
            out.append(b"*2\r\n")
        out.append(bulk(name.encode()))
        _put(value, protocol, out)


def _count(answer: Mapping[str, object], protocol: int) -> int:
    return len(answer) if protocol >= 3 else 2 * len(answer)  # noqa: PLR2004


def moved(error: MovedError) -> bytes:
    """
    Return the answer of Redis Cluster that names the server of a queue.

    The slot is always 0: queues are divided by their names.
    """
    host, _, port = error.address.removeprefix("quire://").rpartition(":")
    return f"-MOVED 0 {host.strip('[]')}:{port}\r\n".encode()


def coded(text: str) -> str:
    """Return the text of an error, with ``ERR`` before it if it begins with no code."""
    return text if text.partition(" ")[0] in _CODES else f"ERR {text}"


def _line(text: str) -> bytes:
    return " ".join(text.split()).encode("utf-8", "replace")
