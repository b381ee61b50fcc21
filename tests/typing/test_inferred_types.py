"""What type checkers infer from calls: mypy and pyright check each `assert_type` in `make lint`."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Protocol,
    TypedDict,
    assert_type,
    get_overloads,
)

import numpy as np
import numpy.typing as npt

import quire
from quire.remote.tailer import RemoteTailer
from quire.vanilla import VanillaExcerpt


@quire.message
@dataclass
class Booking:
    symbol: str
    price: float


class Side(enum.Enum):
    BUY = 1


class Market(Protocol):
    def trade(self, symbol: str, price: float) -> None: ...


@quire.message(alias="TypingLeg")
class Leg(TypedDict):
    symbol: str
    ratio: NotRequired[quire.types.int16]


@quire.message(alias="TypingPoint")
class Point(NamedTuple):
    x: int
    y: float = 0.5


@quire.message(alias="TypingCurve")
@dataclass
class Curve:
    side: Literal["bid", "ask"]
    values: npt.NDArray[np.float64]
    legs: list[Leg]


BOOKING = Booking("EURUSD", 1.1)


def journal(path: Path, messages: int = 2) -> quire.JournalQueue:
    queue = quire.open(path)
    assert_type(queue, quire.JournalQueue)
    with queue.appender() as appender:
        for _ in range(messages):
            appender.write_message(BOOKING, typed=True)
    return queue


def test_a_message_has_the_class_that_was_asked_for(tmp_path: Path) -> None:
    with journal(tmp_path) as queue, queue.tailer() as tailer:
        asked = tailer.read_message(Booking)
        assert_type(asked, Booking | None)
        named = tailer.read_message()
        assert_type(named, Any)

        assert asked == named == BOOKING


def test_messages_of_a_remote_tailer_have_the_class_too() -> None:
    def read(tailer: RemoteTailer) -> None:
        assert_type(tailer.read_message(Booking), Booking | None)
        assert_type(tailer.read_message(), Any)
        assert_type(tailer.read_messages(Booking, 1), list[Booking])
        assert_type(tailer.read_messages(None, 1), list[Any])

    assert [*get_overloads(RemoteTailer.read_message), *get_overloads(RemoteTailer.read_messages)]
    assert callable(read)  # for type checkers: mypy and pyright are what can fail


def test_messages_have_the_class_that_was_asked_for(tmp_path: Path) -> None:
    with journal(tmp_path) as queue, queue.tailer() as tailer:
        asked = tailer.read_messages(Booking, 1)
        assert_type(asked, list[Booking])
        named = tailer.read_messages(None, 1)
        assert_type(named, list[Any])

        assert asked == named == [BOOKING]


def test_a_typed_dict_and_a_named_tuple_are_classes_of_messages(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        leg: Leg = {"symbol": "EUR", "ratio": 2}
        appender.write_message(leg, Leg)
        appender.write_message(Point(1))
        curve = Curve("ask", np.array([1.5]), [leg])
        appender.write_message(curve)

        found = tailer.read_message(Leg)
        assert_type(found, Leg | None)
        point = tailer.read_message(Point)
        assert_type(point, Point | None)
        read = tailer.read_message(Curve)
        assert read is not None
        assert_type(read.side, Literal["bid", "ask"])
        assert_type(read.values, npt.NDArray[np.float64])

        assert (found, point) == (leg, Point(1))
        assert (read.values.tolist(), read.legs) == ([1.5], [leg])


def test_an_excerpt_becomes_the_class_that_was_asked_for(tmp_path: Path) -> None:
    with journal(tmp_path) as queue, queue.tailer() as tailer:
        excerpt = tailer.read()
        assert_type(excerpt, quire.Excerpt | None)
        assert excerpt is not None
        asked = excerpt.to_message(Booking)
        assert_type(asked, Booking)
        named = excerpt.to_message()
        assert_type(named, Any)

        assert asked == named == BOOKING
        for each in tailer:
            assert_type(each, quire.Excerpt)
        assert_type(tailer.payloads(), Iterator[bytes])


def test_a_document_becomes_the_class_that_was_asked_for(tmp_path: Path) -> None:
    with (
        journal(tmp_path) as queue,
        queue.tailer() as tailer,
        tailer.reading_document() as document,
    ):
        asked = document.message(Booking)
        assert_type(asked, Booking)
        named = document.message()
        assert_type(named, Any)

        assert asked == named == BOOKING


def test_a_value_has_the_type_that_was_asked_for(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_map({"symbol": "EURUSD", "size": 3, "note": None})
        with tailer.reading_document() as document:
            symbol = document.wire.read("symbol", str)
            assert_type(symbol, str)
            assert document.wire.read_name() == "size"
            size = document.wire.read_value(int)
            assert_type(size, int)
            note = document.wire.read("note")
            assert_type(note, Any)

    assert (symbol, size, note) == ("EURUSD", 3, None)


def test_messages_that_are_followed_have_the_class_that_was_asked_for(tmp_path: Path) -> None:
    with journal(tmp_path, 1) as queue, queue.tailer() as tailer:
        asked = tailer.follow_messages(Booking, timeout_s=0)
        assert_type(asked, Iterator[Booking])
        named = tailer.follow_messages(timeout_s=0)
        assert_type(named, Iterator[Any])

        assert [*asked, *named] == [BOOKING]


def test_messages_that_are_awaited_have_the_class_that_was_asked_for(tmp_path: Path) -> None:
    async def read(tailer: quire.JournalTailer) -> list[Booking]:
        one = await tailer.aread_message(Booking)
        assert_type(one, Booking | None)
        assert one is not None
        named = await tailer.aread_message()
        assert_type(named, Any)
        rest: list[Booking] = []
        async for each in tailer.afollow_messages(Booking, timeout_s=0):
            assert_type(each, Booking)
            rest.append(each)
        return [one, named, *rest]

    with journal(tmp_path, 3) as queue, queue.tailer() as tailer:
        assert asyncio.run(read(tailer)) == [BOOKING] * 3


def test_a_message_of_a_group_becomes_the_class_that_was_asked_for(tmp_path: Path) -> None:
    with journal(tmp_path) as queue, queue.group("billing").consumer("c1") as consumer:
        message = consumer.read()
        assert message is not None
        asked = message.to_message(Booking)
        assert_type(asked, Booking)
        named = message.to_message()
        assert_type(named, Any)

        assert asked == named == BOOKING


def test_a_method_writer_has_the_interface_that_was_asked_for(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        market = appender.method_writer(Market)
        assert_type(market, Market)

        market.trade("EURUSD", 1.1)
        assert queue.entry_count == 1


def test_a_member_of_an_enum_has_the_class_that_was_asked_for(tmp_path: Path) -> None:
    with quire.open(tmp_path, format="vanilla") as queue, queue.appender() as appender:
        with appender.writing_excerpt() as writer:
            writer.write_enum(Side.BUY)
            writer.write_enum("SELL")
        excerpt = queue.tailer().read()
        assert_type(excerpt, VanillaExcerpt | None)
        assert excerpt is not None
        side = excerpt.read_enum(Side)
        assert_type(side, Side | None)
        name = excerpt.read_enum()
        assert_type(name, str | None)

    assert (side, name) == (Side.BUY, "SELL")
