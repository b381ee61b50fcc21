"""
A life of a reader that sleeps in the build with fault points, and of an appender that wakes it.

Says ``ready`` once all is done that does not concern sleeping, the number and text of each message
that was appended, and ``read`` and the text of each that was read.
"""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import quire
from life_server import say, serve
from queues import START_MS

MESSAGES = 4
TASK = "task"
SIDE_FILE = "waiting.quire"
LOOKS_AGAIN_MS = 1000  # an appender, for the side file
SHOWN_S = 1.0  # a reader without a side file shows nowhere that it sleeps


def live(path: Path, form: str, name: str) -> None:
    """Have a reader sleep before each message, in a thread or in the task of an event loop."""
    clock = quire.ManualClock(START_MS)
    first = {"first": 0, "second": 100}[name]
    with (
        quire.open(path, clock=clock, pretouch=False) as written,
        quire.open(path, clock=clock, pretouch=False) as read,
        written.appender() as appender,
        read.tailer() as tailer,
    ):
        append(appender, first, name)
        for payload in tailer.payloads():
            say("read", payload.decode())
        say("ready")
        receive = receive_in_task if form == TASK else receive_in_thread
        for number in range(first + 1, first + MESSAGES):
            reader = threading.Thread(target=receive, args=(tailer,))
            reader.start()
            wait_until_it_sleeps(path)
            clock.advance(LOOKS_AGAIN_MS)
            append(appender, number, name)
            reader.join()


def append(appender: quire.JournalAppender, number: int, name: str) -> None:
    text = f"{name} {number} "
    appender.write_bytes(text.encode())
    say(number, text)


def receive_in_thread(tailer: quire.JournalTailer) -> None:
    tailer.wait()
    payload = tailer.read_bytes()
    assert payload is not None
    say("read", payload.decode())


def receive_in_task(tailer: quire.JournalTailer) -> None:
    payload = asyncio.run(tailer.aread_bytes())
    assert payload is not None
    say("read", payload.decode())


def wait_until_it_sleeps(path: Path) -> None:
    ends = time.monotonic() + SHOWN_S
    while not is_asleep(path) and time.monotonic() < ends:
        time.sleep(0.001)


def is_asleep(path: Path) -> bool:
    """Return whether the word in the side file says that a reader sleeps."""
    side_file = path / SIDE_FILE
    content = side_file.read_bytes() if side_file.exists() else b""
    return int.from_bytes(content[8:12], "little") % 2 == 1


if __name__ == "__main__":
    serve(live)
