"""Calls as messages, through three queues: each tells by its history where it comes from."""

from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Protocol

import quire


@quire.message
@dataclass
class Order:
    symbol: str
    price: float


class Orders(Protocol):
    def order(self, order: Order) -> None: ...


class Markup(Orders):
    def __init__(self, out: Orders) -> None:
        self.out = out

    def order(self, order: Order) -> None:
        self.out.order(Order(order.symbol, order.price + 0.25))


with TemporaryDirectory() as folder:
    a, b, c = (quire.open(f"{folder}/{number}", source_id=number) for number in (1, 2, 3))
    a.appender().method_writer(Orders).order(Order("EURUSD", 1.0))
    for source, output in (a, b), (b, c):
        reader = source.tailer().method_reader(Markup(output.appender().method_writer(Orders)))
        print("handled:", reader.read_one(), "another:", reader.read_one())
    tailer = c.tailer()
    print(next(tailer).to_yaml(), tailer.history, sep="\n")
