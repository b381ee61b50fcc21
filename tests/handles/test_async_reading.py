"""Reading in event loops: waits that are cancelled, shared, left behind, or closed meanwhile."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

import quire
from event_loops import Ticks, ticking, until
from queues import exit_code, fork
from quire.pausers import Pauser

FORMATS = ["chronicle", "vanilla", "quick-queue"]
SHORT_S = 0.002


@pytest.fixture(params=FORMATS)
def any_queue(request: pytest.FixtureRequest, path: Path) -> Any:  # noqa: ANN401 - of any format
    queue = cast("quire.Queue", quire.open(path, format=request.param))
    with queue:
        yield queue


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Take what a loop says of its tasks."""


async def _waiting(ticks: Ticks, awaited: Awaitable[Any]) -> asyncio.Future[Any]:
    """Start a task, and return it once it waits."""
    task = asyncio.ensure_future(awaited)
    await ticks.more()
    assert not task.done()
    return task


def test_an_iterator_goes_on_after_waits_that_were_cancelled(any_queue: quire.Queue) -> None:
    async def main() -> list[bytes]:
        appender, messages = any_queue.appender(), aiter(any_queue.tailer())
        found: list[bytes] = []

        async def take() -> None:
            try:
                while True:
                    found.append((await asyncio.wait_for(anext(messages), SHORT_S)).data)
            except TimeoutError:
                return

        for number in range(30):
            if number % 3 == 0:
                await take()
            appender.write_bytes(b"%d" % number)
        await take()
        return found

    assert asyncio.run(main()) == [b"%d" % number for number in range(30)]


def test_a_wait_that_is_cancelled_as_its_message_comes_leaves_the_message(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def main() -> list[bytes]:
        tailer = queue.tailer("risk")
        found: list[bytes] = []
        async with ticking() as ticks:
            for number in range(40):
                task = await _waiting(ticks, tailer.aread_bytes())
                appender.write_bytes(b"%d" % number)
                await ticks.more(number)  # so that the cancellation meets each state of the wait
                task.cancel()
                try:
                    payload = await task
                except asyncio.CancelledError:
                    payload = await tailer.aread_bytes()
                found.append(payload or b"")
        return found

    assert asyncio.run(main()) == [b"%d" % number for number in range(40)]


def test_what_was_read_of_a_named_tailer_is_done_once_the_next_is_asked_for(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"one", b"two"])

    async def main() -> None:
        async with queue.tailer("risk") as tailer:
            await tailer.aread()
            await tailer.aread()

    async def failing() -> None:
        async with queue.tailer("book") as tailer:
            await tailer.aread()
            await tailer.aread()
            raise asyncio.CancelledError

    asyncio.run(main())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(failing())
    assert queue.tailer("risk").read_bytes() is None
    assert queue.tailer("book").read_bytes() == b"two"


def test_a_read_returns_none_when_nothing_came_in_time(any_queue: quire.Queue) -> None:
    tailer = any_queue.tailer()

    async def main() -> list[Any]:
        return [
            await tailer.aread(timeout_s=0),
            await tailer.aread(SHORT_S),
            await tailer.aread_bytes(SHORT_S),
            await tailer.aread_text(SHORT_S),
            await tailer.aread_many(10, SHORT_S),
            [it async for it in tailer.afollow(timeout_s=SHORT_S)],
            await tailer.aread(Decimal("0.01")),  # type: ignore[arg-type]  # as `wait` takes it
        ]

    assert asyncio.run(main()) == [None, None, None, None, [], [], None]


def test_reads_wait_for_what_comes(any_queue: quire.Queue) -> None:
    tailer, appender = any_queue.tailer(), any_queue.appender()
    reads: list[Callable[[], Awaitable[Any]]] = [
        tailer.aread,
        tailer.aread_bytes,
        tailer.aread_text,
        lambda: tailer.aread_many(10),
        lambda: anext(aiter(tailer)),
    ]

    async def main() -> list[Any]:
        found: list[Any] = []
        async with ticking() as ticks:
            for read in reads:
                task = await _waiting(ticks, read())
                appender.write_text("hello")
                found.append(await task)
        return [it.data if hasattr(it, "data") else it for it in found]

    found = asyncio.run(main())
    assert [b"hello" in it for it in (found[0], found[1], *found[3], found[4])] == [True] * 4
    assert found[2] == "hello"


def test_maps_and_objects_are_waited_for(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def main() -> list[Any]:
        tailer = queue.tailer()
        async with ticking() as ticks:
            task = await _waiting(ticks, tailer.aread_map())
            appender.write_map({"a": 1})
            found = [await task]
            task = await _waiting(ticks, tailer.aread_message())
            appender.write_map({"a": 2})
            with pytest.raises(quire.errors.WireError):
                await task
            return [*found, await tailer.aread_map(), await tailer.aread_message(timeout_s=SHORT_S)]

    assert asyncio.run(main()) == [{"a": 1}, {"a": 2}, None]


def test_an_iterator_that_ended_by_its_timeout_goes_on(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def main() -> list[bytes]:
        messages = queue.tailer().afollow(timeout_s=SHORT_S)
        found = [it.data async for it in messages]
        appender.write_bytes(b"late")
        return found + [it.data async for it in messages]

    assert asyncio.run(main()) == [b"late"]


def test_the_timeout_of_a_pauser_ends_an_iterator(queue: quire.JournalQueue) -> None:
    async def main() -> list[Any]:
        pauser = quire.pausers.timeout(SHORT_S)
        return [it async for it in queue.tailer().afollow(pauser=pauser)]

    assert asyncio.run(main()) == []


@pytest.mark.parametrize("timeout_s", [-1, "1", float("nan")])
def test_a_timeout_is_checked_before_anything_is_read(
    timeout_s: Any,  # noqa: ANN401 - also of a wrong type
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
) -> None:
    appender.write_bytes(b"one")
    tailer = queue.tailer()
    with pytest.raises((TypeError, ValueError), match="timeout_s"):
        asyncio.run(tailer.aread(timeout_s))
    with pytest.raises((TypeError, ValueError), match="timeout_s"):
        tailer.afollow(timeout_s)
    with queue.group("billing").consumer() as consumer:
        with pytest.raises((TypeError, ValueError), match="timeout_s"):
            asyncio.run(consumer.aread(timeout_s))
        assert consumer.read() is not None
    assert tailer.read_bytes() == b"one"


def test_a_second_task_that_waits_for_a_tailer_is_refused(any_queue: quire.Queue) -> None:
    tailer, appender = any_queue.tailer(), any_queue.appender()

    async def main() -> bytes:
        async with ticking() as ticks:
            first = await _waiting(ticks, tailer.aread_bytes())
            for read in (tailer.aread, lambda: anext(aiter(tailer)), tailer.aread_bytes):
                with pytest.raises(RuntimeError, match=r"another task waits .*queue\.group"):
                    await read()
            appender.write_bytes(b"one")
            with pytest.raises(RuntimeError, match="another task waits"):
                await tailer.aread()  # nor does it take what the first one waited for
            found: bytes = await first
            appender.write_bytes(b"two")
            assert await tailer.aread_bytes() == b"two"
            return found

    assert asyncio.run(main()) == b"one"


def test_tasks_that_share_a_consumer_get_each_message_once(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    found: list[bytes] = []

    async def work(consumer: quire.Consumer) -> None:
        async for message in consumer:
            await asyncio.sleep(0)
            assert message.ack()
            found.append(message.data)

    async def main() -> None:
        async with queue.group("billing").consumer() as consumer:
            tasks = [asyncio.create_task(work(consumer)) for _ in range(3)]
            async with ticking() as ticks:
                await ticks.more()
            for number in range(50):
                appender.write_bytes(b"%d" % number)
                if number % 10 == 0:
                    await asyncio.sleep(0)
            await until(lambda: len(found) == 50)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
    assert sorted(found) == sorted(b"%d" % number for number in range(50))
    assert queue.group("billing").lag == 0


def test_a_consumer_goes_on_after_waits_that_were_cancelled(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def main() -> list[bytes]:
        found: list[bytes] = []
        async with queue.group("billing").consumer() as consumer:
            messages = aiter(consumer)
            for number in range(10):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(messages), SHORT_S)
                assert await consumer.aread(SHORT_S) is None
                assert len(await consumer.aread_many(5, SHORT_S)) == 0
                appender.write_bytes(b"%d" % number)
                message = await asyncio.wait_for(anext(messages), 300)
                message.ack()
                found.append(message.data)
            appender.write_many([b"one", b"two"])
            batch = await consumer.aread_many(2)
            return found + batch.payloads()

    assert asyncio.run(main()) == [*(b"%d" % number for number in range(10)), b"one", b"two"]


@pytest.mark.parametrize("closes", ["tailer", "queue"])
def test_closing_ends_the_wait_of_a_task(closes: str, any_queue: quire.Queue) -> None:
    async def main() -> None:
        tailer = any_queue.tailer()
        async with ticking() as ticks:
            task = await _waiting(ticks, anext(aiter(tailer)))
            await (tailer if closes == "tailer" else any_queue).aclose()
            with pytest.raises(quire.errors.ClosedError):
                await task

    asyncio.run(main())


def test_closing_a_consumer_ends_the_wait_of_its_tasks(queue: quire.JournalQueue) -> None:
    async def main() -> None:
        consumer = queue.group("billing").consumer()
        async with ticking() as ticks:
            tasks = [await _waiting(ticks, consumer.aread()) for _ in range(2)]
            await consumer.aclose()
            for task in tasks:
                with pytest.raises(quire.errors.ClosedError):
                    await task

    asyncio.run(main())


def test_a_tailer_goes_on_in_the_next_event_loop(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    tailer = queue.tailer("risk")
    messages = aiter(tailer)
    left: list[asyncio.Task[Any]] = []

    async def leave() -> None:
        task = asyncio.ensure_future(anext(messages))
        async with ticking() as ticks:
            await ticks.more()
        left.append(task)

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(leave())
    finally:
        loop.close()
    appender.write_bytes(b"one")
    assert asyncio.run(tailer.aread_bytes()) == b"one"
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(anext(messages), SHORT_S))

    loop.set_exception_handler(_ignore)  # it is told that a task was left
    left.clear()
    gc.collect()
    appender.write_bytes(b"two")
    assert asyncio.run(tailer.aread_bytes()) == b"two"


def test_a_child_refuses_the_tailers_of_its_parent(queue: quire.JournalQueue) -> None:
    tailer, consumer = queue.tailer(), queue.group("billing").consumer()

    async def main() -> int:
        def child() -> None:
            asyncio.events._set_running_loop(None)
            for awaited in (tailer.aread(), anext(aiter(tailer)), consumer.aread()):
                with pytest.raises(quire.errors.ForkedError):
                    asyncio.run(_finished(awaited))

        async with ticking() as ticks:
            task = await _waiting(ticks, tailer.aread_bytes())
            pid = fork(child)
            queue.appender().write_bytes(b"one")
            assert await task == b"one"
        return pid

    assert exit_code(asyncio.run(main())) == 0


async def _finished(awaited: Awaitable[Any]) -> Any:  # noqa: ANN401 - whatever it is
    return await awaited


def test_a_tailer_that_tasks_read_is_freed_with_its_last_reference(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"one")
    gc.disable()
    try:
        tailer = queue.tailer("risk")
        asyncio.run(tailer.aread())
        gone = weakref.ref(tailer)
        del tailer
        assert gone() is None
        queue.tailer("risk").close()
    finally:
        gc.enable()


def test_async_with_closes_every_handle(any_queue: quire.Queue) -> None:
    async def main() -> list[bool]:
        async with any_queue as entered, entered.tailer() as tailer, entered.appender() as appender:
            assert entered is any_queue
            appender.write_bytes(b"one")
            assert await tailer.aread_bytes() == b"one"
        return [any_queue.closed, tailer.closed, appender.closed]

    assert asyncio.run(main()) == [True, True, True]


def test_a_close_that_is_cancelled_before_a_thread_is_free_is_completed(
    queue: quire.JournalQueue,
) -> None:
    is_free, closing = threading.Event(), asyncio.Event()

    async def read(tailer: quire.JournalTailer) -> None:
        async with tailer:
            closing.set()

    async def main(tailer: quire.JournalTailer) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        holding = asyncio.create_task(asyncio.to_thread(is_free.wait))
        await asyncio.sleep(0)
        task = asyncio.create_task(read(tailer))
        await closing.wait()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert not tailer.closed
        is_free.set()
        await holding

    tailer = queue.tailer("risk")
    asyncio.run(main(tailer))
    assert tailer.closed
    queue.tailer("risk").close()


def test_async_with_closes_a_queue_whose_ring_is_full_beside_other_tasks(path: Path) -> None:
    async def main() -> int:
        async with ticking() as ticks, quire.open(path, buffer_mode="async") as queue:
            appender = queue.appender()
            for _ in range(200):
                await appender.awrite_bytes(bytes(10_000))
            await ticks.more()
        return ticks.count

    assert asyncio.run(main()) > 0
    with quire.open(path, create=False) as queue:
        assert queue.entry_count == 200


def test_a_pauser_of_their_own_is_reset_by_each_wait(queue: quire.JournalQueue) -> None:
    class Counting(Pauser):
        resets = 0

        def reset(self) -> None:
            self.resets += 1
            super().reset()

    async def main() -> int:
        pauser = Counting(max_s=0.001)
        messages = queue.tailer().afollow(pauser=pauser)
        before = pauser.resets
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(messages), SHORT_S)
        return pauser.resets - before

    assert asyncio.run(main()) == 3
