"""A pretoucher prepares files ahead of appenders: steps, its thread, the next cycle, its end."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from queues import (
    APPEND_LOCK,
    START_MS,
    UNLOCKED,
    exit_code,
    fork,
    mapped,
    payloads,
    poke,
    snapshot,
    threads_named,
)

THREAD = "quire-warm"
PATIENCE_S = 300.0
MIB = 2**20
SECOND_MS = 1000


@pytest.fixture
def clock() -> quire.ManualClock:
    return quire.ManualClock(START_MS)


@pytest.fixture
def queue(tmp_path: Path, clock: quire.ManualClock) -> quire.JournalQueue:
    return quire.open(tmp_path / "q", roll_cycle="TEST_SECONDLY", clock=clock, pretouch=False)


def files(queue: quire.JournalQueue) -> list[str]:
    return sorted(path.name for path in Path(queue.path).glob("*.cq4"))


@pytest.fixture
def threads() -> Callable[[], int]:
    """Count the threads of the test: one before it may still be ending."""
    others = threads_named(THREAD)
    return lambda: len(threads_named(THREAD) - others)


def reached(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not done() and time.monotonic() < deadline:
        time.sleep(0.001)
    return done()


def test_a_step_creates_the_file_of_the_current_cycle(queue: quire.JournalQueue) -> None:
    with queue, queue.pretoucher() as pretoucher:
        pretoucher.execute()
        assert files(queue) == [Path(queue.current_file).name]
        assert queue.entry_count == 0
        assert queue.appender().write_text("first") == queue.first_index


def test_a_step_that_must_not_write_creates_no_file(queue: quire.JournalQueue) -> None:
    with queue, queue.pretoucher(dont_write=True, early_acquire_next_cycle=True) as pretoucher:
        before = snapshot(Path(queue.path))
        pretoucher.execute()
        assert snapshot(Path(queue.path)) == before


def test_a_step_that_is_refused_leaves_later_appends_as_patient_as_before(
    queue: quire.JournalQueue, clock: quire.ManualClock
) -> None:
    with (
        queue,
        queue.appender() as appender,
        queue.appender() as other,
        queue.pretoucher() as pretoucher,
    ):
        path = Path(queue.path)
        with other.writing_document():
            clock.advance(SECOND_MS)
            poke(path, APPEND_LOCK, 1)
            pretoucher.execute()
            poke(path, APPEND_LOCK, UNLOCKED)
            # As without a step: this thread's own document is an error, and no wait that ended.
            with pytest.raises(quire.errors.DocumentOpenError):
                appender.write_text("second")


def test_a_step_closes_the_cycle_before(
    queue: quire.JournalQueue, clock: quire.ManualClock
) -> None:
    with queue, queue.pretoucher() as pretoucher:
        queue.appender().write_text("old")
        cycle = queue.current_cycle
        clock.advance(SECOND_MS)
        pretoucher.execute()
        assert len(files(queue)) == 2
        end = queue.end_of_cycle(cycle)
        assert end is not None
        assert end[2]


def test_space_is_reserved_after_the_last_message(queue: quire.JournalQueue) -> None:
    with queue, queue.pretoucher() as pretoucher:
        queue.appender().write_bytes(bytes(100))
        held = Path(queue.current_file).stat().st_blocks * 512
        pretoucher.execute()
        assert held < MIB <= Path(queue.current_file).stat().st_blocks * 512


def test_a_file_grows_before_its_block_is_full(tmp_path: Path) -> None:
    with (
        quire.open(tmp_path, block_bytes=MIB, pretouch=False) as queue,
        queue.pretoucher() as pretoucher,
        queue.appender() as appender,
    ):
        appender.write_bytes(bytes(100))
        before = Path(queue.current_file).stat().st_size
        for _ in range(4):
            appender.write_bytes(bytes(MIB // 4))
            pretoucher.execute()
        assert Path(queue.current_file).stat().st_size > before
        assert len(payloads(queue)) == 5


def test_the_next_file_is_created_early_and_used_in_its_time(
    queue: quire.JournalQueue, clock: quire.ManualClock
) -> None:
    with (
        queue,
        queue.pretoucher(early_acquire_next_cycle=True, preroll_time_s=0.4) as pretoucher,
        queue.appender() as appender,
        # Opened before: who opens the queue lists the directory, and finds the early file.
        quire.open(queue.path, clock=clock) as other,
        other.appender() as second,
    ):
        appender.write_text("one")
        now = queue.current_cycle
        clock.advance(500)
        pretoucher.execute()
        assert len(files(queue)) == 1
        clock.advance(100)
        pretoucher.execute()
        assert len(files(queue)) == 2
        # Not used before its time.
        indexes = [appender.write_text("two"), second.write_text("three")]
        assert [index >> 32 for index in indexes] == [now, now]
        clock.advance(400)
        assert appender.write_text("four") >> 32 == now + 1
        with queue.tailer() as tailer:
            assert [tailer.read_text() for _ in range(5)] == ["one", "two", "three", "four", None]


def test_the_next_file_is_not_created_early_by_default(
    queue: quire.JournalQueue, clock: quire.ManualClock
) -> None:
    with queue, queue.pretoucher() as pretoucher:
        clock.advance(SECOND_MS - 1)
        pretoucher.execute()
        assert len(files(queue)) == 1


def test_a_step_does_not_wait_for_the_write_lock(
    queue: quire.JournalQueue, clock: quire.ManualClock
) -> None:
    with queue, queue.pretoucher() as pretoucher, queue.appender() as appender:
        with appender.writing_document() as document:
            document.write("n", 1)
            clock.advance(SECOND_MS)
            pretoucher.execute()
            assert len(files(queue)) == 1
        pretoucher.execute()
        assert len(files(queue)) == 2


def test_a_removed_file_is_left(queue: quire.JournalQueue) -> None:
    with queue, queue.pretoucher() as pretoucher:
        pretoucher.execute()
        Path(queue.current_file).unlink()
        queue.refresh()
        pretoucher.execute()
        assert len(files(queue)) == 1


def test_pages_are_released_before_the_last_message(tmp_path: Path) -> None:
    with (
        quire.open(tmp_path, pretouch=False) as queue,
        queue.pretoucher() as pretoucher,
        queue.appender() as appender,
    ):
        written = [bytes([number]) * (MIB // 4) for number in range(250)]
        for payload in written:
            appender.write_bytes(payload)
            pretoucher.execute()
        smaps = Path("/proc/self/smaps").read_text()
        rss = re.findall(rf"{re.escape(queue.path)}/\S*\.cq4\n.*?Rss: +(\d+) kB", smaps, re.DOTALL)
        assert sum(map(int, rss)) < 40 * 1024
        assert payloads(queue) == written


@pytest.mark.parametrize("end", ["close", "shutdown"])
def test_an_ended_pretoucher_refuses_and_its_queue_goes_on(
    queue: quire.JournalQueue, threads: Callable[[], int], end: str
) -> None:
    with queue:
        pretoucher = queue.pretoucher()
        pretoucher.start()
        getattr(pretoucher, end)()
        assert pretoucher.closed
        for call in (pretoucher.execute, pretoucher.start):
            with pytest.raises(quire.errors.ClosedError, match="the pretoucher is closed"):
                call()
        assert reached(lambda: threads() == 0)
        assert queue.appender().write_text("on") == queue.first_index


def test_a_pretoucher_ends_with_its_queue(queue: quire.JournalQueue) -> None:
    pretoucher = queue.pretoucher()
    pretoucher.start()
    queue.close()
    assert pretoucher.closed
    assert mapped(queue.path) == []
    with pytest.raises(quire.errors.ClosedError, match="the queue is closed"):
        pretoucher.execute()


def test_the_thread_follows_the_queue(
    queue: quire.JournalQueue, clock: quire.ManualClock, threads: Callable[[], int]
) -> None:
    with queue, queue.pretoucher() as pretoucher:
        pretoucher.start(interval_s=0.001)
        pretoucher.start()
        assert reached(lambda: threads() == 1)
        assert reached(lambda: len(files(queue)) == 1)
        clock.advance(SECOND_MS)
        assert reached(lambda: len(files(queue)) == 2)


def test_threads_take_steps_and_end_it_together(queue: quire.JournalQueue) -> None:
    def work(pretoucher: quire.Pretoucher) -> None:
        while True:
            try:
                pretoucher.execute()
            except quire.errors.ClosedError:
                return

    with queue:
        pretoucher = queue.pretoucher()
        workers = [threading.Thread(target=work, args=(pretoucher,)) for _ in range(3)]
        for worker in workers:
            worker.start()
        pretoucher.close()
        for worker in workers:
            worker.join(PATIENCE_S)
        assert not any(worker.is_alive() for worker in workers)


def test_a_clock_of_python_is_for_steps_alone(tmp_path: Path) -> None:
    with quire.open(tmp_path, clock=lambda: START_MS) as queue, queue.pretoucher() as pretoucher:
        pretoucher.execute()
        assert files(queue) == [Path(queue.current_file).name]
        with pytest.raises(quire.errors.UnsupportedError, match=r"call execute\(\)"):
            pretoucher.start()


def test_a_child_of_a_fork_refuses(queue: quire.JournalQueue) -> None:
    with queue, queue.pretoucher() as pretoucher:
        pretoucher.start()

        def child() -> None:
            with pytest.raises(quire.errors.ForkedError):
                pretoucher.execute()
            pretoucher.close()

        assert exit_code(fork(child)) == 0


def test_wrong_arguments(queue: quire.JournalQueue) -> None:
    with queue, queue.pretoucher() as pretoucher:
        for interval in (0, -1, float("nan"), 1e9):
            with pytest.raises(ValueError, match="invalid interval_s"):
                pretoucher.start(interval_s=interval)
        with pytest.raises(ValueError, match="preroll_time_s"):
            queue.pretoucher(preroll_time_s=-1)
        with pytest.raises(TypeError, match="dont_write"):
            queue.pretoucher(dont_write=1)  # type: ignore[arg-type]
        assert repr(pretoucher) == f"Pretoucher({queue.path})"
    with (
        quire.open(queue.path, read_only=True) as reader,
        pytest.raises(quire.errors.ReadOnlyError),
    ):
        reader.pretoucher()


def test_the_verb_takes_one_step(cli: Cli, tmp_path: Path) -> None:
    quire.open(tmp_path / "q").close()
    cli.ok("pretouch", tmp_path / "q", "--once")
    assert len([*(tmp_path / "q").glob("*.cq4")]) == 1
    refused = cli("pretouch", tmp_path / "none", "--once")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("quire: not a Chronicle Queue 5 queue")
