"""`print_all`: calls of an interface as YAML, without a queue."""

from __future__ import annotations

import abc
import dataclasses
import io
from typing import Generic, Protocol, TypeVar

import pytest

import quire

T_co = TypeVar("T_co", covariant=True)


@quire.message(alias="PrintedTrade")
@dataclasses.dataclass
class Trade:
    symbol: str
    price: float
    quantity: quire.types.int32 = 1


class Destination(Protocol):
    def deliver(self, text: str, /) -> None: ...
    def send(self, trade: Trade) -> None: ...


class Market(abc.ABC):
    @abc.abstractmethod
    def trade(self, trade: Trade) -> None: ...
    @abc.abstractmethod
    def level(self, symbol: str, price: float = 1.0) -> None: ...
    @abc.abstractmethod
    def clear(self) -> None: ...
    @abc.abstractmethod
    def to(self, name: str) -> Destination: ...


class Router(Protocol, Generic[T_co]):
    def via(self, key: int) -> T_co: ...


def test_each_call_is_a_yaml_document(capsys: pytest.CaptureFixture[str]) -> None:
    market = quire.calls.print_all(Market)

    market.trade(Trade("EURUSD", 1.25))
    market.level("GBPUSD", price=1.5)
    market.level("GBPUSD")
    market.clear()
    market.to("x").deliver("hello")

    assert isinstance(market, Market)
    assert capsys.readouterr().out == (
        "trade: {\n  symbol: EURUSD,\n  price: 1.25,\n  quantity: 1\n}\n...\n"
        "level: [\n  GBPUSD,\n  1.5\n]\n...\n"
        "level: [\n  GBPUSD,\n  1\n]\n...\n"
        'clear: ""\n...\n'
        "to: x\ndeliver: hello\n...\n"
    )


def test_it_prints_what_a_queue_holds(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    file = io.StringIO()
    for market in (
        quire.calls.print_all(Market, file),
        appender.method_writer(Market),
    ):
        market.trade(Trade("EURUSD", 1.25, 7))
        market.to("x").send(Trade("GBPUSD", 0.5))

    held = [quire.types.to_yaml(payload) + "...\n" for payload in queue.tailer().payloads()]
    assert file.getvalue() == "".join(held)


def test_a_chain_is_printed_with_its_last_call() -> None:
    file = io.StringIO()
    router = quire.calls.print_all(Router[Destination], file)

    first = router.via(1)
    second = router.via(2)
    assert not file.getvalue()

    second.deliver("b")
    first.deliver("a")
    assert file.getvalue() == "via: 2\ndeliver: b\n...\nvia: 1\ndeliver: a\n...\n"


def test_a_reader_prints_what_it_reads(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.method_writer(Destination).deliver("read")
    file = io.StringIO()

    reader = queue.tailer().method_reader(quire.calls.print_all(Destination, file))

    while reader.read_one():
        pass
    assert file.getvalue() == "deliver: read\n...\n"


def test_what_cannot_stand_in_a_message_is_refused() -> None:
    market = quire.calls.print_all(Market, io.StringIO())
    with pytest.raises(TypeError, match="missing=symbol"):
        market.level()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        quire.calls.print_all(object)
