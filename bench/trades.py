"""The object of five fields that stands in messages, and the method that is called with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import quire
from bench.task import DISTINCT

SYMBOLS = ("EURUSD", "GBPUSD", "USDJPY", "AUDUSD", "EURGBP", "USDCHF", "NZDUSD", "EURJPY")


@quire.message
@dataclass
class Trade:
    """What BenchMethods of interop/ has under this name."""

    symbol: str
    id: int
    price: float
    quantity: int
    side: quire.types.int32


@quire.message
@dataclass(slots=True)
class SlottedTrade:
    """The same with slots."""

    symbol: str
    id: int
    price: float
    quantity: int
    side: quire.types.int32


@quire.message
@dataclass
class Noted(Trade):
    """The same with a text, to make it longer."""

    note: str = ""


class Market(Protocol):
    """The interface of the calls."""

    def trade(self, trade: Trade, /) -> None:
        """Take a trade."""


def trades() -> list[Trade]:
    """Return the distinct objects; the number of each is its id."""
    return [
        Trade(
            symbol=SYMBOLS[number % len(SYMBOLS)],
            id=number,
            price=100 + number % 10_000 / 100,
            quantity=number % 1000,
            side=number % 2,
        )
        for number in range(DISTINCT)
    ]
