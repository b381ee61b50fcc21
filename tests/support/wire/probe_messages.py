"""The classes of `interop/src/quire/interop/ProbeTypes.java`, and the objects of its messages."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Generic, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import quire

T = TypeVar("T")

# Under other names: a field of the same name hides them.
Blob = bytes
Texts = set[str]


@quire.message
class ProbeSide(Enum):
    BUY = 1
    SELL = 2


@quire.message
@dataclass(unsafe_hash=True)
class ProbeLeaf:
    name: str | None = None
    count: quire.types.int32 = 0


@quire.message
@dataclass
class Flat:
    flag: bool = False
    tiny: quire.types.int8 = 0
    small: quire.types.int16 = 0
    letter: str = "\0"
    number: quire.types.int32 = 0
    large: int = 0
    single: quire.types.float32 = 0.0
    price: float = 0.0
    text: str | None = None


@quire.message
@dataclass
class Boxed:
    flag: bool | None = None
    tiny: quire.types.int8 | None = None
    small: quire.types.int16 | None = None
    letter: str | None = None
    number: quire.types.int32 | None = None
    large: int | None = None
    single: quire.types.float32 | None = None
    price: float | None = None


@quire.message(rename="camel")
@dataclass
class Times:
    date: dt.date | None = None
    time: dt.time | None = None
    date_time: dt.datetime | None = None
    zoned: dt.datetime | None = None
    instant: quire.types.instant | None = None
    duration: dt.timedelta | None = None
    uuid: UUID | None = None
    decimal: Decimal | None = None
    integer: Decimal | None = None
    side: ProbeSide | None = None
    type: Any = None


@quire.message
@dataclass
class Converted:
    at: int = 0
    name: int = 0


@quire.message
@dataclass
class Base:
    z: quire.types.int32 = 0
    b: quire.types.int32 = 0


@quire.message
@dataclass
class Child(Base):
    c: quire.types.int32 = 0
    a: quire.types.int32 = 0


@quire.message
@dataclass
class Nested:
    leaf: ProbeLeaf | None = None
    inner: Nested | None = None
    any: Any = None
    base: Base | None = None


@quire.message(rename="camel")
@dataclass
class Collections:
    texts: list[str | None] = field(default_factory=list[str | None])
    longs: list[int] = field(default_factory=list[int])
    doubles: list[float] = field(default_factory=list[float])
    leaves: list[ProbeLeaf] = field(default_factory=list[ProbeLeaf])
    sides: list[ProbeSide] = field(default_factory=list[ProbeSide])
    objects: list[Any] = field(default_factory=list[Any])
    lists: list[list[int]] = field(default_factory=list[list[int]])
    set: Texts = field(default_factory=Texts)
    counts: dict[str, int] = field(default_factory=dict[str, int])
    names: dict[int, str] = field(default_factory=dict[int, str])
    prices: dict[ProbeSide, float] = field(default_factory=dict[ProbeSide, float])
    by_name: dict[str, ProbeLeaf] = field(default_factory=dict[str, ProbeLeaf])


@quire.message
@dataclass
class Arrays:
    bytes: Blob | None = None
    ints: list[quire.types.int32] | None = None
    longs: list[int] | None = None
    doubles: list[float] | None = None
    texts: list[str | None] | None = None
    leaves: list[ProbeLeaf] | None = None
    store: Blob | None = None


@quire.message(alias="Generic")
@dataclass
class OfAny(Generic[T]):
    value: T


@quire.message(alias="ByHand")
@dataclass
class ByHand:
    n: quire.types.int32 = 0
    t: str = ""


@quire.message(alias="quire.interop.ProbeTypes$Unnamed")
@dataclass
class Unnamed:
    number: quire.types.int32 = 0


@quire.message(bytes_layout=True)
@dataclass
class FixedLeaf:
    count: quire.types.int32 = 0
    name: str | None = None


@quire.message(bytes_layout=True)
@dataclass
class FixedNumbers:
    id: int = 0
    price: float = 0.0
    quantity: quire.types.int32 = 0
    venue: quire.types.int16 = 0
    side: quire.types.int8 = 0
    firm: bool = False


MESSAGES: dict[str, Any] = {
    "flat of defaults": Flat(),
    "flat": Flat(
        flag=True,
        tiny=-1,
        small=300,
        letter="x",
        number=70_000,
        large=1 << 40,
        single=0.1,
        price=101.25,
        text="EURUSD",
    ),
    "flat of limits": Flat(
        tiny=-128,
        small=-(1 << 15),
        letter="€",
        number=-(1 << 31),
        large=-(1 << 63),
        single=math.nan,
        price=-math.inf,
        text="",
    ),
    "boxed of nothing": Boxed(),
    "boxed": Boxed(
        flag=True, tiny=5, small=5, letter="x", number=5, large=5, single=5.0, price=5.0
    ),
    "times of nothing": Times(),
    "times": Times(
        date=dt.date(2024, 1, 15),
        time=dt.time(10, 30),
        date_time=dt.datetime(2024, 1, 15, 10, 30),  # noqa: DTZ001
        zoned=dt.datetime(2024, 1, 15, 10, 30, tzinfo=ZoneInfo("Europe/Paris")),
        instant=dt.datetime(2024, 1, 15, 10, 30, tzinfo=dt.UTC),
        duration=dt.timedelta(seconds=90),
        uuid=UUID("00000000-0000-0001-0000-000000000002"),
        decimal=Decimal("1.50"),
        integer=Decimal(123456789012345678901234567890),
        side=ProbeSide.SELL,
        type=quire.TypeLiteral("ProbeLeaf"),
    ),
    "converted": Converted(at=1_700_000_000_123_456_789, name=123_456),
    "nested of nothing": Nested(),
    "nested": Nested(
        leaf=ProbeLeaf("bob", 3),
        inner=Nested(any=5),
        any=ProbeLeaf("any", 4),
        base=Child(a=1, b=2, c=3, z=4),
    ),
    "collections of nothing": Collections(),
    "collections": Collections(
        texts=["a", None],
        longs=[1, 300, 1 << 40],
        doubles=[1.0, 0.1],
        leaves=[ProbeLeaf("a", 1)],
        sides=[ProbeSide.BUY],
        objects=[1, "a", ProbeLeaf("b", 2)],
        lists=[[1, 2]],
        set={"s"},
        counts={"one": 1},
        names={1: "one"},
        prices={ProbeSide.BUY: 1.5},
        by_name={"a": ProbeLeaf("a", 1)},
    ),
    "arrays of nothing": Arrays(),
    "arrays": Arrays(
        bytes=b"\1\2\xff",
        ints=[1, 300, -70_000],
        longs=[1, 1 << 40],
        doubles=[1.0, 0.1],
        texts=["a", None],
        leaves=[ProbeLeaf("a", 1)],
        store=b"\3\4",
    ),
    "child": Child(a=1, b=2, c=3, z=4),
    "generic of an int": OfAny(5),
    "generic of a text": OfAny("x"),
    "generic of a leaf": OfAny(ProbeLeaf("bob", 3)),
    "by hand": ByHand(5, "five"),
    "without an alias": Unnamed(),
    "fixed of numbers": FixedNumbers(
        id=1 << 40, price=101.25, quantity=300, venue=-2, side=1, firm=True
    ),
}
