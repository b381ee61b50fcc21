"""What tests of event loops need: a held write lock, a count of the loop's turns, a wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

import quire


@contextmanager
def held(queue: quire.JournalQueue) -> Generator[Callable[[], None]]:
    """Have another thread hold the write lock until what this gives is called."""
    opened, close = threading.Event(), threading.Event()

    def hold() -> None:
        with queue.appender().writing_document() as document:
            document.write_bytes(b"held")
            opened.set()
            close.wait()

    holder = threading.Thread(target=hold)

    def let_go() -> None:
        close.set()
        holder.join()

    holder.start()
    opened.wait()
    try:
        yield let_go
    finally:
        let_go()


class Ticks:
    """Counts how often the loop came round."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.count += 1

    async def more(self, by: int = 50) -> None:
        wanted = self.count + by
        while self.count < wanted:  # noqa: ASYNC110 - it is the loop that is looked at
            await asyncio.sleep(0)


@asynccontextmanager
async def ticking() -> AsyncGenerator[Ticks]:
    ticks = Ticks()
    task = asyncio.create_task(ticks.run())
    try:
        yield ticks
    finally:
        task.cancel()


async def until(is_so: Callable[[], bool]) -> None:
    """The test's own time limit ends this."""
    while not is_so():  # noqa: ASYNC110 - nobody says so
        await asyncio.sleep(0.001)
