"""Two Quire processes and one JVM append to one queue at once; a tailer of each kind follows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

import quire
import quire_peer
from java_peer import JavaPeer, JavaProcess, Option
from quire_peer import Message

pytestmark = pytest.mark.java

KIB = 1024
MIB = 1024 * KIB
JAVA = 3  # the number of the Java producer
FOLLOWED_S = 60.0


@dataclass(frozen=True)
class Load:
    """What each producer does, over about five seconds of one-second cycles."""

    roll_cycle: str
    count: int
    pause_us: int
    java_block: int | None  # None: the default, 64 MiB
    quire_blocks: tuple[int | None, int | None]


# TEST4_SECONDLY numbers 4096 messages a cycle at most: three producers stay below it.
SMALL = Load("TEST4_SECONDLY", 4000, 1000, MIB, (64 * KIB, None))
LARGE = Load("TEST_SECONDLY", 20_000, 150, None, (MIB, 4 * MIB))


@pytest.mark.parametrize(
    ("version", "load"),
    [("5.27ea11", SMALL), ("5.27ea11", LARGE), ("2026.4", SMALL)],
    ids=lambda value: getattr(value, "roll_cycle", value),
)
def test_quire_and_java_append_to_a_queue_of_quire(
    version: str, load: Load, tmp_path: Path
) -> None:
    with quire.open(tmp_path, roll_cycle=load.roll_cycle, block_bytes=load.quire_blocks[0]):
        append_and_follow(JavaPeer(version), load, tmp_path)


def test_quire_and_java_append_to_a_queue_of_an_older_release(tmp_path: Path) -> None:
    peer = JavaPeer("5.23.37")
    peer.run("write", dir=tmp_path, count=0, roll_cycle=SMALL.roll_cycle, block_size=MIB)
    append_and_follow(peer, SMALL, tmp_path)


def append_and_follow(peer: JavaPeer, load: Load, path: Path) -> None:
    with ExitStack() as stack:
        java_follower = stack.enter_context(
            peer.start("follow", dir=path, count=3 * load.count, block_size=load.java_block)
        )
        quire_follower = stack.enter_context(
            quire_peer.start("follow", dir=path, count=3 * load.count)
        )
        for follower in (java_follower, quire_follower):
            follower.expect("READY")
        producers = [stack.enter_context(it) for it in producers_of(peer, load, path)]
        acknowledged = [acks(process, number) for number, process in enumerate(producers, 1)]
        seen_by_java = messages(java_follower)
        seen_by_quire = messages(quire_follower)

    assert_nothing_lost_or_reordered(seen_by_java, load.count)
    assert seen_by_quire == seen_by_java
    assert {message for acked in acknowledged for message in acked} == set(seen_by_java)
    assert_checked_by_java(peer, path, seen_by_java)


def producers_of(peer: JavaPeer, load: Load, path: Path) -> list[JavaProcess]:
    """One, two: Quire; three: Java."""
    common: dict[str, Option] = {
        "dir": path,
        "count": load.count,
        "pause_us": load.pause_us,
        "ack": True,
    }
    quires = [
        quire_peer.start("produce", **common, id=number, block_bytes=block)
        for number, block in enumerate(load.quire_blocks, 1)
    ]
    java = peer.start("produce", **common, id=JAVA, block_size=load.java_block)
    return [*quires, java]


def acks(process: JavaProcess, producer: int) -> list[Message]:
    """All that its appends returned."""
    lines = process.read_until("DONE", FOLLOWED_S)
    assert lines[0] == "READY"
    pairs = [line.split() for line in lines[1:]]
    return [Message(int(index, 16), producer, int(counter)) for index, counter in pairs]


def messages(follower: JavaProcess) -> list[Message]:
    return [Message.of_line(line) for line in follower.read_until("DONE", FOLLOWED_S)]


def assert_nothing_lost_or_reordered(seen: list[Message], count: int) -> None:
    for producer in (1, 2, JAVA):
        assert [it.counter for it in seen if it.producer == producer] == list(range(count))
    indexes = [it.index for it in seen]
    assert indexes == sorted(set(indexes))
    by_cycle = Counter(index >> 32 for index in indexes)
    assert len(by_cycle) >= 4, "too few rolls to prove anything"
    for cycle, found in by_cycle.items():  # sequences have no gaps
        assert sequences(indexes, cycle) == list(range(found))


def sequences(indexes: Iterable[int], cycle: int) -> list[int]:
    return [index & 0xFFFFFFFF for index in indexes if index >> 32 == cycle]


def assert_checked_by_java(peer: JavaPeer, path: Path, seen: list[Message]) -> None:
    """Java finds every message by its index and backward, and reads the bytes that Quire reads."""
    found = peer.check(path)
    for count in ("count", "backward", "moved", "countExcerpts", "entryCount"):
        assert found[count] == len(seen), count
    assert (found["firstIndex"], found["lastIndex"]) == (
        f"{seen[0].index:x}",
        f"{seen[-1].index:x}",
    )
    digest = hashlib.sha256()
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        for payload in tailer.payloads():
            digest.update(payload)
        assert queue.entry_count == len(seen)
        assert (queue.first_index, queue.last_index) == (seen[0].index, seen[-1].index)
        for message in seen:
            assert tailer.move_to_index(message.index)
            assert message_at(tailer) == message
    assert found["sha256"] == digest.hexdigest()


def message_at(tailer: quire.JournalTailer) -> Message | None:
    excerpt = tailer.read()
    return None if excerpt is None else Message.of_excerpt(excerpt)
