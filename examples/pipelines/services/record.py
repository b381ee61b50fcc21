"""
Three services in a row, each in a process of its own, and orders that go through them.

    PYTHONPATH=. python examples/pipelines/services/record.py --orders 20000

Every queue has a source id, so every message tells its history: where it came from, and when each
service read and wrote. The queues are in build/pipelines/services/queues, or in another folder
(--dir): what a former run left there is deleted, a folder that holds anything else is left alone.
"""

import argparse
import random
import signal
import time
from multiprocessing import get_context
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from typing import Protocol

from demo.folder import make_anew

import quire

FOLDER = Path(__file__).parents[3] / "build" / "pipelines" / "services" / "queues"
NAMES = ("orders", "checked", "priced", "routed")  # the first is written by the producer
ROLL_CYCLE = "FAST_DAILY"


class Orders(Protocol):
    def order(self, number: int, quantity: int, amount: float) -> None: ...


class Check:
    """Leaves out orders of nothing."""

    def __init__(self, out: Orders) -> None:
        self.out = out

    def order(self, number: int, quantity: int, amount: float) -> None:
        if quantity > 0:
            self.out.order(number, quantity, amount)


class Price(Check):
    """Works for a while: what an order costs is a sum over its quantity."""

    def order(self, number: int, quantity: int, amount: float) -> None:
        self.out.order(number, quantity, sum(amount / (1 + n) for n in range(quantity)))


class Route(Check):
    """Hands on what comes."""

    def order(self, number: int, quantity: int, amount: float) -> None:
        self.out.order(number, quantity, amount)


def opened(folder: Path, name: str) -> quire.JournalQueue:
    return quire.open(folder / name, source_id=NAMES.index(name) + 1, roll_cycle=ROLL_CYCLE)


def serve(ready: Semaphore, folder: Path, handler: type[Check], source: str, output: str) -> None:
    with (
        opened(folder, source) as read,
        opened(folder, output) as written,
        quire.service(inputs=[read], output=written, handler=handler) as service,
    ):
        signal.signal(signal.SIGTERM, lambda *_: service.stop())
        ready.release()
        service.run(quire.pausers.balanced(max_ms=1))


def record(folder: Path, orders: int, burst: int = 20) -> int:
    """Send *orders* orders in bursts through the services; return how many came out."""
    make_anew(folder)
    for name in NAMES:
        opened(folder, name).close()
    context = get_context("spawn")
    ready = context.Semaphore(0)
    rows = zip((Check, Price, Route), NAMES, NAMES[1:], strict=False)
    services = [
        context.Process(target=serve, args=(ready, folder, *row), daemon=True) for row in rows
    ]
    for service in services:
        service.start()
    for _ in services:
        ready.acquire()
    random.seed(2013)
    expected = 0
    with opened(folder, NAMES[0]) as queue, opened(folder, NAMES[-1]) as last:
        writer = queue.appender().method_writer(Orders)
        for number in range(orders):
            quantity = random.choice((0, 1, 2, 5, 10, 100, 1000))  # noqa: S311 - no secret
            writer.order(number, quantity, 100.0)
            expected += quantity > 0
            if number % burst == burst - 1:
                time.sleep(0.002)
        with last.tailer() as tailer:
            for _ in range(expected):
                tailer.wait(60)
                tailer.read()
    for service in services:
        service.terminate()
        service.join()
    return expected


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, default=FOLDER)
    parser.add_argument("--orders", type=int, default=20_000)
    chosen = parser.parse_args()
    print(f"{record(chosen.dir, chosen.orders):,} orders came out; the queues are in {chosen.dir}")
