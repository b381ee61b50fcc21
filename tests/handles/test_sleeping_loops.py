"""Consumers, merged queues, services and method readers sleep while there is nothing to do."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import quire
from quire._native import EventLoopWaits
from quire._waiting.sleeping import AnyOf, Sleep
from quire.errors import ClosedError, WaitTimeoutError

LIMIT_S = 120.0  # of a hang
HOUR_S = 3600.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue"


@pytest.fixture
def queue(path: Path) -> Iterator[quire.JournalQueue]:
    with quire.open(path, source_id=1) as queue:
        yield queue


def until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < ends, "hangs"
        time.sleep(0.001)


def sleeps(path: Path) -> bool:
    """Whether somebody sleeps at the word of a queue."""
    try:
        word = (path / "waiting.quire").read_bytes()[8:12]  # none while the file is being made
        return int.from_bytes(word, "little") % 2 == 1
    except FileNotFoundError:
        return False


class Loop:
    """A thread that runs a loop."""

    def __init__(self, run: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self._run = run
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - shown by the test
            self.error = error

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def join(self) -> None:
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive(), "hangs"
        if self.error is not None:
            raise self.error


def take(consumer: quire.Consumer, count: int, found: list[bytes]) -> None:
    for message in consumer.follow():
        found.append(message.data)
        message.ack()
        if len(found) == count:
            return


def test_a_consumer_sleeps_and_is_woken_by_an_append(queue: quire.JournalQueue, path: Path) -> None:
    found: list[bytes] = []
    with queue.group("billing").consumer() as consumer, queue.appender() as appender:
        loop = Loop(lambda: take(consumer, 2, found))
        for data in (b"one", b"two"):
            until(lambda: sleeps(path))
            appender.write_bytes(data)
            until(lambda data=data: data in found)  # type: ignore[misc]
        loop.join()


def refused(_queue: quire.JournalQueue, message: quire.GroupMessage, _: quire.Consumer) -> None:
    message.nack()


def released(queue: quire.JournalQueue, message: quire.GroupMessage, _: quire.Consumer) -> None:
    queue.group("billing").release(message.index)


def left(_: quire.JournalQueue, __: quire.GroupMessage, consumer: quire.Consumer) -> None:
    consumer.close()


@pytest.mark.parametrize("give", [refused, released, left])
def test_a_consumer_that_sleeps_gets_what_another_had(
    queue: quire.JournalQueue, path: Path, give: Callable[..., None]
) -> None:
    group, found = queue.group("billing", ack_timeout_s=HOUR_S), list[bytes]()
    with queue.appender() as appender, group.consumer() as first, group.consumer() as second:
        appender.write_bytes(b"one")
        message = first.read()
        assert message is not None
        loop = Loop(lambda: take(second, 1, found))
        until(lambda: sleeps(path))
        give(queue, message, first)
        loop.join()
    assert found == [b"one"]


def test_a_consumer_that_sleeps_gets_what_timed_out(queue: quire.JournalQueue) -> None:
    group, found = queue.group("billing", ack_timeout_s=0.01), list[bytes]()
    with queue.appender() as appender, group.consumer() as first, group.consumer() as second:
        appender.write_bytes(b"one")
        assert first.read() is not None
        take(second, 1, found)
    assert found == [b"one"]


def test_a_consumer_that_sleeps_gets_the_next_message_of_a_key(
    queue: quire.JournalQueue, path: Path
) -> None:
    group, found = queue.group("billing", ack_timeout_s=HOUR_S, key="k"), list[bytes]()
    with queue.appender() as appender, group.consumer() as first, group.consumer() as second:
        appender.write_map({"k": 1, "v": 1})
        appender.write_map({"k": 1, "v": 2})
        message = first.read()
        assert message is not None
        loop = Loop(lambda: take(second, 1, found))
        until(lambda: sleeps(path))
        assert not found
        message.ack()
        loop.join()
    assert len(found) == 1


def test_a_consumer_that_sleeps_ends_with_its_group_or_in_time(
    queue: quire.JournalQueue, path: Path
) -> None:
    with queue.group("billing").consumer() as consumer:
        assert list(consumer.follow(timeout_s=0.01)) == []
        loop = Loop(lambda: list(consumer.follow()))
        until(lambda: sleeps(path))
    with pytest.raises(ClosedError):
        loop.join()


def test_tasks_that_share_a_consumer_sleep(queue: quire.JournalQueue, path: Path) -> None:
    async def work() -> list[bytes]:
        async with queue.group("billing").consumer() as consumer:
            tasks = [asyncio.create_task(consumer.aread()) for _ in range(3)]
            await asyncio.to_thread(until, lambda: sleeps(path))
            with queue.appender() as appender:
                appender.write_many([b"a", b"b", b"c"])
            messages = await asyncio.wait_for(asyncio.gather(*tasks), LIMIT_S)
            assert await consumer.aread(timeout_s=0.01) is None
            return sorted(it.data for it in messages if it is not None)

    assert asyncio.run(work()) == [b"a", b"b", b"c"]


def test_merged_queues_are_slept_at_together(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("bids", "asks")]
    queues = [quire.open(path) for path in paths]
    found: list[bytes] = []

    def read() -> None:
        for message in quire.read_merged(queues, key=lambda it: it.data, follow=True):
            found.append(message.data)
            if len(found) == 4:
                return

    loop = Loop(read)
    for number in range(4):
        until(lambda: all(map(sleeps, paths)))
        with queues[number % 2].appender() as appender:
            appender.write_bytes(b"%d" % number)
        until(lambda number=number: len(found) > number)  # type: ignore[misc]
    loop.join()
    assert found == [b"0", b"1", b"2", b"3"]
    for queue in queues:
        queue.close()


class Out:
    def checked(self, order: str) -> None: ...


class Risk:
    def __init__(self, out: Out) -> None:
        self.out = out

    def order(self, order: str) -> None:
        self.out.checked(order)


def test_a_service_sleeps_at_all_inputs_until_it_is_stopped(
    queue: quire.JournalQueue, path: Path, tmp_path: Path
) -> None:
    other = quire.open(tmp_path / "other", source_id=2)
    output = quire.open(tmp_path / "output", source_id=3)
    with quire.service(inputs=[queue, other], output=output, handler=Risk) as service:
        loop = Loop(service.run)
        for number, given in enumerate([queue, other]):
            until(lambda: sleeps(path) and sleeps(tmp_path / "other"))
            with given.appender() as appender:
                appender.method_writer(Risk).order("buy")
            with output.tailer() as tailer:
                tailer.move_to_index(output.first_index or 0)
                until(lambda number=number: count_of(output) > number)  # type: ignore[misc]
        service.stop()
        loop.join()
    for it in (other, output):
        it.close()


def count_of(output: quire.JournalQueue) -> int:
    output.refresh()
    return sum(b"checked" in payload for payload in output.tailer().payloads())


def test_a_service_that_sleeps_is_stopped_by_a_signal_handler(
    queue: quire.JournalQueue, path: Path, tmp_path: Path
) -> None:
    def kill() -> None:
        until(lambda: sleeps(path))
        os.kill(os.getpid(), signal.SIGUSR1)

    with (
        quire.open(tmp_path / "output", source_id=3) as output,
        quire.service(inputs=[queue], output=output, handler=Risk) as service,
    ):

        def stop(_number: int, _frame: object) -> None:
            service.stop()

        before = signal.signal(signal.SIGUSR1, stop)
        try:
            loop = Loop(kill)
            service.run()
            loop.join()
        finally:
            signal.signal(signal.SIGUSR1, before)


def test_an_awaited_service_sleeps_until_it_is_stopped_by_a_thread(
    queue: quire.JournalQueue, path: Path, tmp_path: Path
) -> None:
    with (
        quire.open(tmp_path / "output", source_id=3) as output,
        quire.service(inputs=[queue], output=output, handler=Risk) as service,
    ):
        loop = Loop(lambda: asyncio.run(asyncio.wait_for(service.arun(), LIMIT_S)))
        until(lambda: sleeps(path))
        with queue.appender() as appender:
            appender.method_writer(Risk).order("buy")
        until(lambda: count_of(output) == 1)
        service.stop()
        loop.join()


def test_a_method_reader_sleeps_until_it_is_closed(queue: quire.JournalQueue, path: Path) -> None:
    found: list[str] = []

    class Printer:
        def order(self, order: str) -> None:
            found.append(order)

    reader = queue.tailer().method_reader(Printer())
    loop = Loop(reader.run)
    until(lambda: sleeps(path))
    with queue.appender() as appender:
        appender.method_writer(Risk).order("buy")
    until(lambda: found == ["buy"])
    reader.close()
    loop.join()


class AlwaysDue:
    """What is due although there is nothing to do, as a group that is full."""

    def __init__(self) -> None:
        self.begun = 0
        self.cancelled = 0

    def _begin_wait(self, waits: EventLoopWaits, number: int, /) -> AlwaysDue:
        self.begun += 1
        waits.wake(number)
        return self

    def cancel(self) -> None:
        self.cancelled += 1


def test_a_reader_that_is_woken_in_vain_pauses() -> None:
    sleeper = AlwaysDue()
    sleep = Sleep(sleeper)
    for _ in range(6):
        sleep.pause()
    assert sleeper.begun == sleeper.cancelled == 4, "each third one is a pause"
    for _ in range(6):
        sleep.reset()
        sleep.pause()
    assert sleeper.begun == sleeper.cancelled == 10

    async def work() -> None:
        for _ in range(6):
            await sleep.apause()

    asyncio.run(work())
    assert sleeper.begun == sleeper.cancelled == 14


def test_a_sleep_adds_up_to_its_timeout_and_may_be_ended_before() -> None:
    sleep = Sleep(AnyOf(tuple))
    sleep.unpause()
    sleep.pause()  # returns at once
    sleep.pause(timeout_s=0.001)
    time.sleep(0.001)
    with pytest.raises(WaitTimeoutError):
        sleep.pause(timeout_s=0.001)
    sleep.reset()
    asleep = threading.Event()

    def sleepers() -> tuple[()]:
        asleep.set()
        return ()

    noted = Sleep(AnyOf(sleepers))
    for pause in (noted.pause, lambda: asyncio.run(noted.apause())):
        asleep.clear()
        loop = Loop(pause)
        assert asleep.wait(LIMIT_S)
        noted.unpause()
        loop.join()


def test_a_child_that_was_forked_from_a_reader_sleeps_on_its_own() -> None:
    sleep = Sleep(AnyOf(tuple))
    sleep.unpause()
    sleep.pause()
    child = os.fork()
    if not child:
        sleep.unpause()
        sleep.pause()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
