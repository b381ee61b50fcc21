"""An interface, a handler that keeps its calls, and the loop that reads them all."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import quire
from quire.calls.method_reader import MethodReader

Call: TypeAlias = tuple[object, ...]
SAY = b"\xb9\x03say\xe1"


class Say(Protocol):
    def say(self, text: str) -> None: ...


class Talk(Say, Protocol):
    def num(self, number: quire.types.int32) -> None: ...
    def none(self) -> None: ...


class Talker:
    """Keeps the calls of a :class:`Talk`."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def say(self, text: str) -> None:
        self.calls.append(("say", text))

    def num(self, number: quire.types.int32) -> None:
        self.calls.append(("num", number))

    def none(self) -> None:
        self.calls.append(("none",))


def read_all(reader: MethodReader) -> int:
    count = 0
    while reader.read_one():
        count += 1
    return count
