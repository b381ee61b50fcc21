"""Three services in a row: each reads a queue, and writes what its handler calls to the next."""

from tempfile import TemporaryDirectory
from typing import Protocol

import quire


class Orders(Protocol):
    def order(self, number: int, amount: float) -> None: ...


class Check:
    limit = 1_000.0

    def __init__(self, out: Orders) -> None:
        self.out = out

    def order(self, number: int, amount: float) -> None:
        if amount < self.limit:
            self.out.order(number, amount)


class Total(Check):
    total = 0.0

    def order(self, number: int, amount: float) -> None:
        self.total += amount
        self.out.order(number, self.total)


with TemporaryDirectory() as folder:
    a, b, c, d = (quire.open(f"{folder}/{name}", source_id=ord(name)) for name in "abcd")
    for number, amount in enumerate([250.0, 5_000.0, 500.0]):
        a.appender().method_writer(Orders).order(number, amount)
    for handler, source, output in (Check, a, b), (Total, b, c), (Check, c, d):
        with quire.service(inputs=[source], output=output, handler=handler) as service:
            while service.run_once():
                pass
    print(*map(quire.Excerpt.to_yaml, d.tailer()), sep="\n")  # each with where it comes from
