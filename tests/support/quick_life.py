"""
A life of a Quick-Queue in the build with fault points: two writers, restarts, a fault.

Says each index it was given, then how often each point was hit. The life after it has no fault.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import quire
from life_server import say, serve

PAGE_BYTES = 64
ROUNDS = 2
MESSAGES = 4
PRODUCERS = {"single": (None,), "shared": ("AA0", "BB1")}


def live(path: Path, form: str, name: str) -> None:
    """Write with each writer in turn, and open them again in between."""
    for number in range(ROUNDS):
        # As after a restart of the machine: what a power cut took is looked for.
        for index in path.glob("*.q*x"):
            os.utime(index, (0, 0))
        with quire.quick_queue.open(path, page_bytes=PAGE_BYTES) as queue:
            with ExitStack() as opened:
                writers = [
                    opened.enter_context(queue.appender(producer)) for producer in PRODUCERS[form]
                ]
                for message in range(MESSAGES * len(writers)):
                    writer = writers[message % len(writers)]
                    payload = f"{name} {number} {message} ".encode() * (message + 1)
                    say(writer.write_bytes(payload), payload.decode())
                queue.force()
            with queue.tailer() as tailer:
                tailer.read_many(1000)


if __name__ == "__main__":
    serve(live)
