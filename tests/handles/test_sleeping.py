"""Sleeping until there is a message: who is woken by what, and what the side file may contain."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

import quire
from quire.errors import ClosedError, QuireError, WaitTimeoutError

SIDE_FILE = "waiting.quire"
LIMIT_S = 120  # of a hang


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue"


@pytest.fixture
def queue(path: Path) -> Iterator[quire.JournalQueue]:
    with quire.open(path) as queue:
        yield queue


def until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < ends, "hangs"
        time.sleep(0.001)


def word(path: Path) -> int:
    """How often the word was changed: odd while somebody sleeps."""
    try:
        return int.from_bytes((path / SIDE_FILE).read_bytes()[8:12], "little")
    except FileNotFoundError:
        return 0


def sleeps(path: Path) -> bool:
    return word(path) % 2 == 1


class Follower:
    """A thread that follows a tailer."""

    def __init__(self, tailer: quire.Tailer) -> None:
        self.found: list[bytes] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(tailer,), daemon=True)
        self._thread.start()

    def _run(self, tailer: quire.Tailer) -> None:
        try:
            for message in tailer.follow():
                self.found.append(message.data)
                if message.data == b"end":
                    return
        except QuireError as error:
            self.error = error

    def join(self) -> list[bytes]:
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive(), "hangs"
        return self.found


def test_an_append_changes_the_word_only_while_somebody_sleeps(
    queue: quire.JournalQueue, path: Path
) -> None:
    with queue.appender() as appender:
        appender.write_bytes(b"one")
        assert not (path / SIDE_FILE).exists(), "appenders make none"

    follower = Follower(queue.tailer())
    until(lambda: sleeps(path))
    with quire.open(path) as other, other.appender() as appender:  # looks for the file at once
        before = word(path)
        appender.write_bytes(b"end")
        assert word(path) > before
        assert follower.join() == [b"one", b"end"]
        appender.write_bytes(b"nobody waits")  # the word may have been left odd
        after = word(path)
        assert after % 2 == 0
        appender.write_many([b"nobody waits"] * 100)
        assert word(path) == after


def write_text(appender: quire.JournalAppender) -> None:
    appender.write_text("one")


def write_many(appender: quire.JournalAppender) -> None:
    appender.write_many([b"one", b"two"])


def write_map(appender: quire.JournalAppender) -> None:
    appender.write_map({"a": 1})


@pytest.mark.parametrize("append", [write_text, write_many, write_map])
def test_every_way_to_append_changes_the_word(
    queue: quire.JournalQueue, path: Path, append: Callable[[quire.JournalAppender], object]
) -> None:
    thread = threading.Thread(target=queue.tailer().wait, daemon=True)
    thread.start()
    until(lambda: sleeps(path))
    before = word(path)
    with queue.appender() as appender:
        append(appender)
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert word(path) > before


def test_a_document_changes_the_word_when_it_is_closed(
    queue: quire.JournalQueue, path: Path
) -> None:
    thread = threading.Thread(target=queue.tailer().wait, daemon=True)
    thread.start()
    until(lambda: sleeps(path))  # the appender looks for the side file as the document begins
    with queue.appender() as appender:
        with appender.writing_document() as document:
            document.write("a", 1)
            until(lambda: sleeps(path))
            before = word(path)
        assert word(path) > before
    thread.join(LIMIT_S)


def test_messages_that_nobody_announces_are_found(queue: quire.JournalQueue, path: Path) -> None:
    with queue.appender() as appender:
        appender.write_bytes(b"one")  # it looks for the side file again in a second
        follower = Follower(queue.tailer())
        until(lambda: sleeps(path))
        appender.write_bytes(b"end")
        assert follower.join() == [b"one", b"end"]


def test_a_read_only_reader_sleeps_and_changes_nothing(
    queue: quire.JournalQueue, path: Path
) -> None:
    with queue.appender() as appender, quire.open(path, read_only=True) as reader:
        appender.write_bytes(b"one")
        before = sorted(path.iterdir())
        follower = Follower(reader.tailer())
        until(lambda: follower.found == [b"one"])
        appender.write_bytes(b"end")
        assert follower.join() == [b"one", b"end"]
        assert sorted(path.iterdir()) == before


@pytest.mark.parametrize("content", [b"x", b"x" * 64, b"\xff" * 64, b"\0" * 4096])
def test_a_side_file_of_something_else_is_left_alone(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    quire.open(path).close()
    (path / SIDE_FILE).write_bytes(content)
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_bytes(b"one")
        follower = Follower(queue.tailer())
        until(lambda: follower.found == [b"one"])
        appender.write_bytes(b"end")
        assert follower.join() == [b"one", b"end"]
    assert (path / SIDE_FILE).read_bytes() == content
    assert sum(SIDE_FILE in it.getMessage() for it in caplog.records) == 1


def make_link(at: Path) -> None:
    at.symlink_to(at.parent / "elsewhere")


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, make_link])
def test_what_is_no_file_is_not_opened(path: Path, make: Callable[[Path], object]) -> None:
    quire.open(path).close()
    make(path / SIDE_FILE)
    with quire.open(path) as queue, queue.appender() as appender:
        follower = Follower(queue.tailer())
        appender.write_bytes(b"end")
        assert follower.join() == [b"end"]
    assert not (path / "elsewhere").exists()


def test_a_word_at_its_end_begins_again(path: Path) -> None:
    quire.open(path).close()
    (path / SIDE_FILE).write_bytes(b"QuireWt1" + b"\xff" * 4 + bytes(52))
    with quire.open(path) as queue, queue.appender() as appender:
        follower = Follower(queue.tailer())

        def is_past_its_end() -> bool:
            appender.write_bytes(b"one")
            return word(path) < 100

        until(is_past_its_end)
        appender.write_bytes(b"end")
        *before, last = follower.join()
        assert (set(before), last) == ({b"one"}, b"end")


def test_a_removed_side_file_is_made_again(queue: quire.JournalQueue, path: Path) -> None:
    follower = Follower(queue.tailer())
    until(lambda: sleeps(path))
    (path / SIDE_FILE).unlink()
    with queue.appender() as appender:
        appender.write_bytes(b"end")
        assert follower.join() == [b"end"]
        with quire.open(path) as other:
            tailer = other.tailer()
            tailer.to_end()
            second = Follower(tailer)
            until(lambda: sleeps(path))
            appender.write_bytes(b"end")
            assert second.join() == [b"end"]


def test_a_directory_in_the_place_of_the_queue_gets_no_side_file(
    queue: quire.JournalQueue, path: Path
) -> None:
    path.rename(path.parent / "moved")
    with quire.open(path):
        assert list(queue.tailer().follow(timeout_s=0.05)) == []
        assert not (path / SIDE_FILE).exists()


KILLED = """
import sys, quire
with quire.open(sys.argv[1]) as queue:
    queue.tailer().wait()
"""


def test_a_killed_sleeper_costs_one_wake_up(queue: quire.JournalQueue, path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, path]) as sleeper:
        until(lambda: sleeps(path))
        sleeper.kill()
    before = word(path)
    assert before % 2 == 1
    with queue.appender() as appender:
        for _ in range(3):
            appender.write_bytes(b"one")
            assert word(path) == before + 1


INTERRUPTED = """
import sys, quire
with quire.open(sys.argv[1]) as queue:
    try:
        queue.tailer().wait()
    except KeyboardInterrupt:
        sys.exit(7)
"""


def test_ctrl_c_ends_a_sleep(queue: quire.JournalQueue, path: Path) -> None:
    del queue
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED, path]) as sleeper:
        until(lambda: sleeps(path))
        sleeper.send_signal(signal.SIGINT)
        assert sleeper.wait(LIMIT_S) == 7


def test_closing_ends_a_sleep(path: Path) -> None:
    for close in ("tailer", "queue"):
        queue = quire.open(path)
        tailer = queue.tailer()
        follower = Follower(tailer)
        until(lambda: sleeps(path))
        (tailer if close == "tailer" else queue).close()
        follower.join()
        assert isinstance(follower.error, ClosedError)
        queue.close()


def test_a_sleep_ends_by_its_time(queue: quire.JournalQueue) -> None:
    tailer = queue.tailer()
    with pytest.raises(WaitTimeoutError, match=r"no message arrived in time: timeout_s=0.01"):
        tailer.wait(0.01)
    assert list(tailer.follow(timeout_s=0)) == []


def test_a_child_sleeps_on_its_own(queue: quire.JournalQueue, path: Path) -> None:
    follower = Follower(queue.tailer())
    until(lambda: sleeps(path))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with quire.open(path) as own:
                found = Follower(own.tailer()).join()
                status = 0 if found == [b"one", b"end"] else 2
        finally:
            os._exit(status)
    with queue.appender() as appender:
        appender.write_bytes(b"one")
        appender.write_bytes(b"end")
    assert follower.join() == [b"one", b"end"]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.check
def test_more_queues_than_the_system_waits_for_at_once(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(140)]
    queues = [quire.open(path) for path in paths]
    followers = [Follower(queue.tailer()) for queue in queues]
    until(lambda: all(map(sleeps, paths)))
    for queue in queues:
        with queue.appender() as appender:
            appender.write_bytes(b"end")
    assert all(follower.join() == [b"end"] for follower in followers)
    for queue in queues:
        queue.close()


@pytest.mark.parametrize("kind", ["vanilla", "quick-queue"])
def test_other_formats_are_followed(path: Path, kind: Literal["vanilla", "quick-queue"]) -> None:
    other: quire.Queue = quire.open(path, format=kind)
    with other as queue, queue.appender() as appender:
        follower = Follower(queue.tailer())
        appender.write_bytes(b"one")
        until(lambda: follower.found == [b"one"])
        appender.write_bytes(b"end")
        assert follower.join() == [b"one", b"end"]
        assert not (path / SIDE_FILE).exists()


def test_a_tailer_of_other_topics_sleeps_on(queue: quire.JournalQueue) -> None:
    follower = Follower(queue.tailer().topics("LDN"))
    with queue.appender() as appender:
        for _ in range(1000):
            appender.topic("NYC").write_text("x")
        appender.topic("LDN").write_text("y")
        until(lambda: len(follower.found) == 1)


def test_a_roll_is_followed(path: Path) -> None:
    clock = quire.ManualClock(1_700_000_000_000)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        follower = Follower(queue.tailer())
        for number in range(5):
            until(lambda: sleeps(path))
            appender.write_bytes(b"%d" % number)
            clock.advance(86_400_000)
            until(lambda number=number: len(follower.found) == number + 1)  # type: ignore[misc]
        appender.write_bytes(b"end")
        assert follower.join() == [b"0", b"1", b"2", b"3", b"4", b"end"]


def test_tasks_sleep_and_are_woken(queue: quire.JournalQueue, path: Path) -> None:
    async def main() -> list[bytes]:
        tailers = [queue.tailer() for _ in range(300)]
        tasks = [asyncio.create_task(tailer.aread_bytes()) for tailer in tailers]
        await asyncio.to_thread(until, lambda: sleeps(path))
        queue.appender().write_bytes(b"one")
        return [found for found in await asyncio.gather(*tasks) if found is not None]

    assert asyncio.run(main()) == [b"one"] * 300


@pytest.mark.parametrize("gone", [0, 7, 49])
def test_of_many_that_sleep_at_one_place_any_may_leave(
    queue: quire.JournalQueue, path: Path, gone: int
) -> None:
    async def main() -> list[bytes | None]:
        with quire.open(path, read_only=True) as reader:
            tailers = [reader.tailer() for _ in range(50)]
            tasks = [asyncio.create_task(tailer.aread_bytes()) for tailer in tailers]
            await asyncio.sleep(0.05)
            tasks.pop(gone).cancel()
            await asyncio.sleep(0.05)
            appender.write_bytes(b"two")
            return await asyncio.gather(*tasks)

    with queue.appender() as appender:  # which announces nothing: there is no side file
        assert asyncio.run(main()) == [b"two"] * 49
        assert not (path / SIDE_FILE).exists()


def test_one_of_many_that_sleep_is_moved(queue: quire.JournalQueue, path: Path) -> None:
    async def main() -> bytes | None:
        with quire.open(path, read_only=True) as reader:
            tailers = [reader.tailer() for _ in range(50)]
            for tailer in tailers:
                tailer.to_end()
            tasks = [asyncio.create_task(tailer.aread_bytes()) for tailer in tailers]
            await asyncio.sleep(0.05)
            tailers[20].to_start()
            found = await tasks.pop(20)
            for task in tasks:
                task.cancel()
            return found

    queue.appender().write_bytes(b"one")
    assert asyncio.run(main()) == b"one"


def test_a_cancelled_task_leaves_its_tailer_alone(queue: quire.JournalQueue, path: Path) -> None:
    async def main() -> None:
        tailer = queue.tailer()
        for number in range(20):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(tailer.aread_bytes(), 0.005)
            queue.appender().write_bytes(b"%d" % number)
            assert await tailer.aread_bytes() == b"%d" % number
        assert await tailer.aread_bytes(timeout_s=0.01) is None

    asyncio.run(main())
    assert (path / SIDE_FILE).exists()


def test_a_loop_that_is_closed_with_tasks_leaves_others_alone(
    queue: quire.JournalQueue, path: Path
) -> None:
    loop = asyncio.new_event_loop()
    tailer, task = queue.tailer(), None
    task = loop.create_task(tailer.aread_bytes())
    while not sleeps(path):
        loop.run_until_complete(asyncio.sleep(0.001))
    task.cancel()
    loop.close()
    follower = Follower(queue.tailer())
    queue.appender().write_bytes(b"end")
    assert follower.join() == [b"end"]
    assert asyncio.run(tailer.aread_bytes()) == b"end"


def test_loops_of_several_threads_sleep_at_once(queue: quire.JournalQueue, path: Path) -> None:
    found: list[bytes | None] = []

    def run() -> None:
        found.append(asyncio.run(queue.tailer().aread_bytes()))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: sleeps(path))
    queue.appender().write_bytes(b"one")
    for thread in threads:
        thread.join(LIMIT_S)
    assert found == [b"one"] * 4
