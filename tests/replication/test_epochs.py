"""A source that lost its end, or reigns again: what replicas had before counts no more."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import quire
from event_loops import until
from quire._native import ReplicaStates
from quire.errors import ReplicationError, WaitTimeoutError, WriterInUseError
from quire.replication import Sink, Source, promote
from reference import Store

SHORT_S = 0.3


def append(path: Path, *texts: str, **options: Any) -> list[int]:  # noqa: ANN401
    with quire.open(path, timeout_s=SHORT_S) as queue, queue.appender() as appender:
        return [appender.write_bytes(text.encode(), **options) for text in texts]


def shown(path: Path) -> list[str]:
    """What a tailer sees that is held back until a replica has it."""
    with quire.open(path, read_after_replica_acknowledged=True) as queue, queue.tailer() as tailer:
        return [bytes(it).decode() for it in tailer.payloads()]


async def in_sync(path: Path, *copies: Path) -> None:
    """Have sinks get, and acknowledge, all of a queue."""
    async with AsyncExitStack() as stack:
        queue = stack.enter_context(quire.open(path, create=False))
        source = await stack.enter_async_context(Source(queue))
        for copy in copies:
            sink = Sink(copy, port=source.address[1], name=copy.name, repair=True)
            await stack.enter_async_context(sink)
        names, last = {it.name for it in copies}, queue.last_index
        await until(
            lambda: (
                names
                == {
                    it.name for it in queue.replicas if it.in_sync and it.acknowledged_index == last
                }
            )
        )


@pytest.mark.check
def test_what_replicas_had_in_an_earlier_epoch_counts_no_more(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    append(first, "1", "2")
    asyncio.run(in_sync(first, second, third))
    append(first, "lost 3", "lost 4", "lost 5")
    asyncio.run(in_sync(first, second))
    promote(third)
    append(third, "3")
    asyncio.run(in_sync(third, first))
    promote(first)

    with pytest.raises(WaitTimeoutError) as caught:
        append(first, "4", wait="any")
    assert caught.value.acknowledged == {"second": None, "third": None}
    assert shown(first) == ["1", "2", "3"]
    asyncio.run(in_sync(first, second))
    assert shown(first) == ["1", "2", "3", "4"]


@pytest.mark.check
def test_a_tailer_held_back_takes_no_message_for_one_that_was_put_aside(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    append(first, "1", "2")
    asyncio.run(in_sync(first, second))
    append(first, "lost 3", "lost 4")
    asyncio.run(in_sync(first, third))
    promote(second)
    asyncio.run(in_sync(second, third))
    promote(third)
    append(third, "3")
    assert shown(third) == ["1", "2"]


def lose_last(path: Path) -> None:
    """Have a queue's last message never have been written, as after a power cut."""
    file = max(path.glob("*.cq4"))
    content = bytearray(file.read_bytes())
    last = Store(bytes(content)).documents[-1]
    content[last.position : last.end] = bytes(last.end - last.position)
    with file.open("r+b") as opened:
        opened.write(content[: last.end])


async def begin_to_reign(path: Path) -> None:
    with quire.open(path, create=False) as queue:
        async with Source(queue):
            pass


def check_nobody_has_the_next(first: Path) -> None:
    with pytest.raises(WaitTimeoutError) as caught:
        append(first, "another 3", wait="any")
    with quire.open(first) as queue:
        assert queue.tailer().read_many(3) == [b"1", b"2", b"another 3"]
        last = queue.last_index
    assert last is not None
    assert caught.value.acknowledged == {"second": last - 1}
    assert shown(first) == ["1", "2"]


def test_what_replicas_had_beyond_an_end_that_was_cut_off_counts_no_more(tmp_path: Path) -> None:
    first = tmp_path / "first"
    append(first, "1", "2", "3")
    asyncio.run(in_sync(first, tmp_path / "second"))
    lose_last(first)
    quire.repair(first, dry_run=False)
    check_nobody_has_the_next(first)


def test_what_replicas_had_beyond_the_end_of_an_old_copy_counts_no_more(tmp_path: Path) -> None:
    first = tmp_path / "first"
    append(first, "1", "2")
    file = max(first.glob("*.cq4"))
    shutil.copy(file, tmp_path / "older")
    append(first, "3")
    asyncio.run(in_sync(first, tmp_path / "second"))
    shutil.copy(tmp_path / "older", file)
    asyncio.run(begin_to_reign(first))
    check_nobody_has_the_next(first)


LONG_S = 60.0
"""Nobody waits for as long: what replicas have, or the error, comes first."""


def written(appender: quire.JournalAppender) -> int:
    return appender.write_bytes(b"lost", wait="all")


def in_flight(appender: quire.JournalAppender) -> int:
    with appender.in_flight(4, wait="all") as flight:
        future = flight.write_bytes(b"lost")
    return future.result()


def by_callback(appender: quire.JournalAppender) -> int:
    return appender.when_acknowledged(appender.write_bytes(b"lost"), wait="all").result()


@pytest.mark.parametrize("write", [written, in_flight, by_callback])
def test_a_waiter_learns_that_a_message_was_put_aside(
    tmp_path: Path, write: Callable[[quire.JournalAppender], int]
) -> None:
    """Its queue is the source again meanwhile, and replicas have another message of its index."""
    first, second = tmp_path / "first", tmp_path / "second"
    append(first, "1")
    asyncio.run(in_sync(first, second))
    with (
        ThreadPoolExecutor() as pool,
        quire.open(first, timeout_s=LONG_S) as queue,
        queue.appender() as appender,
    ):
        outcome, appended = pool.submit(write, appender), threading.Event()
        while queue.entry_count < 2:
            appended.wait(0.01)
        promote(second)
        append(second, "other")
        asyncio.run(in_sync(second, first))
        promote(first)
        asyncio.run(in_sync(first, second))
        with pytest.raises(ReplicationError, match="it is unknown"):
            outcome.result()
    with quire.open(first) as queue:
        assert queue.tailer().read_many(9) == [b"1", b"other"]


@pytest.mark.parametrize("change", ["epoch", "cut"])
@pytest.mark.parametrize("wait", ["any", "all", 1])
def test_what_replicas_have_in_another_history_resolves_nothing(
    tmp_path: Path,
    change: str,
    wait: Any,  # noqa: ANN401
) -> None:
    with quire.open(tmp_path / "queue", timeout_s=LONG_S) as queue, queue.appender() as appender:
        states = ReplicaStates.of_queue(queue)
        states.lock_source()
        states.begin_epoch(1)
        slot = states.slot_of("b", "host:1")
        states.set_member(slot, True)  # noqa: FBT003 - positional alone
        flight = appender.in_flight(4, wait=wait)
        old = flight.write_bytes(b"old")
        if change == "epoch":
            states.begin_epoch(2)
        else:
            states.note_cut(None)
        new = flight.write_bytes(b"new")
        last = queue.last_index
        states.note(slot, sent=last, acknowledged=last, time_ns=1)
        assert isinstance(old.exception(), ReplicationError)
        later = appender.when_acknowledged(appender.write_bytes(b"later"), wait=wait)
        last = queue.last_index
        states.note(slot, sent=last, acknowledged=last, time_ns=1)
        assert later.result() == last
        assert not isinstance(new.exception(), WaitTimeoutError)


def test_a_tailer_held_back_knows_nothing_of_another_history(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    with (
        quire.open(path, read_after_replica_acknowledged=True) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        states = ReplicaStates.of_queue(queue)
        slot = states.slot_of("b", "host:1")
        states.set_member(slot, True)  # noqa: FBT003 - positional alone
        index = [appender.write_bytes(b"%d" % number) for number in range(3)][-1]
        states.note(slot, sent=index, acknowledged=index, time_ns=1)
        assert tailer.read_bytes() == b"0"
        states.note_cut(index - 2)
        assert tailer.read_bytes() is None
        states.note(slot, sent=index, acknowledged=index, time_ns=1)
        assert tailer.read_bytes() == b"1"


def test_messages_are_not_cut_off_under_a_running_source(tmp_path: Path) -> None:
    async def repair() -> None:
        with quire.open(first, create=False) as queue:
            async with Source(queue):
                lose_last(first)
                with pytest.raises(WriterInUseError, match="stop it first"):
                    await asyncio.to_thread(quire.repair, first, dry_run=False)

    first = tmp_path / "first"
    append(first, "1", "2", "3")
    asyncio.run(in_sync(first, tmp_path / "second"))
    asyncio.run(repair())
    quire.repair(first, dry_run=False)
    check_nobody_has_the_next(first)


def test_a_waiter_learns_that_a_repair_cut_messages_off(tmp_path: Path) -> None:
    first = tmp_path / "first"
    append(first, "1", "2")
    asyncio.run(in_sync(first, tmp_path / "second"))
    with (
        ThreadPoolExecutor() as pool,
        quire.open(first, timeout_s=LONG_S) as queue,
        queue.appender() as appender,
    ):
        outcome, appended = pool.submit(written, appender), threading.Event()
        while queue.entry_count < 3:
            appended.wait(0.01)
        lose_last(first)
        quire.repair(first, dry_run=False)
        with pytest.raises(ReplicationError, match="cut off"):
            outcome.result()
