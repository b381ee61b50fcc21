"""A source that lost its disk gets its messages back from a replica, and is the source again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import Cli, run, started
from event_loops import until
from ports import free_port
from queues import DAY_MS, START_MS, exit_code, fork
from quire.errors import (
    AppendLockedError,
    DivergedError,
    GroupError,
    OldEpochError,
    PeerLostError,
    QuireError,
    ReplicationError,
    WriterInUseError,
)
from quire.replication import RefillSource, Sink, Source, promote, replica, standing
from quire.replication.sink_session import SinkSession
from quire.replication.source_session import SourceSession
from replicas import days_of_messages, messages, replicate

WAIT_S = 60.0
DAYS = 4


def part(path: Path) -> tuple[int, str]:
    found = standing.read(path)
    assert found is not None
    return found.epoch, found.role


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """The queue of a source, of several cycles."""
    path = tmp_path / "orders"
    days_of_messages(path, DAYS)
    return path


@pytest.fixture
def copy(orders: Path, tmp_path: Path) -> Path:
    replicate(orders, tmp_path / "copy")
    return tmp_path / "copy"


async def refilled(copy: Path, path: Path, **options: Any) -> int:  # noqa: ANN401
    """Refill a source from a copy; return the epoch that begins."""
    async with RefillSource(copy) as giver:
        options = {"reconnect_s": 0.01, "attempts": 5, "name": "orders", **options}
        async with Sink(path, port=giver.address[1], refills=True, **options) as taker:
            giving = asyncio.create_task(giver.refilled())
            try:
                await asyncio.wait_for(taker.run_forever(), WAIT_S)
                found = await asyncio.wait_for(giving, WAIT_S)
            finally:
                giving.cancel()
    assert (found.name, found.epoch) == ("orders", taker.promoted_epoch)
    return found.epoch


def refill(copy: Path, path: Path, **options: Any) -> int:  # noqa: ANN401
    return asyncio.run(refilled(copy, path, **options))


def append(path: Path, payload: bytes) -> int:
    with quire.open(path, create=False) as queue:
        return queue.appender().write_bytes(payload)


def nothing(path: Path) -> None:
    shutil.rmtree(path)


def an_empty_directory(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


def without_the_newest_files(path: Path) -> None:
    for file in sorted(path.glob("*.cq4"))[2:]:
        file.unlink()


def without_a_file_in_the_middle(path: Path) -> None:
    sorted(path.glob("*.cq4"))[1].unlink()


LOSSES: list[Callable[[Path], None]] = [
    nothing,
    an_empty_directory,
    without_the_newest_files,
    without_a_file_in_the_middle,
]


@pytest.mark.parametrize("lose", LOSSES)
def test_what_was_lost_comes_back(lose: Callable[[Path], None], orders: Path, copy: Path) -> None:
    before = messages(orders)
    lose(orders)
    assert refill(copy, orders) == 2
    assert messages(orders) == messages(copy) == before
    assert (part(orders), part(copy)) == ((2, "source"), (2, "sink"))
    index = append(orders, b"of the next epoch")
    with pytest.raises(AppendLockedError):
        append(copy, b"lost")
    replicate(orders, copy)
    assert messages(copy)[-1] == (index, b"of the next epoch")


def test_an_old_copy_of_the_source_is_completed(orders: Path, copy: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(orders, backup)
    append(orders, b"since the backup")
    replicate(orders, copy)
    shutil.rmtree(orders)
    backup.rename(orders)
    refill(copy, orders)
    assert messages(orders) == messages(copy)
    assert messages(orders)[-1][1] == b"since the backup"


def is_unchanged(path: Path, work: Callable[[], object], error: type[QuireError]) -> str:
    """Check that something is refused, that no message is another, and that appends go on."""
    before, role = messages(path), part(path)
    with pytest.raises(error) as caught:
        work()
    assert (messages(path), part(path)) == (before, role)
    append(path, b"goes on")
    return str(caught.value)


def test_a_source_that_has_more_goes_on(orders: Path, copy: Path) -> None:
    append(orders, b"which the replica lacks")
    said = is_unchanged(orders, lambda: refill(copy, orders), ReplicationError)
    assert "has more messages than the replica" in said
    assert part(copy) == (1, "sink")


def test_a_source_that_runs_goes_on(orders: Path, copy: Path) -> None:
    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue):
                await refilled(copy, orders)

    is_unchanged(orders, lambda: asyncio.run(work()), WriterInUseError)


def test_messages_that_differ_are_not_overwritten(orders: Path, copy: Path) -> None:
    without_the_newest_files(orders)
    clock = quire.ManualClock(START_MS + 2 * DAY_MS)
    with quire.open(orders, clock=clock) as queue:
        first = queue.appender().write_bytes(b"appended after the loss")
    before = messages(orders)
    with pytest.raises(DivergedError) as caught:
        refill(copy, orders)
    assert caught.value.index == first
    assert messages(orders) == before
    assert part(copy) == (1, "sink")
    refill(copy, orders, repair=True)
    assert messages(orders) == messages(copy)
    kept = messages(orders / "aside" / f"{first:x}")
    assert kept[-1] == (first, b"appended after the loss")


def test_a_later_epoch_is_not_taken_back(orders: Path, copy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    replicate(orders, other)
    promote(other)
    assert is_unchanged(other, lambda: refill(copy, other), OldEpochError)


def test_an_old_source_that_still_lives_is_refused(
    orders: Path, copy: Path, tmp_path: Path
) -> None:
    """The machine was not lost after all: the replica has seen the later epoch."""
    assert refill(copy, tmp_path / "new") == 2
    with pytest.raises(OldEpochError):
        replicate(orders, copy)


@pytest.mark.usefixtures("copy")
def test_a_directory_of_a_source_waits_for_who_is_not_there_yet(orders: Path) -> None:
    """Of an old source, which is to follow, and of one that is to be refilled."""

    async def work(*, refills: bool) -> None:
        port = free_port()
        async with Sink(orders, port=port, attempts=2, reconnect_s=0.01, refills=refills) as sink:
            await asyncio.wait_for(sink.run_forever(), WAIT_S)

    for refills in (False, True):
        is_unchanged(orders, lambda: asyncio.run(work(refills=refills)), PeerLostError)  # noqa: B023


def test_a_queue_of_its_own_is_not_touched(copy: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    with quire.open(own, roll_cycle="TEST4_DAILY") as queue:
        queue.appender().write_bytes(b"own")
    with pytest.raises(ReplicationError, match="not a replica"):
        refill(copy, own)
    append(own, b"goes on")
    assert [data for _, data in messages(own)] == [b"own", b"goes on"]


def test_who_meets_whom(orders: Path, copy: Path, tmp_path: Path) -> None:
    """A sink does not follow a replica that refills, and a source does not refill."""

    async def ends(sink: Sink) -> str:
        with pytest.raises(ReplicationError) as caught:
            async with sink:
                await asyncio.wait_for(sink.run_forever(), WAIT_S)
        return str(caught.value)

    async def work() -> None:
        new = tmp_path / "new"
        async with RefillSource(copy) as giver:
            sink = Sink(new, port=giver.address[1], attempts=1)
            assert "no sink can follow a replica" in await ends(sink)
        with quire.open(orders) as queue:
            async with Source(queue) as source:
                sink = Sink(new, port=source.address[1], attempts=1, refills=True)
                assert "not a replica that refills one" in await ends(sink)
        assert not new.exists()

    asyncio.run(work())
    for path, reason in ((orders, "only a replica can refill"), (tmp_path / "none", "none")):
        with pytest.raises((QuireError, OSError), match=reason):
            asyncio.run(RefillSource(path).__aenter__())


def test_the_replica_is_not_promoted_meanwhile(copy: Path) -> None:
    async def work() -> None:
        async with RefillSource(copy):
            with pytest.raises(AppendLockedError):
                await asyncio.to_thread(promote, copy, timeout_s=0.1)

    asyncio.run(work())
    assert promote(copy) == 2


def test_positions_of_readers_come_back(tmp_path: Path) -> None:
    orders, copy = tmp_path / "orders", tmp_path / "copy"
    with quire.open(orders, roll_cycle="FAST_DAILY") as queue:
        queue.appender().write_many([b"%d" % it for it in range(10)])
        with queue.tailer("replicated:risk") as tailer, queue.group("g").consumer() as consumer:
            tailer.read_many(3)
            consumer.ack_many(consumer.read_many(4))

    async def follow() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await sink.stored(queue.last_index or 0)
                await until(lambda: {"replicated:risk"} <= {*named(copy)} and has_group(copy))

    asyncio.run(asyncio.wait_for(follow(), WAIT_S))
    with quire.open(copy) as queue, queue.group("own").consumer() as consumer:
        consumer.ack_many(consumer.read_many(9))
    nothing(orders)
    refill(copy, orders)
    with quire.open(orders) as queue:
        with queue.tailer("replicated:risk") as tailer:
            assert tailer.read_bytes() == b"3"
        with queue.group("g").consumer() as consumer:
            found = consumer.read()
            assert found is not None
            assert (found.data, found.redelivered) == (b"4", True)
            found.ack()
        assert [it.name for it in queue.groups()] == ["g"]
    with quire.open(copy) as queue:
        with pytest.raises(GroupError):
            queue.group("g").consumer()
        with queue.group("own").consumer() as consumer:
            assert consumer.read() is not None


def named(path: Path) -> list[str]:
    with quire.open(path, read_only=True) as queue:
        return [name for name, _ in queue.named_tailers()]


def has_group(path: Path) -> bool:
    with quire.open(path, read_only=True) as queue:
        return [it.next_index for it in queue.groups() if it.name == "g"] != [] and all(
            it.pending == 0 and it.lag == 6 for it in queue.groups() if it.name == "g"
        )


Step = tuple[object, str, str]
KILLS: dict[str, Step] = {  # which side is killed, and at which step
    "the source joins": (standing, "write_of", "taker"),
    "the source has stored a batch": (replica.Replica, "apply", "taker"),
    "the source is to begin its epoch": (replica.Replica, "promote", "taker"),
    "the source has begun its epoch": (SinkSession, "take_over", "taker"),
    "the replica sends": (SourceSession, "pull", "giver"),
    "the replica has given": (standing, "write_of", "giver"),
    "the replica hands over": (SourceSession, "hand_over", "giver"),
}


@pytest.mark.check
@pytest.mark.parametrize("step", KILLS)
def test_a_kill_at_each_step(
    step: str, orders: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is run again afterwards ends well, and nothing is lost."""
    before, port = messages(copy), free_port()
    without_the_newest_files(orders)
    where, name, side = KILLS[step]
    original: Callable[..., object] = getattr(where, name)

    def deadly(*given: object, **named: object) -> object:
        if name not in {"promote", "take_over"}:  # before these, and after the others
            result = original(*given, **named)
            if name == "pull" and not result:  # the source has not joined yet
                return result
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def child() -> None:
        monkeypatch.setattr(where, name, deadly)
        asyncio.run(victim())

    async def victim() -> None:
        if side == "giver":
            async with RefillSource(copy, port=port) as giver:
                await giver.refilled()
        async with Sink(orders, port=port, refills=True, reconnect_s=0.01) as taker:
            await taker.run_forever()

    pid = fork(child)

    async def meet() -> None:
        dying = asyncio.create_task(asyncio.to_thread(exit_code, pid))
        if side == "taker":
            async with RefillSource(copy, port=port) as giver:
                giving = asyncio.create_task(giver.refilled())
                assert await asyncio.wait_for(dying, WAIT_S) == -signal.SIGKILL
                giving.cancel()
            return
        async with Sink(orders, port=port, refills=True, reconnect_s=0.01) as taker:
            assert await asyncio.wait_for(dying, WAIT_S) == -signal.SIGKILL
            await taker.close()

    asyncio.run(meet())
    assert messages(copy) == before
    assert messages(orders) == before[: len(messages(orders))]
    if step == "the source has begun its epoch":  # which is all that was left to do
        assert part(orders) == (2, "source")
    else:
        with pytest.raises(AppendLockedError):
            append(orders, b"too early")
        assert refill(copy, orders) >= 2
    assert messages(orders) == before
    append(orders, b"goes on")
    replicate(orders, copy)


@pytest.mark.check
def test_the_two_commands(orders: Path, copy: Path) -> None:
    before = messages(orders)
    nothing(orders)
    with started("replicate", "refill", copy, "--listen", "127.0.0.1:0") as giver:
        assert giver.stdout is not None
        address = giver.stdout.readline().decode().split()[1]
        taken = run("replicate", "refill", orders, "--from", address, timeout_s=WAIT_S)
        out, errors = giver.communicate(timeout=WAIT_S)
    assert (taken.code, taken.out) == (0, f"refilled {orders} epoch=2\n"), taken.err
    assert (giver.returncode, b"Traceback" in errors) == (0, False), errors.decode()
    assert out.decode().startswith("refilled ")
    assert out.decode().endswith(" epoch=2\n")
    assert messages(orders) == before
    append(orders, b"goes on")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--from", "127.0.0.1:1", "--listen", "127.0.0.1:0"),
        ("--listen", "127.0.0.1:0", "--repair"),
        ("--listen", "10.0.0.1:7003"),
        ("--from", "10.0.0.1:7003"),
        ("--from", "nowhere"),
    ],
    ids=" ".join,
)
def test_wrong_use(arguments: tuple[str, ...], cli: Cli, copy: Path) -> None:
    ran = cli("replicate", "refill", copy, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.usefixtures("copy")
def test_what_cannot_refill(cli: Cli, orders: Path, tmp_path: Path) -> None:
    with quire.vanilla.open(tmp_path / "vanilla") as queue:
        queue.appender().write_bytes(b"one")
    for path, code, reason in (
        (orders, 1, "only a replica can refill a source"),
        (tmp_path / "missing", 1, "missing"),
        (tmp_path / "vanilla", 2, "this format is not refilled"),
    ):
        ran = cli("replicate", "refill", path, "--listen", "127.0.0.1:0")
        assert (ran.code, ran.out) == (code, ""), path
        assert reason in ran.err
        assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "missing").exists()
