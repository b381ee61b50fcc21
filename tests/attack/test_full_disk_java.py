"""A JVM and Quire on one small disk, filled to the last byte: the JVM dies, the queue does not.

The JVM stores into pages that it never got. It notices late: the message that it wrote last has a
hole, even if it reported it as written. All before it is whole, for everybody.
"""

from __future__ import annotations

import gc
import hashlib
import re
from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer, JavaProcess, Option
from queues import UNLOCKED, WRITE_LOCK, payloads, problems_of
from quire_peer import Message
from small_disk import KIB, fill, is_no_space, make_room, on_small_disk
from tally import Tally, scaled

DISKS = scaled(4, 60)
DISK = 1024 * KIB
BLOCK = 64 * KIB
LONGEST = (60, 200, 3000)
START_S = 300.0
QUIRES = b"of Quire"
ACK = re.compile("[0-9a-f]+ [0-9]+")

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900 + 30 * DISKS)]


def test_a_jvm_that_dies_of_a_full_disk_takes_nothing_along(tmp_path: Path, tally: Tally) -> None:
    peer = JavaPeer(run_timeout_s=300)

    def work(disk: Path) -> int:
        for leave in range(DISKS):
            one_death(peer, disk, disk / f"queue{leave}", leave)
        return DISKS

    count = on_small_disk(tmp_path / "disk", DISK, work)
    tally(
        "A JVM that dies of a full disk damages no earlier message",
        count,
        "disks filled under a JVM",
    )


def one_death(peer: JavaPeer, disk: Path, path: Path, leave: int) -> None:
    with (
        quire.open(path, roll_cycle="TEST8_DAILY", block_bytes=BLOCK) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        appender.write_bytes(QUIRES)
        acked = fill_under(peer, disk, path, leave)
        seen = read_until_hole(tailer)
        assert len(seen) >= len(acked), "all but Java's last one, and the first of Quire"
        with quire.open(path, read_only=True) as reader, reader.tailer() as fresh:
            assert read_until_hole(fresh) == seen
        refused_for_space(appender)
        assert queue.table_value(WRITE_LOCK) == UNLOCKED
        make_room(disk)
        appender.write_bytes(QUIRES)
        everything = [*seen, *read_until_hole(tailer)]
    assert_whole(everything, acked)
    # The JVM dies with part of a message stored, whose header is not: that is behind the end.
    assert [it for it in problems_of(path) if not it.startswith("bytes behind")] == []
    again = produce(peer, path, 2, 3)
    assert_read_by_all(peer, path, [data for _, data in everything], again)
    for file in path.iterdir():
        file.unlink()
    gc.collect()  # exceptions have it mapped


def options(path: Path) -> dict[str, Option]:
    return {"dir": path, "block_size": BLOCK, "timeout_ms": 1000, "ack": True}


def fill_under(peer: JavaPeer, disk: Path, path: Path, leave: int) -> list[tuple[int, int]]:
    """Fill the disk while a JVM appends, until that dies; return what it reported as written."""
    longest = LONGEST[leave % len(LONGEST)]
    java, *rest = peer.command(
        "produce", id=1, count=10**9, pause_us=100, max_length=longest, **options(path)
    )
    report = f"-XX:ErrorFile={path.parent.parent / 'hs_err.log'}"
    command = [java, "-XX:TieredStopAtLevel=1", "-XX:-CreateCoredumpOnCrash", report, *rest]
    with JavaProcess(command) as process:
        process.expect("READY", START_S)
        lines = [process.read_line() for _ in range(5)]
        fill(disk, leave)
        lines += process.rest(START_S)
        assert process.wait() != 0
        # An InternalError, or where the JVM's own code met it the report of its end, on stdout.
        lines_printed = [*process.stderr_text.splitlines(), *(it for it in lines if it)]
    assert any("a fault occurred" in it or "SIGBUS" in it for it in lines_printed), lines_printed[
        -20:
    ]
    return [numbers(line) for line in lines if line and ACK.fullmatch(line)]


def numbers(line: str) -> tuple[int, int]:
    index, counter = line.split()
    return int(index, 16), int(counter)


def produce(peer: JavaPeer, path: Path, producer: int, count: int) -> list[tuple[int, int]]:
    """Append with a new JVM."""
    _ready, *lines, _done = peer.run("produce", id=producer, count=count, **options(path))
    return [numbers(line) for line in lines]


def read_until_hole(tailer: quire.JournalTailer) -> list[tuple[int, bytes]]:
    """Read on to the end, or to an error that says why there is no more."""
    seen: list[tuple[int, bytes]] = []
    try:
        seen.extend((excerpt.index, bytes(excerpt.data)) for excerpt in tailer)
    except OSError as error:
        if not is_no_space(error, ".cq4") or "hole" not in str(error):
            raise
    return seen


def refused_for_space(appender: quire.JournalAppender) -> None:
    for _ in range(3):
        with pytest.raises(OSError, match="make room") as caught:
            appender.write_bytes(b"x" * 15_000)
        assert is_no_space(caught.value, ".cq4"), caught.value


def assert_whole(everything: list[tuple[int, bytes]], acked: list[tuple[int, int]]) -> None:
    """Quire's first and last, and between them Java's: one more than it reported, at most."""
    (start, first), *javas, (_, last) = everything
    assert (first, last) == (QUIRES, QUIRES)
    assert [index - start for index, _ in everything] == [*range(len(everything))]
    assert len(acked) <= len(javas) <= len(acked) + 1
    found = [Message.of_payload(*it) for it in javas[: len(acked) - 1]]
    assert found == [Message(index, 1, counter) for index, counter in acked[:-1]]
    assert javas[len(acked) - 1][0] == acked[-1][0]


def assert_read_by_all(
    peer: JavaPeer, path: Path, before: list[bytes], again: list[tuple[int, int]]
) -> None:
    with quire.open(path) as queue, queue.tailer() as tailer:
        excerpts = list(tailer)
        everything = payloads(queue)
    assert everything[: len(before)] == before
    javas = [Message.of_excerpt(excerpt) for excerpt in excerpts[len(before) :]]
    assert javas == [Message(index, 2, counter) for index, counter in again]
    found = peer.check(path, block_size=BLOCK, timeout_ms=1000)
    for name in ("count", "backward", "moved", "countExcerpts", "entryCount"):
        assert found[name] == len(everything), name
    assert found["sha256"] == hashlib.sha256(b"".join(everything)).hexdigest()
