"""Three services in a row, each in a process of its own: `service_peer.py DIRECTORY STAGE`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Protocol

import quire
from quire.pausers import Pauser


class Orders(Protocol):
    def order(self, number: int, amount: int) -> None: ...


class Fills(Protocol):
    def fill(self, number: int, part: int) -> None: ...
    def done(self, number: int) -> None: ...


class Sums(Protocol):
    def sums(self, number: int, parts: int, total: int) -> None: ...


class Booking(Protocol):
    def book(self, line: str) -> None: ...


class Book(Protocol):
    def on(self, account: int) -> Booking: ...
    def balance(self, total: int) -> None: ...


class Splitting:
    """Some outputs for an input, or none; without state."""

    def __init__(self, out: Fills) -> None:
        self.out = out

    def order(self, number: int, amount: int) -> None:
        for part in range(amount % 5):
            self.out.fill(number, part * amount)
        if amount % 3:
            self.out.done(number)


class Summing:
    """One output for some inputs, by state."""

    def __init__(self, out: Sums) -> None:
        self.out = out
        self.parts = 0
        self.total = 0

    def fill(self, number: int, part: int) -> None:
        self.parts += 1
        self.total = (self.total * 31 + part + number) % 1_000_000_007

    def done(self, number: int) -> None:
        self.out.sums(number, self.parts, self.total)


class Booked:
    """Several outputs for an input, chained and not, by state."""

    def __init__(self, out: Book) -> None:
        self.out = out
        self.balance = 0

    def sums(self, number: int, parts: int, total: int) -> None:
        self.balance += parts
        self.out.on(number % 7).book(f"{number}: {total}")
        self.out.on(number % 5).book(f"{number}: {self.balance}")
        if number % 4 == 0:
            self.out.balance(self.balance)


STAGES = (Splitting, Summing, Booked)


def create(directory: Path) -> None:
    """Create the queue of the orders and the three outputs."""
    for stage in range(len(STAGES) + 1):
        quire.open(directory / str(stage), source_id=stage + 1, block_bytes=2**18).close()


def service(directory: Path, stage: int) -> quire.Service:
    return quire.service(
        inputs=[directory / str(stage)],
        output=directory / str(stage + 1),
        handler=STAGES[stage],
    )


def start(directory: Path, stage: int) -> subprocess.Popen[bytes]:
    """Start a stage in a process of its own."""
    return subprocess.Popen([sys.executable, __file__, str(directory), str(stage)])


def main() -> None:
    directory, stage = sys.argv[1:]
    service(Path(directory), int(stage)).run(Pauser(yield_count=10, min_s=0.000_1, max_s=0.001))


if __name__ == "__main__":
    main()
