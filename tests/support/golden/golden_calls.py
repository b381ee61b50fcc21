"""The interface that Java's golden queues of method calls were written through, and its calls."""

# ruff: noqa: N802 - the names are those of Java's side
from __future__ import annotations

import datetime as dt
import enum
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, get_type_hints

import quire
from paths import GOLDEN
from quire.calls.interfaces import Interface

JAVA = GOLDEN / "java-5.27ea11"


@quire.message(alias="golden.Dto")
@dataclass
class Dto:
    name: str | None = None
    qty: quire.types.int32 = 0
    id: int = 0
    px: float = 0.0
    ok: bool = False
    tags: list[str] = field(default_factory=list[str])


@quire.message(alias="golden.BytesDto", bytes_layout=True)
@dataclass
class BytesDto:
    count: quire.types.int32
    id: int
    px: float
    text: str


class Side(enum.Enum):
    BUY = 1
    SELL = 2


class End(Protocol):
    def end(self, count: quire.types.int32) -> None: ...
    def endDto(self, dto: Dto) -> None: ...


class Via(Protocol):
    def done(self, text: str) -> None: ...
    def deeper(self, count: quire.types.int32) -> End: ...


class Calls(Protocol):
    """The interface that the golden queues were written through."""

    def noArg(self) -> None: ...
    def intArg(self, value: quire.types.int32) -> None: ...
    def longArg(self, value: int) -> None: ...
    def dblArg(self, value: float) -> None: ...
    def boolArg(self, value: bool) -> None: ...  # noqa: FBT001
    def strArg(self, value: str | None) -> None: ...
    def dto(self, dto: Dto) -> None: ...
    def bdto(self, dto: BytesDto) -> None: ...
    def two(self, text: str, count: quire.types.int32) -> None: ...
    def three(self, text: str, count: int, dto: Dto) -> None: ...
    def anEnum(self, side: Side) -> None: ...
    def listArg(self, texts: list[str]) -> None: ...
    def via(self, text: str) -> Via: ...
    def to(self, number: quire.types.int32) -> Via: ...
    @quire.calls.method_id(7)
    def withId(self, text: str) -> None: ...
    def bytesArg(self, value: bytes) -> None: ...
    def dateArg(self, value: dt.date) -> None: ...
    def mapArg(self, value: dict[str, Any]) -> None: ...


def make_calls(calls: Calls) -> None:
    """Make the calls of the golden queues."""
    calls.noArg()
    calls.intArg(1)
    calls.intArg(-70_000)
    calls.longArg(1 << 50)
    calls.dblArg(2.5)
    calls.boolArg(True)  # noqa: FBT003
    for text in ("hello", None, "中"):
        calls.strArg(text)
    calls.dto(Dto("bob", 3, 1 << 33, 10.5, ok=True, tags=["x", "yy"]))
    calls.dto(Dto())
    calls.bdto(BytesDto(1, -2, 3.5, "str"))
    calls.two("a", 2)
    calls.three("a", 2, Dto("z", 1, 2, 3.0))
    calls.anEnum(Side.SELL)
    calls.listArg(["p", "q"])
    calls.via("v1").done("fin")
    calls.via("v2").deeper(9).end(10)
    calls.to(128).deeper(1).endDto(Dto("c", 1, 1, 1.0, ok=True))
    calls.withId("id7")
    calls.bytesArg(b"\1\2")
    calls.dateArg(dt.date(2024, 1, 2))
    calls.mapArg({"k": 1})


def golden(name: str) -> list[bytes]:
    """Return the payloads of a golden queue."""
    lines = (JAVA / name / "list.jsonl").read_text("utf-8").splitlines()[1:]
    return [bytes.fromhex(json.loads(line)["hex"]) for line in lines]


def recorder(interface: type, report: Callable[..., object]) -> Any:  # noqa: ANN401 - of the interface
    """Return a handler of all methods of *interface*: ``report(name, *arguments)`` is called."""

    def method(name: str, function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def call(_self: object, *arguments: object) -> object:
            report(name, *arguments)
            following = get_type_hints(function)["return"]
            return None if following is type(None) else recorder(following, report)

        return call

    members = {name: method(name, it) for name, it in Interface.of(interface).functions()}
    return type("Recorder", (), members)()
