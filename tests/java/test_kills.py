"""Writers of one kind are killed at random instants while those of the other go on.

What an append had returned is in the queue, once and in order, however many processes died.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeAlias

import pytest

import quire
import quire_peer
from java_peer import JavaPeer, JavaProcess, Option
from queues import payloads
from quire_peer import Message
from tally import Tally, limit_s, scaled

KILLS = scaled(20, 1000)
PROMISE = "Killed processes lose nothing acknowledged, and what they left is repaired."

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(limit_s(900, 3000))]

MIB = 1024 * 1024
SURVIVOR = 0  # the number of the producer that goes on; victims are 1 to KILLS
START_S = 300.0
SEQUENCES = 0xFFFFFFFF

Acks: TypeAlias = dict[int, list[Message]]
Starter: TypeAlias = Callable[[int], JavaProcess]


@pytest.fixture(scope="module")
def peer() -> JavaPeer:
    return JavaPeer(run_timeout_s=300)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A queue that rolls every second: there are many rolls to be killed at."""
    with quire.open(tmp_path, roll_cycle="TEST_SECONDLY", block_bytes=MIB):
        return tmp_path


def test_quire_outlives_java_writers_that_are_killed(
    peer: JavaPeer, path: Path, tally: Tally
) -> None:
    """Java holds the lock for two timeouts when it meets a roll file that was never finished."""

    def start(producer: int) -> JavaProcess:
        options: dict[str, Option] = {"count": 10**9, "pause_us": 200, "block_size": MIB}
        java, *rest = peer.command(
            "produce", dir=path, id=producer, timeout_ms=1000, ack=True, **options
        )
        return JavaProcess([java, "-XX:TieredStopAtLevel=1", *rest])  # starts faster

    seen: list[Message] = []
    acked: Acks = {SURVIVOR: []}
    rng = random.Random(SURVIVOR)  # noqa: S311 - padding
    with (
        killed(start, at_once=4, lives_s=0.3, rolls_s=0.02) as victims,
        quire.open(path, block_bytes=MIB) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        while not all(victim.done() for victim in victims):
            counter = len(acked[SURVIVOR])
            index = appender.write_bytes(quire_peer.encode(SURVIVOR, counter, 100, rng))
            acked[SURVIVOR].append(Message(index, SURVIVOR, counter))
            seen += map(Message.of_excerpt, tailer)
            time.sleep(0.001)
        seen += map(Message.of_excerpt, tailer)
        acked |= dict(enumerate((victim.result() for victim in victims), 1))
    assert_nothing_lost(seen, acked)
    assert_sound(peer, path, len(seen))
    assert any(acked[victim] for victim in range(1, KILLS + 1))
    tally(PROMISE, KILLS, "kills of Java writers beside a Quire writer")


def test_java_outlives_quire_writers_that_are_killed(
    peer: JavaPeer, path: Path, tally: Tally
) -> None:
    def start(producer: int) -> JavaProcess:
        inside: dict[str, Option] = {"inside_us": 300} if producer % 2 else {"burst": 30}
        return quire_peer.start(
            "produce", dir=path, id=producer, count=10**9, pause_us=1000, ack=True, **inside
        )

    producing = peer.start(
        "produce", dir=path, id=SURVIVOR, count=10**9, pause_us=1000, timeout_ms=1000, ack=True
    )
    with producing as survivor, peer.start("follow", dir=path, limit_ms=10**6) as follower:
        for process in (survivor, follower):
            process.expect("READY", START_S)
        with killed(start, at_once=3, lives_s=0.1, rolls_s=0.002) as victims:
            acked: Acks = dict(enumerate((victim.result() for victim in victims), 1))
        last_of_victims = max(it[-1].index for it in acked.values() if it)
        wait_for_more(path, last_of_victims)
        survivor.kill()
        acked[SURVIVOR] = acks(survivor, SURVIVOR)
        with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
            seen = [*map(Message.of_excerpt, tailer)]
        lines = follower.read_until(f"{seen[-1].index:x} ", START_S)
    assert [*map(Message.of_line, lines)] == seen[:-1]
    assert acked[SURVIVOR][-1].index > last_of_victims
    assert_nothing_lost(seen, acked)
    assert_sound(peer, path, len(seen))
    tally(PROMISE, KILLS, "kills of Quire writers beside a Java writer")


def wait_for_more(path: Path, index: int) -> None:
    """Return when the survivor has appended after *index*, and again: the first is acknowledged."""
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        later = (Message.of_excerpt(it) for it in tailer.follow() if it.index > index)
        own = (it for it in later if it.producer == SURVIVOR)  # a victim's last may be there, too
        assert len([*islice(own, 2)]) == 2


def test_a_document_that_java_left_open_is_written_over(peer: JavaPeer, path: Path) -> None:
    with (
        quire.open(path) as queue,
        queue.appender() as appender,
        peer.start("produce", dir=path, count=5, hold_open_document=True) as java,
    ):
        java.read_until("HOLDING", START_S)
        java.kill()
        index = appender.write_bytes(b"short")
        assert appender.write_bytes(b"long " * 20) == index + 1
        seen = payloads(queue)
    assert seen[5:] == [b"short", b"long " * 20]
    assert_sound(peer, path, len(seen))


def test_java_goes_on_after_quire_was_killed_inside_a_document(
    peer: JavaPeer, tmp_path: Path
) -> None:
    """Its file is of the day: the clock of `tailer-script` stands still."""
    daily: dict[str, Option] = {"roll_cycle": "TEST4_DAILY", "timeout_ms": 1000}
    with peer.start("tailer-script", dir=tmp_path, **daily) as waiting:
        assert waiting.ask("appendText before", START_S)
        for text in ("waited", "waited again"):
            with quire_peer.start("produce", dir=tmp_path, count=0, hold="document") as process:
                process.read_until("HOLDING")
                process.kill()
            start = time.monotonic()
            assert not waiting.ask(f"appendText {text}").startswith("!")
            assert time.monotonic() - start > 1.0
        with quire_peer.start("produce", dir=tmp_path, count=0, hold="lock") as process:
            process.read_until("HOLDING")
            process.kill()
        peer.run("write", dir=tmp_path, count=1)  # a new JVM looks as it opens the queue
    with quire.open(tmp_path, read_only=True) as queue, queue.tailer() as tailer:
        texts = [tailer.read_text() for _ in range(5)]
    assert texts == ["before", "waited", "waited again", "message 0", None]
    assert_sound(peer, tmp_path, 4)


@contextmanager
def killed(
    start: Starter, *, at_once: int, lives_s: float, rolls_s: float
) -> Generator[list[Future[list[Message]]]]:
    """The fates of that many victims, so many at once: each is what its appends had returned."""
    pool = ThreadPoolExecutor(at_once)
    try:
        yield [
            pool.submit(live_and_die, start, victim, lives_s, rolls_s)
            for victim in range(1, KILLS + 1)
        ]
    finally:
        pool.shutdown(cancel_futures=True)


def live_and_die(start: Starter, victim: int, lives_s: float, rolls_s: float) -> list[Message]:
    """Of four, one is killed while it starts, one as the queue rolls, two at any time."""
    rng = random.Random(victim)  # noqa: S311 - another instant for each
    with start(victim) as process:
        if victim % 4 == 0:
            time.sleep(rng.uniform(0.5, 3) * lives_s)
        else:
            process.expect("READY", START_S)
            rolls_in_s = 1 - time.time() % 1
            roll = rolls_in_s + rng.uniform(-0.0005, rolls_s)
            time.sleep(max(0.0, roll) if victim % 4 == 1 else rng.uniform(0, lives_s))
        process.kill()
        return acks(process, victim)


def acks(process: JavaProcess, producer: int) -> list[Message]:
    """What its appends had returned before it was killed."""
    pairs = [line.split() for line in process.rest() if line != "READY"]
    return [Message(int(index, 16), producer, int(counter)) for index, counter in pairs]


def assert_nothing_lost(seen: list[Message], acked: Acks) -> None:
    """Nothing is there twice, out of order, or missing but a message that nobody heard of."""
    for before, after in pairwise(seen):
        follows = after.index == before.index + 1
        first = after.index & SEQUENCES == 0 and after.index > before.index
        assert follows or first, (before, after)
    assert {message.producer for message in seen} <= acked.keys()
    for producer, returned in acked.items():
        own = [message for message in seen if message.producer == producer]
        assert [message.counter for message in own] == list(range(len(own)))
        assert own[: len(returned)] == returned
        assert len(own) <= len(returned) + 1


def assert_sound(peer: JavaPeer, path: Path, count: int) -> None:
    """Java agrees, once an append has ended the files that were left without a marker."""
    with quire.open(path) as queue:
        queue.appender().write_bytes(b"last")
        everything = payloads(queue)
    assert len(everything) == count + 1
    found = peer.check(path)
    for name in ("count", "backward", "moved", "countExcerpts", "entryCount"):
        assert found[name] == len(everything), name
    assert found["sha256"] == hashlib.sha256(b"".join(everything)).hexdigest()
