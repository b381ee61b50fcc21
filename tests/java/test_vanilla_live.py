"""Java and Quire at one Vanilla Chronicle at the same time, several processes each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import quire
import vanilla_peer
from java_peer import JavaPeer, JavaProcess, Option
from quire_peer import Message
from vanilla_java import JAVA_BLOCKS, QUIRE_BLOCKS, java_messages, vanilla_java, vanilla_queue

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

START_S = 120.0
PRODUCERS = 6  # two Java processes of two threads, two of Quire
JAVA_OWNERS, QUIRE_OWNERS = (101, 102), (201, 202)


@pytest.fixture(scope="module")
def java() -> JavaPeer:
    return vanilla_java()


def produce(
    java: JavaPeer, path: Path, count: int, pause_us: int, cycle: str, **both: bool
) -> list[JavaProcess]:
    """Start writers of both kinds."""
    common: dict[str, Option] = {"dir": path, "count": count, "pause_us": pause_us, "cycle": cycle}
    return [
        *(
            java.start("produce", id=it, threads=2, **common, **JAVA_BLOCKS, **both)
            for it in (0, 2)
        ),
        *(
            vanilla_peer.start(
                "produce", path, it, count, pause_us, roll_cycle=cycle, **QUIRE_BLOCKS, **both
            )
            for it in (4, 5)
        ),
    ]


def acknowledged(writers: Iterable[JavaProcess]) -> list[Message]:
    """Wait for the writers; what each append had returned."""
    acks: list[Message] = []
    for writer in writers:
        writer.expect("READY", START_S)
        acks += map(Message.of_line, writer.read_until("DONE", START_S))
    return acks


def assert_all_in_order(seen: Sequence[Message], acks: Sequence[Message], count: int) -> None:
    """Each message is there once, at the index that its append returned, and in its order."""
    assert sorted(seen, key=lambda it: it.index) == sorted(acks, key=lambda it: it.index)
    for producer in range(PRODUCERS):
        own = [it.counter for it in seen if it.producer == producer]
        assert own == [*range(count)], producer


def test_writers_of_both_share_a_queue(java: JavaPeer, tmp_path: Path) -> None:
    count = 300
    vanilla_queue(tmp_path).close()
    with ExitStack() as stack:
        follower = stack.enter_context(
            java.start("follow", dir=tmp_path, count=PRODUCERS * count, **JAVA_BLOCKS)
        )
        follower.expect("READY", START_S)
        writers = [stack.enter_context(it) for it in produce(java, tmp_path, count, 0, "DAYS")]
        queue = stack.enter_context(vanilla_queue(tmp_path, linger_ms=600_000))
        followed: list[Message] = []
        for excerpt in queue.tailer().follow(timeout_s=START_S):
            followed.append(Message.of_payload(excerpt.index, excerpt.data))
            if len(followed) == PRODUCERS * count:
                break
        acks = acknowledged(writers)
        read = [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]
        assert sorted(followed, key=lambda it: it.index) == [Message.of_payload(*it) for it in read]
        # At midnight a slow writer's message can come after those of the next day.
        if len(queue.cycles) == 1:
            assert_all_in_order(followed, acks, count)
            assert [*map(Message.of_line, follower.rest(START_S))] == followed
    assert java_messages(java, tmp_path) == read
    assert_all_in_order([Message.of_payload(*it) for it in read], acks, count)


@pytest.mark.slow
def test_writers_of_both_go_through_many_cycles(java: JavaPeer, tmp_path: Path) -> None:
    """A message that lands late in a cycle that a reader has left is delivered by Quire's."""
    count = 300
    seconds: Any = {"roll_cycle": "SECONDS", "linger_ms": 600_000}
    with ExitStack() as stack:
        writers = [
            stack.enter_context(it) for it in produce(java, tmp_path, count, 10_000, "SECONDS")
        ]
        for writer in writers:
            writer.expect("READY", START_S)
        queue = stack.enter_context(vanilla_queue(tmp_path, **seconds))
        followed: list[Message] = []
        for excerpt in queue.tailer().follow(timeout_s=START_S):
            followed.append(Message.of_payload(excerpt.index, excerpt.data))
            if len(followed) == PRODUCERS * count:
                break
        acks = [
            Message.of_line(line)
            for writer in writers
            for line in writer.read_until("DONE", START_S)
        ]
        assert sorted(followed, key=lambda it: it.index) == sorted(acks, key=lambda it: it.index)
        read = [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]
        assert len(queue.cycles) > 1
    assert java_messages(java, tmp_path, cycle="SECONDS") == read
    assert_all_in_order([Message.of_payload(*it) for it in read], acks, count)


def test_synchronous_appends_of_both(java: JavaPeer, tmp_path: Path) -> None:
    count = 20
    with ExitStack() as stack:
        started = produce(java, tmp_path, count, 0, "DAYS", synchronous=True)
        acks = acknowledged(stack.enter_context(it) for it in started)
    with vanilla_queue(tmp_path) as queue:
        read = [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]
    assert java_messages(java, tmp_path) == read
    assert_all_in_order([Message.of_payload(*it) for it in read], acks, count)


def test_one_consumer_of_either_kind_gets_each_message(java: JavaPeer, tmp_path: Path) -> None:
    count = 3000
    with vanilla_queue(tmp_path, consumption="queue") as queue, queue.appender() as appender:
        appender.write_many(number.to_bytes(4, "little") for number in range(count // 2))
    payloads = "".join(f"00000000{number:08x}\n" for number in range(count // 2))
    java.run_with_input("write", payloads, dir=tmp_path, hex=True, **JAVA_BLOCKS)
    consumers = {
        owner: java.start("claim", dir=tmp_path, owner=owner, count=count, **JAVA_BLOCKS)
        for owner in JAVA_OWNERS
    } | {
        owner: vanilla_peer.start("claim_live", tmp_path, owner, **QUIRE_BLOCKS)
        for owner in QUIRE_OWNERS
    }
    with ExitStack() as stack:
        for consumer in consumers.values():
            stack.enter_context(consumer)
            consumer.expect("READY", START_S)
        for consumer in consumers.values():
            consumer.send("go")
        got = {
            owner: [int(line, 16) for line in consumer.rest(START_S)]
            for owner, consumer in consumers.items()
        }
    with vanilla_queue(tmp_path) as queue:
        words = [(it.index, int.from_bytes(it.data[:4], "little")) for it in queue.tailer()]
    assert sorted(index for indexes in got.values() for index in indexes) == [it for it, _ in words]
    assert {owner: [it for it, word in words if word == owner] for owner in got} == got


def test_a_word_is_swapped_by_both(java: JavaPeer, tmp_path: Path) -> None:
    """Java's verb adds by compare-and-swap, as Quire's does."""
    count = 2000
    with vanilla_queue(tmp_path) as queue:
        index = queue.appender().write_bytes(bytes(12))
    script = java.start("excerpt-script", dir=tmp_path, **JAVA_BLOCKS)
    quires = [vanilla_peer.start("add_live", tmp_path, 4, count, **QUIRE_BLOCKS) for _ in range(2)]
    with script, quires[0], quires[1]:
        for process in (script, *quires):
            process.expect("READY", START_S)
        assert script.ask(f"index {index:x}") == "true"
        for process in quires:
            process.send("go")
        script.send(f"add32-times 4 {count}")
        for process in quires:
            process.expect("DONE", START_S)
        assert script.read_line(START_S) is not None
        assert script.ask("int32 4") == str(3 * count)
        assert script.ask("cas64 4 0 1") == "false"
        assert script.ask(f"cas64 4 {3 * count} -1") == "true"
    with vanilla_queue(tmp_path) as queue:
        excerpt = queue.tailer().read()
        assert excerpt is not None
        assert excerpt.compare_and_swap_int64(4, -1, 5)


def test_an_aligned_word_of_64_bits_is_swapped_by_both(java: JavaPeer, tmp_path: Path) -> None:
    with vanilla_queue(tmp_path) as queue, queue.appender() as appender:
        indexes: list[int] = []
        for length in range(8):
            appender.write_bytes(bytes(length))
            with appender.writing_excerpt() as excerpt:
                excerpt.write_utf("a name")
                assert excerpt.align() == 8
                excerpt.write_int64(0)
            assert excerpt.index is not None
            indexes.append(excerpt.index)
        with java.start("excerpt-script", dir=tmp_path, **JAVA_BLOCKS) as script:
            script.expect("READY", START_S)
            for number, index in enumerate(indexes):
                assert script.ask(f"index {index:x}") == "true"
                assert script.ask(f"cas64 8 0 {number - 4}") == "true"
        changed = [it for it in queue.tailer() if it.index in indexes]
        for number, it in enumerate(changed):
            assert it.compare_and_swap_int64(8, number - 4, 7)
            assert it.read_utf() == "a name"
    assert len(changed) == len(indexes)


def test_a_lock_excludes_both(java: JavaPeer, tmp_path: Path) -> None:
    """
    Java takes the number of its thread, which is 1 for the first of every process.

    Both write the word beside the lock in place, as if nobody else did.
    """
    count = 500
    with vanilla_queue(tmp_path) as queue:
        index = queue.appender().write_bytes(bytes(8))
    script = java.start("excerpt-script", dir=tmp_path, **JAVA_BLOCKS)
    quires = [
        vanilla_peer.start("count_locked", tmp_path, 4, owner, count, **QUIRE_BLOCKS)
        for owner in QUIRE_OWNERS
    ]
    with script, quires[0], quires[1]:
        for process in (script, *quires):
            process.expect("READY", START_S)
        assert script.ask(f"index {index:x}") == "true"
        for process in quires:
            process.send("go")
        script.send(f"count-locked 0 4 {count}")
        for process in quires:
            process.expect("DONE", START_S)
        assert script.read_line(START_S) is not None
        assert script.ask("int32 4") == str(3 * count)
        assert script.ask("int32 0") == "0"


def test_either_sees_who_holds_a_lock(java: JavaPeer, tmp_path: Path) -> None:
    with vanilla_queue(tmp_path) as queue:
        index = queue.appender().write_bytes(bytes(8))
        excerpt = queue.tailer().read()
        assert excerpt is not None
        with java.start("excerpt-script", dir=tmp_path, **JAVA_BLOCKS) as script:
            script.expect("READY", START_S)
            assert script.ask(f"index {index:x}") == "true"
            assert [script.ask("try-lock 0"), script.ask("try-lock 0")] == ["true", "true"]
            assert bytes(excerpt.view[:4]) == (2 << 24 | 1).to_bytes(4, "little")
            assert not excerpt.try_lock(0, 2)
            with pytest.raises(ValueError, match="not held by this owner"):
                excerpt.unlock(0, 2)
            assert [script.ask("unlock 0"), script.ask("unlock 0")] == ["true", "true"]
            assert excerpt.try_lock(0, 2)
            assert script.ask("try-lock 0") == "false"
            assert script.ask("unlock 0") == "false"
            assert script.ask("reset-lock 0") == "true"
            assert excerpt.try_lock(0, 3)
            # Another process whose thread has that number is taken for the same.
            with java.start("excerpt-script", dir=tmp_path, **JAVA_BLOCKS) as other:
                other.expect("READY", START_S)
                assert other.ask(f"index {index:x}") == "true"
                excerpt.unlock(0, 3)
                assert [script.ask("try-lock 0"), other.ask("try-lock 0")] == ["true", "true"]


def test_messages_of_a_cycle_that_was_left_are_delivered(java: JavaPeer, tmp_path: Path) -> None:
    """Java's tailer misses them; Quire's does not."""
    day_ms = 86_400_000
    clock = quire.ManualClock(20_001 * day_ms + 1)
    first = java_write(java, tmp_path, 0, start=20_000 * day_ms)
    with (
        vanilla_queue(tmp_path, clock=clock, linger_ms=600_000) as queue,
        java.start("excerpt-script", dir=tmp_path, **JAVA_BLOCKS) as script,
    ):
        script.expect("READY", START_S)
        tailer = queue.tailer()
        assert tailer.read_many(10) == [b"message 0"]
        assert script.ask("next") == "true"
        java_write(java, tmp_path, 1, start=20_001 * day_ms)
        assert tailer.read_many(10) == [b"message 1"]
        assert script.ask("next") == "true"
        late = java_write(java, tmp_path, 2, start=20_000 * day_ms)
        assert late == first + 1
        assert script.ask("next") == "false"
        assert tailer.read_many(10) == [b"message 2"]


def java_write(java: JavaPeer, path: Path, number: int, *, start: int) -> int:
    [index] = java.run("write", dir=path, count=1, first=number, start=start, **JAVA_BLOCKS)
    return int(index, 16)
