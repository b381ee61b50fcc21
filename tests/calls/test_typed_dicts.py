"""Dictionaries as messages: classes of ``TypedDict``."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any, NotRequired, Protocol, Required, TypedDict

import pytest

import quire
from quire.errors import WireError


@quire.message(alias="TdLeg")
class Leg(TypedDict):
    symbol: str
    ratio: NotRequired[quire.types.int16]


@quire.message(alias="TdTrade", rename="camel")
class Trade(TypedDict, total=False):
    trade_id: Required[int]
    legs: list[Leg]
    venue: str | None


# pydantic needs this form of it before Python 3.12, and brings the module along.
extensions: Any = importlib.import_module("typing_extensions")
Open: type[Any] = quire.message(alias="TdOpen", unknown="keep")(
    extensions.TypedDict(
        "Open",
        {"symbol": extensions.ReadOnly[str], "price": extensions.NotRequired[float]},
    )
)


class Desk(Protocol):
    def trade(self, trade: Trade) -> None: ...


MESSAGES: list[tuple[type[Any], dict[str, Any]]] = [
    (Leg, {"symbol": "EUR"}),
    (Leg, {"symbol": "EUR", "ratio": -3}),
    (Trade, {"trade_id": 7}),
    (Trade, {"trade_id": 7, "legs": [{"symbol": "EUR"}, {"symbol": "USD", "ratio": 2}]}),
    (Trade, {"trade_id": 7, "venue": None}),
    (Open, {"symbol": "EUR", "price": 1.5, "more": [1, {"a": "b"}]}),
]


@pytest.mark.parametrize(("cls", "message"), MESSAGES)
@pytest.mark.parametrize("typed", [False, True])
def test_dictionaries_are_read_as_they_were_written(
    cls: type[Any],
    message: dict[str, Any],
    typed: bool,  # noqa: FBT001 - a parameter of the test
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
) -> None:
    appender.write_message(message, cls, typed=typed)
    with appender.writing_document() as document:
        document.write_message(message, cls, typed=typed)
    found = queue.tailer().read_messages(None if typed else cls, 2)
    assert found == [message] * 2
    assert type(found[0]) is dict


def test_they_have_the_names_and_widths_that_are_declared(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_message({"trade_id": 7, "legs": [{"symbol": "EUR", "ratio": 2}]}, Trade)
    found = queue.tailer().read()
    assert found is not None
    assert found.to_json() == '{"tradeId":7,"legs":[{"symbol":"EUR","ratio":2}]}'


WRONG: list[tuple[dict[Any, Any], type[Any], str]] = [
    ({}, Leg, "a key is missing: field=symbol class=TdLeg"),
    ({"symbol": 5}, Leg, "field=symbol expected=str found=5"),
    ({"symbol": "EUR", "ratio": 2**20}, Leg, "field=ratio expected=int16"),
    ({"symbol": "EUR", "x": 1}, Leg, "a key that the class does not have.*field=x class=TdLeg"),
    ({"trade_id": 1, "legs": [{"ratio": 1}]}, Trade, r"a key is missing: field=legs\[0\].symbol"),
    ({"trade_id": 1, "legs": [5]}, Trade, r"field=legs\[0\] expected=TdLeg type=int"),
    ({"symbol": "EUR", 5: 1}, Open, "a key that the class does not have.*field=5"),
]


@pytest.mark.parametrize(("message", "cls", "why"), WRONG)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    message: dict[Any, Any],
    cls: type[Any],
    why: str,
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
) -> None:
    with pytest.raises(WireError, match=why):
        appender.write_message(message, cls)
    assert queue.entry_count == 0


def test_a_dictionary_needs_its_class(appender: quire.JournalAppender) -> None:
    with pytest.raises(TypeError, match=r"write_message\(message, cls\)"):
        appender.write_message({"symbol": "EUR"})
    with pytest.raises(WireError, match="expected=TdLeg type=str"):
        appender.write_message("EUR", Leg)


def test_what_is_missing_or_unknown_when_it_is_read(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    for text in ("symbol: EUR\nmore: 1", "ratio: 1"):
        appender.write_yaml(text)
    tailer = queue.tailer()
    assert tailer.read_message(Leg) == {"symbol": "EUR"}
    with pytest.raises(WireError, match=r"no default.*field=symbol class=TdLeg"):
        tailer.read_message(Leg)


def test_they_are_arguments_of_calls(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    found: list[Trade] = []

    class Handler:
        def trade(self, trade: Trade) -> None:
            found.append(trade)

    message: Trade = {"trade_id": 7, "legs": [{"symbol": "EUR"}]}
    appender.method_writer(Desk).trade(message)
    queue.tailer().method_reader(Handler()).run(until=lambda: True)
    assert found == [message]


def test_another_class_is_refused(appender: quire.JournalAppender) -> None:
    with pytest.raises(TypeError, match=r"a TypedDict has no fixed layout: class=.*Fixed"):

        @quire.message(alias="TdFixed", bytes_layout=True)
        class Fixed(TypedDict):
            symbol: str

    class Unregistered(TypedDict):
        symbol: str

    with pytest.raises(TypeError, match=r"not a class of quire\.message"):
        appender.write_message({"symbol": "EUR"}, Unregistered)


def test_there_is_an_asynchronous_form(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    asyncio.run(appender.awrite_message({"symbol": "EUR"}, Leg))
    appender.topic("LDN").write_message({"symbol": "USD"}, Leg)
    tailer = queue.tailer()
    assert asyncio.run(tailer.aread_message(Leg)) == {"symbol": "EUR"}
    assert tailer.topics("LDN").read_message(Leg) == {"symbol": "USD"}
