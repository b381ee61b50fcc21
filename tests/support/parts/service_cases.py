"""A service between two queues, and what it writes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Protocol

import quire

FIRST, SECOND, OUTPUT = 1, 2, 9


class Numbers(Protocol):
    def number(self, value: int) -> None: ...


class Words(Protocol):
    def word(self, value: str) -> None: ...


class Named(Protocol):
    def total(self, value: int) -> None: ...


class Results(Protocol):
    def total(self, value: int) -> None: ...
    def both(self, word: str, value: int) -> None: ...
    def to(self, name: str) -> Named: ...


class Adder:
    """Adds up, and writes as many totals as the number says; its last one through a chain."""

    def __init__(self, out: Results) -> None:
        self.out = out
        self.sum = 0
        self.fails_at: int | None = None

    def number(self, value: int) -> None:
        self.sum += value
        for count in range(value % 4):
            if self.fails_at == value:
                raise BrokenError
            if count == 2:
                self.out.to("third").total(self.sum)
            else:
                self.out.total(self.sum * 10 + count)

    def word(self, value: str) -> None:
        if value:
            self.out.both(value, self.sum)
        else:
            self.sum *= 2


class BrokenError(Exception):
    """A handler that fails."""


@dataclasses.dataclass
class Place:
    """Two inputs and an output."""

    first: quire.JournalQueue
    second: quire.JournalQueue
    output: quire.JournalQueue

    def numbers(self, *values: int) -> None:
        with self.first.appender() as appender:
            for value in values:
                appender.method_writer(Numbers).number(value)

    def words(self, *values: str) -> None:
        with self.second.appender() as appender:
            for value in values:
                appender.method_writer(Words).word(value)

    def service(self, handler: object = Adder, **options: Any) -> quire.Service:  # noqa: ANN401
        options = {"inputs": [self.first]} | options
        return quire.service(output=self.output, handler=handler, **options)

    def results(self) -> list[str]:
        """What the output holds, without its history."""
        found: list[str] = []

        class Into:
            def total(self, value: int) -> None:
                found.append(f"total {value}")

            def both(self, word: str, value: int) -> None:
                found.append(f"both {word} {value}")

            def to(self, name: str) -> Into:
                found.append(f"to {name}")
                return self

        reader = self.output.tailer().method_reader(Into())
        while reader.read_one():
            pass
        return found


class opened:  # noqa: N801 - a context manager
    def __init__(self, path: Path, **options: Any) -> None:  # noqa: ANN401
        self._queues = [
            quire.open(path / f"{source_id}", source_id=source_id, block_bytes=2**16, **options)
            for source_id in (FIRST, SECOND, OUTPUT)
        ]

    def __enter__(self) -> Place:
        return Place(*self._queues)

    def __exit__(self, *_: object) -> None:
        for queue in self._queues:
            queue.close()


def drain(service: quire.Service) -> quire.Service:
    while service.run_once():
        pass
    return service
