"""Objects whose fields are in slots: filled directly where nothing of the class would notice."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, make_dataclass
from types import FrameType
from typing import Any, Self

import pytest

import quire


@contextmanager
def calls() -> Generator[list[str]]:
    """Note the names of Python functions that are called."""
    names: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            names.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield names
    finally:
        sys.setprofile(before)


def read_back(
    appender: quire.JournalAppender,
    tailer: quire.JournalTailer,
    written: Any,  # noqa: ANN401
) -> tuple[Any, list[str]]:
    """Return the object that was read, and what was called meanwhile."""
    appender.write_message(written)
    cls: Any = written.__class__
    with calls() as names:
        read: Any = tailer.read_message(cls)
    assert type(read) is cls
    return read, [name for name in names if name.startswith("__") and name != "__exit__"]


@dataclass(slots=True)
class Base:
    symbol: str
    price: float = 1.5


@quire.message
@dataclass(slots=True)
class DerivedSlots(Base):
    quantity: int = 7


@quire.message
@dataclass(slots=True, frozen=True)
class FrozenSlots:
    symbol: str
    price: float


@quire.message
@dataclass(slots=True)
class OnlyByName:
    symbol: str
    price: float = field(kw_only=True)


message_of_any: Any = quire.message
WideSlots: Any = message_of_any(
    make_dataclass("WideSlots", [(f"f{it}", int) for it in range(40)], slots=True)
)


@pytest.mark.parametrize(
    "written",
    [
        DerivedSlots("EURUSD", 2.5, 3),
        FrozenSlots("EURUSD", 2.5),
        OnlyByName("EURUSD", price=2.5),
        WideSlots(*range(40)),
    ],
    ids=lambda it: type(it).__name__,
)
def test_nothing_of_the_class_is_called(
    appender: quire.JournalAppender,
    tailer: quire.JournalTailer,
    written: Any,  # noqa: ANN401
) -> None:
    assert read_back(appender, tailer, written) == (written, [])


def test_defaults_stand_for_what_is_missing(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_map({"symbol": "EURUSD"})
    appender.write_map({"price": 2.5})

    assert tailer.read_message(DerivedSlots) == DerivedSlots("EURUSD", 1.5, 7)
    with pytest.raises(quire.errors.WireError, match="symbol"):
        tailer.read_message(DerivedSlots)


@quire.message
@dataclass(slots=True)
class OwnInit:
    symbol: str
    price: float

    def __init__(self, symbol: str, price: float) -> None:
        self.symbol = symbol
        self.price = price
        self.price += 1


@quire.message
@dataclass(slots=True)
class PostInit:
    symbol: str
    price: float

    def __post_init__(self) -> None:
        self.price += 1


@quire.message
@dataclass(slots=True, frozen=True)
class FrozenPostInit:
    symbol: str
    price: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "price", self.price + 1)


@quire.message
@dataclass(slots=True)
class OwnNew:
    symbol: str
    price: float

    def __new__(cls, *_: object, **__: object) -> Self:
        return object.__new__(cls)  # `super()` is of the class before it got slots

    def __init__(self, symbol: str, price: float) -> None:  # pyright: ignore[reportInconsistentConstructor]
        self.symbol, self.price = symbol, price + 1


class Counting(type):
    def __call__(cls, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        made = super().__call__(*arguments, **named)
        made.price += 1
        return made


@quire.message
@dataclass(slots=True)
class OwnCall(metaclass=Counting):
    symbol: str
    price: float


@pytest.mark.parametrize(
    "cls", [OwnInit, PostInit, FrozenPostInit, OwnNew, OwnCall], ids=lambda it: it.__name__
)
def test_what_a_class_does_itself_is_done(
    appender: quire.JournalAppender,
    tailer: quire.JournalTailer,
    cls: Any,  # noqa: ANN401
) -> None:
    written = cls("EURUSD", 2.5)
    assert written.price == 3.5

    read, _ = read_back(appender, tailer, written)

    assert (read.symbol, read.price) == ("EURUSD", 4.5)


finalized: list[object] = []


@quire.message
@dataclass(slots=True)
class Finalized:
    symbol: str
    price: float

    def __del__(self) -> None:
        finalized.append(self.symbol)


def test_objects_are_finalized_only_if_they_were_read(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_map({"symbol": "EURUSD", "price": 2.5})

    read = tailer.read_message(Finalized)

    assert read is not None
    assert (read.symbol, read.price, finalized) == ("EURUSD", 2.5, [])


@dataclass(slots=True)
class OneSlot:
    symbol: str
    name: str


setattr(OneSlot, "name", vars(OneSlot)["symbol"])  # noqa: B010 - type checkers know no such thing
quire.message(OneSlot)


def test_attributes_that_share_a_slot_have_the_last_value(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_map({"symbol": "EURUSD", "name": "GBPUSD"})

    read = tailer.read_message(OneSlot)

    assert read is not None
    assert (read.symbol, read.name) == ("GBPUSD", "GBPUSD")


def test_a_list_that_a_default_makes_is_of_one_object_alone(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    @quire.message
    @dataclass(slots=True)
    class ListedSlots:
        symbol: str
        prices: list[float] = field(default_factory=list[float])

    appender.write_map({"symbol": "a"})
    appender.write_map({"symbol": "b"})
    first, second = tailer.read_message(ListedSlots), tailer.read_message(ListedSlots)

    assert first == ListedSlots("a")
    assert first is not None
    assert second is not None
    assert first.prices is not second.prices


def test_an_abstract_class_is_refused(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    @quire.message
    @dataclass(slots=True)
    class Abstract(ABC):
        symbol: str

        @abstractmethod
        def trade(self) -> None: ...

    appender.write_map({"symbol": "EURUSD"})

    cls: Any = Abstract
    with pytest.raises(TypeError, match="abstract"):
        tailer.read_message(cls)
