"""Writers of a Vanilla Chronicle are killed at random instants while one of the other kind goes on.

What an append had returned is in the queue, once and in order, however many processes died.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import pytest

import quire
import quire_peer
import vanilla_peer
from java_peer import JavaPeer, JavaProcess
from quire_peer import Message
from tally import Tally, limit_s, scaled
from vanilla_java import JAVA_BLOCKS, QUIRE_BLOCKS, java_messages, vanilla_java, vanilla_queue

KILLS = scaled(10, 500)
PROMISE = "Killed writers of a Vanilla Chronicle lose nothing acknowledged, and stop nobody."

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(limit_s(900, 3000))]

SURVIVOR = 0  # the number of the producer that goes on; victims are 1 to KILLS
START_S = 120.0
FOREVER = 10**9

Starter: TypeAlias = Callable[[int], JavaProcess]


@pytest.fixture(scope="module")
def java() -> JavaPeer:
    return vanilla_java()


def test_quire_outlives_java_writers_that_are_killed(
    java: JavaPeer, tmp_path: Path, tally: Tally
) -> None:
    def start(producer: int) -> JavaProcess:
        program, *rest = java.command(
            "produce", dir=tmp_path, id=producer, count=FOREVER, pause_us=500, **JAVA_BLOCKS
        )
        return JavaProcess([program, "-XX:TieredStopAtLevel=1", *rest])  # starts faster

    acked: list[Message] = []
    rng = random.Random(SURVIVOR)  # noqa: S311 - padding
    with vanilla_queue(tmp_path) as queue, queue.appender() as appender:
        with ThreadPoolExecutor(3) as pool:
            victims = killed(pool, start)
            while not all(victim.done() for victim in victims):
                payload = quire_peer.encode(SURVIVOR, len(acked), 100, rng)
                acked.append(Message(appender.write_bytes(payload), SURVIVOR, len(acked)))
                time.sleep(0.001)
        assert_nothing_lost(java, queue, acked + acks_of(victims))
    assert_the_same_after_a_rebuild(java, tmp_path)
    tally(PROMISE, KILLS, "kills of Java writers beside a Quire writer")


def test_java_outlives_quire_writers_that_are_killed(
    java: JavaPeer, tmp_path: Path, tally: Tally
) -> None:
    def start(producer: int) -> JavaProcess:
        return vanilla_peer.start(
            "produce",
            tmp_path,
            producer,
            FOREVER,
            200,
            **QUIRE_BLOCKS,
        )

    with java.start(
        "produce", dir=tmp_path, id=SURVIVOR, count=FOREVER, pause_us=1000, **JAVA_BLOCKS
    ) as survivor:
        survivor.expect("READY", START_S)
        with ThreadPoolExecutor(3) as pool:
            acked = acks_of(killed(pool, start))
        with vanilla_queue(tmp_path, read_only=True) as queue:
            wait_for_more(queue, max((it.index for it in acked), default=0))
            survivor.kill()
            acked += acks(survivor)
            assert_nothing_lost(java, queue, acked)
    assert_the_same_after_a_rebuild(java, tmp_path)
    tally(PROMISE, KILLS, "kills of Quire writers beside a Java writer")


def killed(pool: ThreadPoolExecutor, start: Starter) -> list[Future[list[Message]]]:
    return [pool.submit(live_and_die, start, victim) for victim in range(1, KILLS + 1)]


def live_and_die(start: Starter, victim: int) -> list[Message]:
    """One of four is killed while it starts, the others at any time after."""
    rng = random.Random(victim)  # noqa: S311 - another instant for each
    with start(victim) as process:
        if victim % 4 != 0:
            process.expect("READY", START_S)
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
        return acks(process)


def acks(process: JavaProcess) -> list[Message]:
    """What its appends had returned."""
    return [Message.of_line(line) for line in process.rest() if line != "READY"]


def acks_of(victims: list[Future[list[Message]]]) -> list[Message]:
    return [message for victim in victims for message in victim.result()]


def wait_for_more(queue: quire.vanilla.VanillaQueue, index: int) -> None:
    """Return when the survivor has appended after *index*."""
    for excerpt in queue.tailer().follow(timeout_s=START_S):
        message = Message.of_payload(excerpt.index, excerpt.data)
        if message.index > index and message.producer == SURVIVOR:
            return
    pytest.fail("the survivor appends no more")


def assert_nothing_lost(
    java: JavaPeer, queue: quire.vanilla.VanillaQueue, acked: list[Message]
) -> None:
    """What is there was acknowledged, but for the last message of each victim."""
    read = [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]
    seen = [Message.of_payload(*it) for it in read]
    assert [it.index for it in seen] == sorted({it.index for it in seen})
    assert java_messages(java, Path(queue.path)) == read
    for producer in {it.producer for it in [*seen, *acked]}:
        own = [it for it in seen if it.producer == producer]
        returned = [it for it in acked if it.producer == producer]
        assert [it.counter for it in own] == [*range(len(own))]
        assert own[: len(returned)] == returned
        assert len(own) <= len(returned) + 1


def assert_the_same_after_a_rebuild(java: JavaPeer, path: Path) -> None:
    """Messages without an entry are recovered, one for each victim at most; Java reads on."""
    before = java_messages(java, path)
    rebuilt = quire.vanilla.rebuild_index(path, files=quire.vanilla.FileOptions(**QUIRE_BLOCKS))
    assert sum(cycle.recovered for cycle in rebuilt) <= KILLS
    assert sum(cycle.dropped for cycle in rebuilt) == 0
    after = java_messages(java, path)
    assert len(after) == len(before) + sum(cycle.recovered for cycle in rebuilt)
    if not any(cycle.moved for cycle in rebuilt):
        assert set(before) <= set(after)
    java.run("write", dir=path, count=1, **JAVA_BLOCKS)
    with vanilla_queue(path, read_only=True) as queue:
        payloads = [*queue.tailer().payloads()]
    assert payloads == [*(payload for _, payload in after), b"message 0"]
