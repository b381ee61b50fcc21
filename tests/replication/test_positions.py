"""What named tailers and consumer groups have read goes on at the replica that is promoted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import quire
import replication_reference as reference
from cli_runs import run, started
from event_loops import until
from java_peer import JavaPeer, JavaPeerError
from queues import DAY_MS, poke
from quire.errors import AppendLockedError, GroupError, OldEpochError
from quire.groups import lowest_needed
from quire.replication import Sink, Source, aside, promote
from replicas import messages, wait_until
from replication_reference import Peer

WAIT_S = 60.0
GROUP, TAILER = "billing", "replicated:risk"
POSITIONS = {reference.TAILER, reference.GROUP, reference.GROUPS, reference.TAILERS}
KEY = f"index.{TAILER}"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders"
    with quire.open(path, roll_cycle="FAST_DAILY", block_bytes=1 << 16) as queue:
        queue.appender().write_many([b"%d" % number for number in range(100)])
    return path


def position(path: Path, name: str = GROUP) -> tuple[int, int] | None:
    """Return the next index of a group, and how many messages are in work."""
    with quire.open(path, read_only=True) as queue:
        found = [it for it in queue.groups() if it.name == name]
    return (found[0].next_index, found[0].pending) if found else None


def version(path: Path) -> int | None:
    with quire.open(path, read_only=True) as queue:
        return queue.table_value(f"{KEY}.version")


async def reaches(copy: Path, origin: Path, name: str = GROUP) -> None:
    """Wait until a copy knows what the group of its source has read."""
    wanted = position(origin, name)
    assert wanted is not None

    def is_known() -> bool:
        return (copy / "metadata.cq4t").exists() and position(copy, name) == wanted

    await asyncio.wait_for(until(is_known), WAIT_S)


def rest_of(path: Path, **options: str) -> list[tuple[int, bytes, bool, int]]:
    """Read and acknowledge what a group was not given."""
    found = list[tuple[int, bytes, bool, int]]()
    with (
        quire.open(path, create=False) as queue,
        queue.group(GROUP, **options).consumer() as consumer,  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    ):
        for message in consumer:
            found.append((message.index, message.data, message.redelivered, message.delivery_count))
            message.ack()
    return found


def follow(origin: Path, copy: Path, steps: Iterable[object]) -> None:
    """Run a source and a sink, and do a step at a time while both run."""

    async def work() -> None:
        with quire.open(origin) as queue:
            async with (
                Source(queue) as source,
                Sink(copy, port=source.address[1], reconnect_s=0.01) as sink,
            ):
                await sink.stored(queue.last_index or 0)
                for _ in steps:
                    await reaches(copy, origin)

    asyncio.run(work())


@pytest.mark.check
def test_a_killed_source_and_its_consumer(orders: Path, tmp_path: Path) -> None:
    """Processes of the command; the consumer's process dies with its source."""
    copy = tmp_path / "copy"
    with started("replicate", "source", orders, "--listen", "127.0.0.1:0") as source:
        assert source.stdout is not None
        address = source.stdout.readline().decode().split()[1]
        with (
            started("replicate", "sink", copy, "--from", address),
            quire.open(orders) as queue,
            queue.group(GROUP).consumer("c1") as consumer,
            queue.tailer(TAILER) as tailer,
        ):
            held = [consumer.read() for _ in range(40)]
            for message in held[:30]:
                assert message is not None
                assert message.ack()
            for _ in range(7):
                tailer.read_bytes()
            wanted = position(orders)
            wait_until((copy / "metadata.cq4t").exists)
            wait_until(lambda: position(copy) == wanted and version(copy) == version(orders))
            source.kill()
    promoted = run("promote", copy)
    assert (promoted.code, promoted.err) == (0, "")
    found = rest_of(copy)
    everything = [index for index, _ in messages(copy)]
    in_work = {it.index for it in held[30:] if it is not None}
    assert sorted(index for index, *_ in found) == everything[30:]
    assert all(again for index, _, again, _ in found if index in in_work)
    assert {count for index, *_, count in found if index in in_work} == {2}
    with quire.open(copy) as queue, queue.tailer(TAILER) as tailer:
        assert tailer.read_bytes() == b"6"  # the last that was not known to be processed


def test_messages_after_a_promotion_are_new(orders: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with quire.open(orders) as queue, queue.group(GROUP).consumer() as consumer:
        consumer.ack_many(consumer.read_many(100))
    follow(orders, copy, [None])
    promote(copy)
    with quire.open(copy) as queue:
        index = queue.appender().write_bytes(b"new")
    assert rest_of(copy) == [(index, b"new", False, 1)]


def test_a_handover_is_exact(orders: Path, tmp_path: Path) -> None:
    """Consumers at the source are put out, so that nothing is delivered twice."""
    copy = tmp_path / "copy"

    async def work() -> None:
        with quire.open(orders) as queue, queue.group(GROUP).consumer("c1") as consumer:
            async with Source(queue) as source:
                async with Sink(copy, port=source.address[1], name="b") as sink:
                    await sink.stored(queue.last_index or 0)
                    consumer.ack_many(consumer.read_many(60))
                    await source.hand_over("b")
                    await asyncio.wait_for(sink.run_forever(), WAIT_S)
                with pytest.raises(GroupError, match="was reset, or its side file created again"):
                    consumer.read()
            with pytest.raises(GroupError, match="belongs to its source"):
                queue.group(GROUP).consumer()

    asyncio.run(work())
    found = rest_of(copy)
    assert [index for index, *_ in found] == [index for index, _ in messages(copy)][60:]
    assert {(again, count) for *_, again, count in found} == {(False, 1)}


def test_a_group_of_the_source_is_closed_at_the_replica(orders: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with (
        quire.open(orders) as queue,
        queue.group(GROUP).consumer() as consumer,
        queue.tailer(TAILER) as tailer,
    ):
        consumer.ack_many(consumer.read_many(5))
        tailer.read_bytes()
    follow(orders, copy, [None])
    with quire.open(copy) as queue:
        group = queue.group(GROUP)
        closed: list[Callable[[], object]] = [group.consumer, group.reset, group.delete]
        for call in closed:
            with pytest.raises(GroupError, match="until the replica is promoted"):
                call()
        with pytest.raises(AppendLockedError):
            queue.tailer(TAILER)
        with queue.group("own").consumer() as own:  # a group of the replica's own
            own.ack_many(own.read_many(3))
    assert lowest_needed(copy)[GROUP] == [index for index, _ in messages(copy)][5]
    follow(orders, copy, [None])
    promote(copy)
    assert [data for _, data, *_ in rest_of(copy)] == [b"%d" % it for it in range(5, 100)]
    assert position(copy, "own") is not None


@pytest.mark.check
def test_groups_that_come_and_go_while_the_sink_is_away(orders: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with quire.open(orders) as queue:
        for name in (GROUP, "gone"):
            with queue.group(name).consumer() as consumer:
                consumer.ack_many(consumer.read_many(10))
    follow(orders, copy, [None])
    assert position(copy, "gone") is not None
    with quire.open(orders) as queue:
        queue.group("gone").delete()
        with queue.group("made").consumer() as consumer:
            consumer.ack_many(consumer.read_many(20))
        queue.group(GROUP).reset()
    follow(orders, copy, [None])
    assert position(copy, "gone") is None
    promote(copy)
    assert len(rest_of(copy)) == 100
    assert position(copy, "made") == position(orders, "made")


def test_consumers_of_the_replica_in_a_group_of_the_source(
    orders: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They go on; once they have left, what the source's have read is kept."""
    copy = tmp_path / "copy"

    async def work() -> None:
        with quire.open(orders) as queue:
            async with (
                Source(queue) as source,
                Sink(copy, port=source.address[1], reconnect_s=0.01) as sink,
            ):
                await sink.stored(queue.last_index or 0)
                with quire.open(copy) as replica, replica.group(GROUP).consumer() as own:
                    with queue.group(GROUP).consumer() as consumer:
                        consumer.ack_many(consumer.read_many(30))
                    await until(lambda: "which consumers of the replica use" in caplog.text)
                    assert own.read() is not None
                await reaches(copy, orders)

    asyncio.run(work())


def test_a_group_with_keys(tmp_path: Path) -> None:
    orders, copy = tmp_path / "orders", tmp_path / "copy"
    with quire.open(orders, roll_cycle="FAST_DAILY") as queue:
        appender = queue.appender()
        for number in range(40):
            appender.write_map({"order": number, "account": number % 4})
        with queue.group(GROUP, key="account").consumer() as consumer:
            for _ in range(10):
                message = consumer.read()
                assert message is not None
                message.ack()
            refused = consumer.read()
            assert refused is not None
            refused.nack()
    follow(orders, copy, [None])
    promote(copy)
    found = rest_of(copy, key="account")
    assert sorted(index for index, *_ in found) == [index for index, _ in messages(copy)][10:]
    assert sorted(count for *_, count in found) == [1] * 29 + [2]


@pytest.mark.check
def test_a_group_at_a_roll_and_in_several_cycles(
    queue: quire.JournalQueue, clock: quire.ManualClock, tmp_path: Path
) -> None:
    origin, copy = Path(queue.path), tmp_path / "copy"
    appender = queue.appender()
    for _ in range(3):
        appender.write_many([b"a", b"b"])
        clock.advance(DAY_MS)
    with queue.group(GROUP).consumer() as consumer:
        for count in (2, 1, 3):
            consumer.ack_many(consumer.read_many(count))
            follow(origin, copy, [None])
    appender.write_bytes(b"c")
    follow(origin, copy, [None])
    promote(copy)
    assert [data for _, data, *_ in rest_of(copy)] == [b"c"]


def test_a_group_that_was_ahead_of_what_is_put_aside(orders: Path, tmp_path: Path) -> None:
    """A group that has read messages which are put aside begins where the others do."""
    copy = tmp_path / "copy"
    with quire.open(orders) as queue, queue.group(GROUP).consumer() as consumer:
        consumer.ack_many(consumer.read_many(100))
    follow(orders, copy, [None])
    cut = messages(copy)[70][0]
    aside.put_aside(copy, cut)
    promote(copy)
    with quire.open(copy) as queue:
        queue.appender().write_many([b"other %d" % number for number in range(40)])
    assert [data for _, data, *_ in rest_of(copy)] == [b"other %d" % it for it in range(40)]


def test_an_old_source_follows_with_its_groups(orders: Path, tmp_path: Path) -> None:
    """The one that was the source takes what the new source's consumers have read."""
    copy = tmp_path / "copy"
    with quire.open(orders) as queue, queue.group(GROUP).consumer() as consumer:
        consumer.ack_many(consumer.read_many(10))
    follow(orders, copy, [None])
    promote(copy)
    with quire.open(orders) as queue, queue.group(GROUP).consumer() as consumer:
        with quire.open(copy) as other, other.group(GROUP).consumer() as promoted:
            promoted.ack_many(promoted.read_many(50))
        follow(copy, orders, [None])
        with pytest.raises(GroupError):
            consumer.read()
    promote(orders)
    assert [data for _, data, *_ in rest_of(orders)] == [b"%d" % it for it in range(60, 100)]


def test_a_tailer_that_the_source_deletes(orders: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await sink.stored(queue.last_index or 0)
                with queue.tailer(TAILER) as tailer:
                    for _ in range(9):
                        tailer.read_bytes()
                await until(lambda: version(copy) == 9)
                assert queue.delete_tailer(TAILER)
                await until(lambda: version(copy) is None)
                with queue.tailer(TAILER) as tailer:
                    tailer.read_bytes()
                await until(lambda: version(copy) == version(orders))

    asyncio.run(work())
    promote(copy)
    with quire.open(copy) as queue, queue.tailer(TAILER) as tailer:
        assert tailer.read_bytes() == b"1"


@pytest.mark.parametrize("again", [0, 1], ids=["deleted", "and made again"])
def test_a_tailer_that_the_source_deletes_while_the_sink_is_away(
    again: int, orders: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"

    def read(count: int) -> None:
        with quire.open(orders) as queue:
            for name in (TAILER, "replicated:kept"):
                with queue.tailer(name) as tailer:
                    for _ in range(count):
                        tailer.read_bytes()

    async def catch_up() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await sink.stored(queue.last_index or 0)
                await until(lambda: versions_of(copy) == versions_of(orders))

    read(9)
    asyncio.run(asyncio.wait_for(catch_up(), WAIT_S))
    with quire.open(orders) as queue:
        assert queue.delete_tailer(TAILER)
    if again:
        read(again)
    asyncio.run(asyncio.wait_for(catch_up(), WAIT_S))
    promote(copy)
    with quire.open(copy) as queue:
        for name, wanted in ((TAILER, again), ("replicated:kept", 9 + again)):
            with queue.tailer(name) as tailer:
                assert tailer.read_bytes() == b"%d" % wanted


def versions_of(path: Path) -> dict[str, int]:
    with quire.open(path, read_only=True) as queue:
        return {key: it for key, it in queue.table_entries() if key.endswith(".version")}


def test_a_position_that_is_newer_here_stays(orders: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with quire.open(orders) as queue, queue.group(GROUP).consumer() as consumer:
        consumer.ack_many(consumer.read_many(1))
        with queue.tailer(TAILER) as tailer:
            tailer.read_bytes()
    follow(orders, copy, [None])
    promote(copy)
    with quire.open(copy) as queue, queue.tailer(TAILER) as tailer:
        for _ in range(5):
            tailer.read_bytes()
    newest = version(copy)
    with quire.open(orders) as queue, pytest.raises(OldEpochError):
        asyncio.run(refused(queue, copy))
    assert version(copy) == newest


async def refused(queue: quire.JournalQueue, copy: Path) -> None:
    async with Source(queue) as source, Sink(copy, port=source.address[1], attempts=1) as sink:
        await sink.run_forever()


@pytest.mark.java
def test_java_goes_on_with_its_named_tailer(tmp_path: Path) -> None:
    """Java moves the tailer at the source, is refused at the replica, and goes on there later."""
    origin, copy, java = tmp_path / "orders", tmp_path / "copy", JavaPeer()
    java.run("write", dir=origin, count=20, kind="text")

    async def work() -> None:
        with quire.open(origin) as queue:
            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await sink.stored(queue.last_index or 0)
                await asyncio.to_thread(script, java, origin, "read\n" * 6)
                await until(lambda: version(copy) is not None and version(copy) == version(origin))
                with pytest.raises(JavaPeerError, match="NamedTailerNotAvailable"):
                    await asyncio.to_thread(script, java, copy, "read\n")

    asyncio.run(work())
    promote(copy)
    seventh = f"{messages(origin)[6][0]:x} "
    assert script(java, copy, "read\n")[0].startswith(seventh)


def script(java: JavaPeer, path: Path, commands: str) -> list[str]:
    return java.run_with_input("tailer-script", commands, dir=path, name=TAILER)


def test_a_sink_that_knows_no_positions(orders: Path) -> None:
    """An earlier version is sent none; one that asks for them gets them as the page says."""
    with quire.open(orders) as queue:
        with queue.group(GROUP).consumer() as consumer, queue.tailer(TAILER) as tailer:
            held = consumer.read_many(3)
            held[0].ack()
            tailer.read_bytes()
        found = asyncio.run(said_to(queue, ["handover"])), asyncio.run(said_to(queue, None))
    earlier, later = found
    assert earlier == {}
    assert later[reference.TAILERS] == ({TAILER: 1},)
    first = held[0].index
    assert later[reference.GROUPS] == ([GROUP],)
    assert later[reference.TAILER] == (TAILER, (first + 1, 1))
    name, state = later[reference.GROUP]
    assert (name, state.keyed, state.next) == (GROUP, 0, first + 3)
    (range_of,) = state.ranges
    assert (range_of.first, range_of.pending, range_of.counts) == (first, 0b110, [1, 1])
    assert range_of.cause == 4  # the consumer was closed


async def said_to(
    queue: quire.JournalQueue, features: list[str] | None
) -> dict[int, tuple[Any, ...]]:
    """Return what a sink with these features is told beside batches, until it has been a second."""
    found = dict[int, tuple[Any, ...]]()
    async with Source(queue) as source:
        peer = await Peer.connect(source.address[1])
        given = ["positions", "tailers"] if features is None else features
        await peer.send(reference.greeting("b", features=given), reference.start(None))
        heartbeats = 0
        while heartbeats < 2 and len(found) < len(POSITIONS):
            kind, body = await peer.receive_raw()
            heartbeats += kind == reference.HEARTBEAT
            if kind in POSITIONS:
                found[kind] = reference.decode(kind, body)
        await peer.close()
    return found


@pytest.mark.parametrize(
    "moves", ["before the sink", pytest.param("while it follows", marks=pytest.mark.check)]
)
def test_a_tailer_that_stays_open_over_a_handover(
    moves: str, orders: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The sink goes on; once the tailer is closed, what the new source's has read is kept."""
    copy, text = tmp_path / "copy", "a tailer of the source is open in the replica"

    def state(path: Path) -> list[int | None]:
        with quire.open(path, read_only=True) as queue:
            return [queue.table_value(key) for key in (KEY, f"{KEY}.version")]

    def read(tailer: quire.JournalTailer, count: int) -> None:
        for _ in range(count):
            tailer.read_bytes()

    def move() -> None:
        """Move it as a Java process does, which goes on where ours is refused."""
        index, version = state(orders)
        assert index is not None
        assert version is not None
        poke(orders, KEY, index + 5)
        poke(orders, f"{KEY}.version", version + 5)

    async def is_same() -> None:
        await asyncio.wait_for(until(lambda: state(orders) == state(copy)), WAIT_S)

    async def give(queue: quire.JournalQueue) -> None:
        async with Source(queue) as source, Sink(copy, port=source.address[1], name="b") as sink:
            await source.acknowledged(queue.last_index or 0)
            await is_same()
            await source.hand_over("b")
            await asyncio.wait_for(sink.run_forever(), WAIT_S)

    async def follow_back(old: quire.JournalTailer) -> None:
        with quire.open(copy) as queue, queue.tailer(TAILER) as new:
            async with (
                Source(queue) as source,
                Sink(orders, port=source.address[1], reconnect_s=0.01),
            ):
                await source.acknowledged(queue.last_index or 0)
                if moves == "while it follows":
                    await is_same()
                    move()
                read(new, 2)
                await asyncio.wait_for(until(lambda: text in caplog.text), WAIT_S)
                await source.acknowledged(queue.appender().write_bytes(b"the sink goes on"))
                with pytest.raises(AppendLockedError):  # what it read last is not stored
                    old.close()
                await is_same()
                read(new, 2)
                await is_same()

    with quire.open(orders) as queue, queue.tailer(TAILER) as old:
        read(old, 3)
        asyncio.run(give(queue))
        with pytest.raises(AppendLockedError):
            read(old, 2)
        if moves == "before the sink":
            move()
        asyncio.run(follow_back(old))
    assert caplog.text.count(text) == 1
