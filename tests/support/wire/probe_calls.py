"""The interfaces of `interop/…/ProbeCallTypes.java`, and the calls of its probes."""

# ruff: noqa: N802 - the names are those of Java's side
from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID

import quire
from probe_messages import FixedLeaf, ProbeLeaf, ProbeSide

NANOS = 1_700_000_000_123_456_789
LEAF = ProbeLeaf("bob", 3)
A_UUID = UUID("00000000-0000-0001-0000-000000000002")


# Under other names: methods of the same names hide them.
Date: TypeAlias = date
Uuid: TypeAlias = UUID
Blob: TypeAlias = bytes
Leaves: TypeAlias = list[ProbeLeaf]
Texts: TypeAlias = list[str]
TextsOrNulls: TypeAlias = list[str | None]
TextSet: TypeAlias = set[str]
Counts: TypeAlias = dict[str, int]


class Destination(Protocol):
    def deliver(self, message: str) -> None: ...
    def send(self, leaf: ProbeLeaf) -> None: ...
    def done(self) -> None: ...
    def and_(self, destination: str) -> Destination: ...


class Market(Protocol):
    def none(self) -> None: ...
    def say(self, text: str | None) -> None: ...
    def flag(self, value: bool) -> None: ...  # noqa: FBT001
    def tiny(self, value: quire.types.int8) -> None: ...
    def small(self, value: quire.types.int16) -> None: ...
    def letter(self, value: str) -> None: ...
    def number(self, value: quire.types.int32) -> None: ...
    def large(self, value: int) -> None: ...
    def single(self, value: quire.types.float32) -> None: ...
    def price(self, value: float) -> None: ...
    def boxed(self, value: int | None) -> None: ...
    def two(self, text: str | None, number: int) -> None: ...
    def six(  # noqa: PLR0913, PLR0917 - one of each kind
        self,
        flag: bool,  # noqa: FBT001
        tiny: quire.types.int8,
        number: quire.types.int32,
        price: float,
        text: str | None,
        leaf: ProbeLeaf | None,
    ) -> None: ...
    def leaf(self, leaf: ProbeLeaf | None) -> None: ...
    def twoLeaves(self, one: ProbeLeaf, other: ProbeLeaf) -> None: ...
    def fixed(self, leaf: FixedLeaf) -> None: ...
    def any(self, value: Any) -> None: ...  # noqa: ANN401
    def side(self, side: ProbeSide | None) -> None: ...
    def date(self, date: Date) -> None: ...
    def uuid(self, uuid: Uuid) -> None: ...
    def bytes(self, value: Blob) -> None: ...
    def texts(self, texts: TextsOrNulls) -> None: ...
    def list(self, texts: Texts) -> None: ...
    def leaves(self, leaves: Leaves) -> None: ...
    def set(self, texts: TextSet) -> None: ...
    def map(self, counts: Counts) -> None: ...
    def at(self, nanos: int) -> None: ...
    def from_(self, nanos: int, text: str) -> None: ...
    @quire.calls.method_id("s")
    def shorter(self, text: str) -> None: ...
    @quire.calls.method_id(200)
    def numbered(self, number: int) -> None: ...
    @quire.calls.method_id(7)
    def nothing(self) -> None: ...
    def ordinary(self, text: str) -> None: ...
    def to(self, destination: str) -> Destination: ...
    def via(self) -> Destination: ...
    def route(self, name: str, hops: quire.types.int32) -> Destination: ...
    @quire.calls.method_id(300)
    def through(self, number: int) -> Destination: ...
    def past(self, leaf: ProbeLeaf) -> Destination: ...


class Call(NamedTuple):
    """A call, and those of the ones chained to it."""

    method: str
    arguments: tuple[Any, ...] = ()
    then: tuple[Call, ...] = ()


def _then(method: str, *arguments: object) -> tuple[Call, ...]:
    return (Call(method, arguments),)


DELIVER = _then("deliver", "m")

CALLS: dict[str, Call] = {
    "none()": Call("none"),
    "say('hello')": Call("say", ("hello",)),
    "say('')": Call("say", ("",)),
    "say(null)": Call("say", (None,)),
    "flag(true)": Call("flag", (True,)),
    "tiny(-1)": Call("tiny", (-1,)),
    "small(300)": Call("small", (300,)),
    "letter('x')": Call("letter", ("x",)),
    "number(70000)": Call("number", (70_000,)),
    "large(12345)": Call("large", (12345,)),
    "large(2^40)": Call("large", (1 << 40,)),
    "single(0.1)": Call("single", (0.1,)),
    "price(1.25)": Call("price", (1.25,)),
    "boxed(5)": Call("boxed", (5,)),
    "boxed(null)": Call("boxed", (None,)),
    "two('a', 7)": Call("two", ("a", 7)),
    "two(null, 300)": Call("two", (None, 300)),
    "six(...)": Call("six", (True, -1, 70_000, 1.25, "a", LEAF)),
    "six(... null)": Call("six", (False, 0, 0, 0.0, None, None)),
    "leaf(leaf)": Call("leaf", (LEAF,)),
    "leaf(null)": Call("leaf", (None,)),
    "twoLeaves(leaf, leaf)": Call("twoLeaves", (ProbeLeaf("a", 1), ProbeLeaf("b", 2))),
    "fixed(leaf)": Call("fixed", (FixedLeaf(3, "bob"),)),
    "any(leaf)": Call("any", (LEAF,)),
    "any(5)": Call("any", (5,)),
    "any('x')": Call("any", ("x",)),
    "any(null)": Call("any", (None,)),
    "any([1, 'a'])": Call("any", ([1, "a"],)),
    "any({a: 1})": Call("any", ({"a": 1},)),
    "side(BUY)": Call("side", (ProbeSide.BUY,)),
    "side(null)": Call("side", (None,)),
    "date(2024-01-15)": Call("date", (date(2024, 1, 15),)),
    "uuid(1, 2)": Call("uuid", (A_UUID,)),
    "bytes(1, 2, 255)": Call("bytes", (b"\1\2\xff",)),
    "texts('a', null)": Call("texts", (["a", None],)),
    "list('a', 'b')": Call("list", (["a", "b"],)),
    "list()": Call("list", ([],)),
    "leaves(leaf)": Call("leaves", ([ProbeLeaf("a", 1)],)),
    "set('a')": Call("set", ({"a"},)),
    "map(a: 1)": Call("map", ({"a": 1},)),
    "at(nanos)": Call("at", (NANOS,)),
    "at(0)": Call("at", (0,)),
    "from(nanos, 'a')": Call("from_", (NANOS, "a")),
    "shorter('a') with an id": Call("shorter", ("a",)),
    "numbered(5) with an id": Call("numbered", (5,)),
    "nothing() with an id": Call("nothing"),
    "ordinary('a') by default": Call("ordinary", ("a",)),
    "to('x').deliver('m')": Call("to", ("x",), DELIVER),
    "to('x').send(leaf)": Call("to", ("x",), _then("send", LEAF)),
    "to('x').done()": Call("to", ("x",), _then("done")),
    "to('x').and('y').deliver('m')": Call("to", ("x",), (Call("and_", ("y",)), *DELIVER)),
    "via().deliver('m')": Call("via", (), DELIVER),
    "route('x', 2).deliver('m')": Call("route", ("x", 2), DELIVER),
    "through(1).deliver('m') with an id": Call("through", (1,), DELIVER),
    "past(leaf).deliver('m')": Call("past", (LEAF,), DELIVER),
}

# Java's own: a store written as text, an array under its name, a NaN, a map that sorts.
NOT_MADE = {"store(1, 2, 255)", "ints(1, 300)", "price(NaN)", "map(sorted)"}


def make(market: Market, name: str) -> None:
    """Make a call on a writer."""
    call = CALLS[name]
    target: Any = market
    for each in (call, *call.then):
        target = getattr(target, each.method)(*each.arguments)


def recorder(calls: list[tuple[str, tuple[Any, ...]]], then: Any = None) -> object:  # noqa: ANN401
    """Make a handler that keeps all calls, chained ones too; `then` gets them as well."""

    def kept(interface: type, name: str) -> Callable[..., object]:
        def method(handler: Any, *arguments: object) -> object:  # noqa: ANN401
            calls.append((name, arguments))
            chained = getattr(handler.then, name)(*arguments) if handler.then is not None else None
            return made(Destination, chained)

        method.__signature__ = inspect.signature(getattr(interface, name))  # type: ignore[attr-defined]
        return method

    def made(interface: type, then: object) -> object:
        names = [name for name in vars(interface) if not name.startswith("_")]
        members: dict[str, object] = {name: kept(interface, name) for name in names}
        return type(interface.__name__, (interface,), {**members, "then": then})()

    return made(Market, then)
