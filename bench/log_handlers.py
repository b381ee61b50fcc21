"""
What a call of `logger.info` costs with each handler: `python -m bench.log_handlers`.

Each handler gets the same records in turn, in several rounds; the table of docs/logging.md shows
the median of the rounds. `none` is a handler that drops the record: what the standard library
itself costs. Behind the queue handler nobody reads: its listener's work comes on top.
"""

from __future__ import annotations

import argparse
import logging
import logging.handlers
import queue
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import quire.logging
from bench import parts, tables

_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class _Nothing(logging.Handler):
    """Drops every record."""

    def emit(self, record: logging.LogRecord) -> None:
        pass


_KINDS: dict[str, Callable[[Path], logging.Handler]] = {
    "none": lambda _: _Nothing(),
    "quire.logging.Handler": lambda folder: quire.logging.Handler(folder / "queue"),
    "logging.FileHandler": lambda folder: logging.FileHandler(folder / "log"),
    "logging.handlers.QueueHandler": lambda _: logging.handlers.QueueHandler(queue.SimpleQueue()),
}


def main() -> None:
    """Measure every handler in each place and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="records of a round")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    places = parts.places()
    found: dict[str, list[list[float]]] = {name: [[] for _ in places] for name in _KINDS}
    for _ in range(asked.rounds):
        for column, place in enumerate(places):
            for name, kind in _KINDS.items():
                found[name][column].append(_micros(kind, place, asked.count))
    head = ("handler", *(f"us a record, {place}" for place in places))
    rows = [
        (f"`{name}`", *(f"{statistics.median(each):.2f}" for each in columns))
        for name, columns in found.items()
    ]
    print(tables.table(head, rows))


def _micros(kind: Callable[[Path], logging.Handler], place: Path, count: int) -> float:
    logger = logging.Logger("bench.orders")  # noqa: LOG001 - one that nobody else has
    with tempfile.TemporaryDirectory(dir=place) as folder:
        handler = kind(Path(folder))
        handler.setFormatter(logging.Formatter(_FORMAT))
        logger.addHandler(handler)
        logger.info("order %s filled at %s", -1, 1.0825)
        began = time.perf_counter_ns()
        for number in range(count):
            logger.info("order %s filled at %s", number, 1.0825)
        spent = time.perf_counter_ns() - began
        handler.close()
    return spent / count / 1000


if __name__ == "__main__":
    main()
