"""
A life that reads through the ring in the build with fault points.

Children of it put messages in and die; only this process drains them. Says ``puts text`` before a
write, ``put text`` when it returned, and ``got index text`` for what it has read.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import quire
import quire._native
from life_server import say, serve

SMALL = 65_536
MESSAGES = 12
POLLS = 1000
PATIENCE_S = 300.0
DIRECT = "direct"


def live(path: Path, form: str, name: str) -> None:
    """Read what children put in and what the one before them left unfinished."""
    with (
        quire.open(
            path,
            block_bytes=SMALL,
            ring=quire.RingOptions(read_buffer_mode="async", capacity_bytes=SMALL),
        ) as queue,
        queue.tailer() as tailer,
    ):
        if form == "poll":
            poll(queue, tailer)
            return
        leave(path, queue, f"{name} cut short", "ring.claim.cas:3:kill")
        leave(path, queue, name)
        read_up_to(tailer, f"{name} {MESSAGES - 1} ")


def poll(queue: quire.JournalQueue, tailer: quire.JournalTailer) -> None:
    """Say how often the ring was touched while there was nothing to read."""
    queue.appender().write_text(DIRECT)
    assert tailer.read_text() == DIRECT
    assert tailer.read() is None
    before = touched()
    for _ in range(POLLS):
        assert tailer.read() is None
    say("polled", touched() == before)


def touched() -> dict[str, int]:
    """Count the steps and system calls of a ring and of its lock."""
    hits = dict(vars(quire._native)["fault_hits"]())
    return {it: hits[it] for it in hits if it.startswith(("ring.", "record-lock."))}


def leave(path: Path, queue: quire.JournalQueue, name: str, fault: str = "") -> None:
    """Have a child put messages in and die, while nobody can drain them."""
    with queue.appender() as direct, direct.writing_document() as document:
        document.write(DIRECT, 1)
        pid = os.fork()
        if not pid:
            put(path, name, fault)
        os.waitpid(pid, 0)


def put(path: Path, name: str, fault: str) -> None:
    """Put messages in; does not return."""
    vars(quire._native)["set_fault"](fault)
    busy = quire.open(path, buffer_mode="async").appender()
    for number in range(MESSAGES):
        text = f"{name} {number} ".ljust(1000 * (number % 3))
        say("puts", text)
        busy.write_bytes(text.encode())
        say("put", text)
    os.kill(os.getpid(), signal.SIGKILL)


def read_up_to(tailer: quire.JournalTailer, last: str) -> None:
    """Read until a message that begins so."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        excerpt = tailer.read()
        if excerpt is None:
            time.sleep(0.001)
            continue
        say("got", excerpt.index, excerpt.data.decode("latin-1"))
        if excerpt.data.startswith(last.encode()):
            return
    raise AssertionError("a message in the ring is not read")


if __name__ == "__main__":
    serve(live)
