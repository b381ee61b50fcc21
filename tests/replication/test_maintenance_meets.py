"""Copies, verify, repair and retention of a queue while a source sends it, or a sink keeps it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from io import BufferedWriter
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from event_loops import until
from journal_damages import DEAD_PID
from pause_points import Party
from queues import APPEND_LOCK, DAY_MS, START_MS, WRITE_LOCK, exit_code, fork, poke
from quire._common.durable import SafeFolder
from quire._native import ReplicaStates
from quire.errors import (
    AppendLockedError,
    ForkedError,
    QuireError,
    ReplicationError,
    TableLostError,
)
from quire.replication import Sink, Source, standing
from replicas import days_of_messages, messages, replicate

WAIT_S = 60.0
DAYS = 4
SLOTS = 64
SIDE_FILES = {
    *("replicas.quire", "replication.json", "replication.digests", "replication.epochs"),
}
ACTIONS: dict[str, tuple[str, ...]] = {
    "delete": (),
    "move": ("--move", "OUT"),
    "archive": ("--archive", "OUT"),
    "compress": ("--compress",),
}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders"
    days_of_messages(path, DAYS)
    return path


def append(path: Path | str, payload: bytes) -> int:
    with quire.open(path, create=False) as queue:
        return queue.appender().write_bytes(payload)


def while_both_run(orders: Path, copy: Path, work: Callable[[], object]) -> None:
    """Have a source and a sink run meanwhile; they go on after it."""

    async def both() -> None:
        with quire.open(orders) as queue:
            async with (
                Source(queue) as source,
                Sink(copy, port=source.address[1], name="b", reconnect_s=0.01) as sink,
            ):
                await source.acknowledged(queue.last_index or 0)
                await until(lambda: [it.in_sync for it in queue.replicas] == [True])
                await asyncio.to_thread(work)
                index = queue.appender().write_bytes(b"after it")
                await asyncio.wait_for(sink.stored(index), WAIT_S)

    asyncio.run(both())


@pytest.mark.parametrize("side", ["orders", "copy"])
def test_a_copy_is_a_queue_of_its_own(side: str, orders: Path, tmp_path: Path) -> None:
    """It has neither identity nor in-sync set, role, lease or lock of the queue that is copied."""
    made = tmp_path / "made"
    while_both_run(orders, tmp_path / "copy", lambda: quire.copy_queue(tmp_path / side, made))
    assert not SIDE_FILES & {it.name for it in made.iterdir()}
    assert standing.read(made) is None
    assert messages(made) == messages(orders)[:-1]
    with quire.open(made) as queue:
        assert queue.replicas == []
        queue.appender().write_bytes(b"of its own")
    with pytest.raises(ReplicationError, match="not a replica"):
        replicate(orders, made)
    replicate(made, tmp_path / "replica of it")


@pytest.mark.parametrize("side", ["orders", "copy"])
def test_verify_and_repair_change_nothing(
    side: str, orders: Path, cli: Cli, tmp_path: Path
) -> None:
    def work() -> None:
        assert quire.verify(tmp_path / side).findings == ()
        assert cli("repair", tmp_path / side, "--apply").code == 0

    while_both_run(orders, tmp_path / "copy", work)
    assert messages(tmp_path / "copy") == messages(orders)
    with pytest.raises(AppendLockedError):
        append(tmp_path / "copy", b"still closed")


def test_a_replica_whose_sink_was_killed_stays_closed(
    orders: Path, cli: Cli, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    replicate(orders, copy)
    poke(copy, APPEND_LOCK, DEAD_PID)
    assert quire.verify(copy).findings == ()
    poke(copy, WRITE_LOCK, DEAD_PID)
    assert cli("repair", copy, "--apply").code == 0
    assert quire.verify(copy).findings == ()
    with pytest.raises(AppendLockedError):
        append(copy, b"still closed")
    append(orders, b"one more")
    replicate(orders, copy)
    assert messages(copy) == messages(orders)


@pytest.mark.parametrize("how", ACTIONS.values(), ids=ACTIONS)
def test_retention_on_both_sides(
    how: tuple[str, ...], orders: Path, cli: Cli, tmp_path: Path
) -> None:
    copy, everything = tmp_path / "copy", messages(orders)

    def work() -> None:
        for path in (orders, copy):
            out = (str(tmp_path / f"out of {path.name}") if it == "OUT" else it for it in how)
            assert cli("prune", path, "--max-cycles", "2", *out).code == 0

    while_both_run(orders, copy, work)
    append(orders, b"and after both began again")
    replicate(orders, copy)
    left = len(everything) if how == ("--compress",) else 40
    assert messages(orders)[:left] == everything[-left:]
    assert messages(copy) == messages(orders)


@pytest.mark.parametrize("how", ACTIONS.values(), ids=ACTIONS)
def test_retention_keeps_what_a_member_that_is_away_lacks(
    how: tuple[str, ...], orders: Path, cli: Cli, tmp_path: Path
) -> None:
    """A compressed cycle can still be sent; a cycle that is gone could not."""
    copy = tmp_path / "copy"
    replicate(orders, copy)  # the member has all
    with quire.open(orders, clock=quire.ManualClock(START_MS + DAYS * DAY_MS)) as queue:
        queue.appender().write_bytes(b"which it lacks")
    clock = quire.ManualClock(START_MS + (DAYS + 1) * DAY_MS)
    with quire.open(orders, clock=clock) as queue:
        queue.appender().write_bytes(b"as well as this one")

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue):
                out = (str(tmp_path / "out") if it == "OUT" else it for it in how)
                ran = await asyncio.to_thread(cli, "prune", orders, "--max-cycles", "1", *out)
                assert ran.code == 0

    asyncio.run(work())
    replicate(orders, copy)
    assert [data for _, data in messages(copy)][-2:] == [b"which it lacks", b"as well as this one"]


def test_a_sink_whose_oldest_file_is_gone_counts_as_pruned(
    orders: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A known limit: files are removed by hand and by Java, too; the log says what is not here."""
    copy = tmp_path / "copy"
    replicate(orders, copy)
    caplog.set_level("INFO")
    replicate(orders, copy)
    assert "were pruned here, or were lost" not in caplog.text
    min(copy.glob("*.cq4")).unlink()
    append(orders, b"goes on")
    replicate(orders, copy)
    assert "were pruned here, or were lost" in caplog.text
    assert messages(copy) == messages(orders)[20:]


def test_all_slots_are_taken(
    orders: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A sink that finds none is disconnected, with a line that says what to do; others go on."""
    states = ReplicaStates.open_or_create(orders)
    for number in range(SLOTS - 1):
        states.set_member(states.slot_of(f"away {number}", "host:1"), True)  # noqa: FBT003

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source:
                port, last = source.address[1], queue.last_index or 0
                async with Sink(tmp_path / "b", port=port, name="b") as first:
                    await first.stored(last)
                    await until(lambda: source.sinks[0].acknowledged_index == last)
                    late = Sink(tmp_path / "c", port=port, name="c", reconnect_s=0.01)
                    async with late:
                        await until(lambda: "too many replicas" in caplog.text)
                        states.forget("away 7")
                        await asyncio.wait_for(late.stored(last), WAIT_S)
                        await until(lambda: len(in_sync(queue)) == SLOTS)
                        index = queue.appender().write_bytes(b"goes on")
                        await asyncio.wait_for(first.stored(index), WAIT_S)

    asyncio.run(work())
    with pytest.raises(ReplicationError) as caught:
        states.slot_of("one too many", "host:1")
    for said in (caplog.text, str(caught.value)):
        assert f"limit={SLOTS}" in said
        assert "quire replicate forget" in said


def in_sync(queue: quire.JournalQueue) -> list[str]:
    return [it.name for it in queue.replicas if it.in_sync]


def test_a_fork_while_a_source_and_a_sink_run(orders: Path, tmp_path: Path) -> None:
    """The child has neither, and its end takes nothing from them; it may open the queue again."""
    copy = tmp_path / "copy"

    async def work() -> None:
        with quire.open(orders, timeout_s=WAIT_S) as queue:
            appender = queue.appender()

            def child() -> None:
                with pytest.raises(ForkedError):
                    appender.write_bytes(b"of the child", wait="all")
                with pytest.raises(ForkedError):
                    _ = queue.last_index
                with quire.open(orders, timeout_s=WAIT_S) as own:
                    own.appender().write_bytes(b"of its own handle", wait="all")
                with quire.open(copy) as own, pytest.raises(AppendLockedError):
                    own.appender().write_bytes(b"into the replica")

            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await source.acknowledged(queue.last_index or 0)
                await until(lambda: len(in_sync(queue)) == 1)
                ended = asyncio.to_thread(exit_code, fork(child))
                assert await asyncio.wait_for(ended, WAIT_S) == 0
                index = await asyncio.to_thread(appender.write_bytes, b"goes on", wait="all")
                await asyncio.wait_for(sink.stored(index), WAIT_S)

    asyncio.run(work())
    assert [data for _, data in messages(copy)][-2:] == [b"of its own handle", b"goes on"]


def replaced(path: Path, moved: Path, *, by_a_queue: bool) -> None:
    path.rename(moved)
    if by_a_queue:
        with quire.open(path, roll_cycle="TEST4_DAILY") as queue:
            queue.appender().write_bytes(b"of another queue")


@pytest.mark.parametrize("by_a_queue", [False, True], ids=["renamed", "replaced"])
def test_the_directory_of_a_source_that_is_renamed_or_replaced(
    orders: Path, tmp_path: Path, *, by_a_queue: bool
) -> None:
    """No message of another queue is sent, and none goes to it."""
    copy, moved = tmp_path / "copy", tmp_path / "moved"
    before = messages(orders)

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await sink.stored(queue.last_index or 0)
                replaced(orders, moved, by_a_queue=by_a_queue)
                with pytest.raises(TableLostError, match="renamed, removed or replaced"):
                    await asyncio.wait_for(source.run_forever(), WAIT_S)
                with pytest.raises((TableLostError, FileNotFoundError)):
                    queue.appender().write_bytes(b"where to?")

    asyncio.run(work())
    kept = messages(copy)
    assert kept == messages(moved)[: len(kept)]
    assert kept[: len(before)] == before
    if by_a_queue:
        assert [data for _, data in messages(orders)] == [b"of another queue"]
        assert not SIDE_FILES & {it.name for it in orders.iterdir()}
        with pytest.raises(ReplicationError, match="another queue"):
            replicate(orders, copy)
    else:
        assert not orders.exists()
    replicate(moved, copy)
    assert messages(copy) == messages(moved)


@pytest.mark.parametrize("by_a_queue", [False, True], ids=["renamed", "replaced"])
def test_the_directory_of_a_sink_that_is_renamed_or_replaced(
    orders: Path, tmp_path: Path, *, by_a_queue: bool
) -> None:
    copy, moved = tmp_path / "copy", tmp_path / "moved"

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source:
                sink = Sink(copy, port=source.address[1], attempts=3, reconnect_s=0.01)
                with pytest.raises((QuireError, OSError)):  # noqa: PT012
                    async with sink:
                        await sink.stored(queue.last_index or 0)
                        replaced(copy, moved, by_a_queue=by_a_queue)
                        queue.appender().write_bytes(b"where to?")
                        await asyncio.wait_for(sink.run_forever(), WAIT_S)

    asyncio.run(work())
    kept = messages(moved)
    assert kept == messages(orders)[: len(kept)]
    if by_a_queue:
        assert [data for _, data in messages(copy)] == [b"of another queue"]
        assert not SIDE_FILES & {it.name for it in copy.iterdir()}
        append(copy, b"still open")
    else:
        assert not copy.exists()
    replicate(orders, moved)
    assert messages(moved) == messages(orders)


@pytest.mark.parametrize("rolls", [False, True], ids=["same-day", "next-day"])
def test_the_directory_of_a_sink_that_is_replaced_by_a_copy_of_it(
    orders: Path, tmp_path: Path, *, rolls: bool
) -> None:
    """Nothing that came after it is acknowledged, and nothing goes into the other directory."""
    copy, moved = tmp_path / "copy", tmp_path / "moved"

    async def work() -> None:
        with quire.open(orders) as queue:
            before = queue.last_index or 0
            if not rolls:
                before = queue.appender().write_bytes(b"of today")
            async with Source(queue) as source:
                with pytest.raises(TableLostError):  # noqa: PT012
                    async with Sink(copy, port=source.address[1]) as sink:
                        await source.acknowledged(before)
                        copy.rename(moved)
                        shutil.copytree(moved, copy)
                        queue.appender().write_bytes(b"where to?")
                        await asyncio.wait_for(sink.run_forever(), WAIT_S)
                await until(lambda: not source.sinks)
                assert [it.acknowledged_index for it in queue.replicas] == [before]

    asyncio.run(work())
    assert messages(copy) == messages(orders)[:-1]
    assert {it.name for it in copy.iterdir()} <= {it.name for it in moved.iterdir()}
    replicate(orders, copy)
    assert messages(copy) == messages(orders)


def test_a_source_of_a_handle_whose_directory_was_replaced_before(
    orders: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    with quire.open(orders) as queue:
        replaced(orders, moved, by_a_queue=True)
        with pytest.raises(TableLostError, match="open it where it is now"):
            Source(queue)
        with pytest.raises(TableLostError):
            ReplicaStates.of_queue(queue)
    for each in (orders, moved):
        assert not SIDE_FILES & {it.name for it in each.iterdir()}


def test_a_directory_that_is_replaced_while_a_source_begins(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun goes on in the directory that was opened."""
    moved, create = tmp_path / "moved", SafeFolder.create

    def replace_first(folder: SafeFolder, name: str) -> BufferedWriter:
        if not moved.exists():
            replaced(orders, moved, by_a_queue=True)
        return create(folder, name)

    monkeypatch.setattr(SafeFolder, "create", replace_first)

    async def work() -> None:
        with quire.open(orders) as queue:
            with pytest.raises(TableLostError):
                await Source(queue).__aenter__()
            assert (moved / "replication.json").exists()

    asyncio.run(work())
    assert not SIDE_FILES & {it.name for it in orders.iterdir()}


STATES = """
queue = quire.open(sys.argv[1])
arm()
try:
    quire._native.ReplicaStates.of_queue(queue).lock_source()
    say("made")
except quire.errors.QuireError as error:
    say(type(error).__name__)
"""


@pytest.mark.check
def test_a_directory_that_is_replaced_while_the_states_of_replicas_are_made(
    orders: Path, tmp_path: Path
) -> None:
    """The file goes into the directory that was opened."""
    moved = tmp_path / "moved"
    with Party(STATES, orders, point="replicas.file.publish") as party:
        party.wait_until_stopped()
        replaced(orders, moved, by_a_queue=True)
        party.go_on()
        assert party.result() == ["made"]
    assert "replicas.quire" not in {it.name for it in orders.iterdir()}
    assert "replicas.quire" in {it.name for it in moved.iterdir()}
