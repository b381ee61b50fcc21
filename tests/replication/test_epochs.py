"""A source that lost its end, or reigns again: what replicas had before counts no more."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import quire
from event_loops import until
from quire.errors import WaitTimeoutError
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
