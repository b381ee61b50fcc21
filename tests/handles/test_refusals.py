"""Who may not, and what does not fit: permissions, full cycles, closed handles."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, START_MS, UNLOCKED, WRITE_LOCK, exit_code, fork, payloads, snapshot

NOBODY = 65_534


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A directory that everybody may enter, unlike pytest's own."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def as_nobody(work: Callable[[], object]) -> int:
    """Run *work* as a user without rights and return its exit code."""

    def child() -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        work()

    return exit_code(fork(child))


def test_who_has_no_permission_gets_the_systems_error(open_to_all: Path) -> None:
    path = open_to_all / "queue"
    clock = quire.ManualClock(START_MS)
    quire.open(path, clock=clock).appender().write_bytes(b"secret")

    def refused() -> None:
        for target, read_only in [(path, True), (path, False), (open_to_all / "new", False)]:
            with pytest.raises(PermissionError) as caught:
                quire.open(target, read_only=read_only, create=True)
            assert str(target) in str(caught.value)

    path.chmod(0 if os.getuid() else 0o700)
    assert as_nobody(refused) == 0


def test_who_may_only_read_can_read_and_not_write(open_to_all: Path) -> None:
    path = open_to_all / "queue"
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock, file_mode=0o644) as queue:
        queue.appender().write_bytes(b"shared")
    before = snapshot(path)

    def read() -> None:
        with quire.open(path, read_only=True) as queue:
            assert payloads(queue) == [b"shared"]
            assert queue.last_index is not None
        with pytest.raises(PermissionError):
            quire.open(path)

    if os.getuid():
        path.chmod(0o555)
    assert as_nobody(read) == 0
    assert snapshot(path) == before


def test_a_full_cycle_takes_no_more_and_loses_nothing(tmp_path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(tmp_path, roll_cycle="TEST_DAILY", clock=clock, block_bytes=1) as queue:
        appender, texts = queue.appender(), [b"%d" % number for number in range(64)]
        appender.write_many(texts[:-1])
        with appender.writing_document() as document:  # makes the record of the lock's holder
            document.write_bytes(texts[-1])
        before = snapshot(tmp_path)
        writes: list[Callable[[], object]] = [
            lambda: appender.write_bytes(b"65th"),
            lambda: appender.write_many([b"65th"]),
            lambda: queue.appender().write_text("65th"),
            appender.writing_document,
        ]
        for write in writes:
            with pytest.raises(
                quire.errors.CycleFullError, match=r"cycle=19737 sequence=64 limit=64"
            ):
                write()
            assert queue.table_value(WRITE_LOCK) == UNLOCKED
        assert {name: before[name][0] for name in before} == {
            name: state[0] for name, state in snapshot(tmp_path).items()
        }
        clock.advance(DAY_MS)
        appender.write_bytes(b"the next day")
        assert payloads(queue) == [*texts, b"the next day"]


def test_closed_handles_say_what_is_closed(path: Path) -> None:
    queue = quire.open(path)
    appender, tailer = queue.appender(), queue.tailer()
    appender.write_bytes(b"x")
    other_appender, other_tailer = queue.appender(), queue.tailer()
    appender.close()
    tailer.close()

    def all_closed(name: str, calls: list[Callable[[], object]]) -> None:
        for call in calls:
            with pytest.raises(quire.errors.ClosedError, match=f"the {name} is closed"):
                call()

    def writes(appender: quire.JournalAppender) -> list[Callable[[], object]]:
        return [
            lambda: appender.write_bytes(b"x"),
            lambda: appender.write_text("x"),
            lambda: appender.write_map({"x": 1}),
            lambda: appender.write_many([b"x"]),
            appender.writing_document,
            appender.normalise_eofs,
            appender.sync,
        ]

    def reads(tailer: quire.JournalTailer) -> list[Callable[[], object]]:
        return [
            tailer.read,
            tailer.read_bytes,
            lambda: tailer.read_many(1),
            lambda: next(tailer),
            lambda: next(tailer.payloads()),
            lambda: tailer.wait(0),
            lambda: next(tailer.follow(0)),
            tailer.reading_document,
            tailer.to_start,
            tailer.to_end,
            tailer.commit,
            lambda: tailer.move_to_index(0),
            lambda: tailer.index,
        ]

    all_closed("appender", writes(appender))
    all_closed("tailer", reads(tailer))
    queue.close()
    all_closed("queue", [*writes(other_appender), *reads(other_tailer)])
    asks: list[Callable[[], object]] = [
        queue.appender,
        queue.tailer,
        queue.refresh,
        queue.dump,
        lambda: queue.entry_count,
        lambda: queue.first_index,
        lambda: queue.last_index,
        lambda: queue.cycles,
        lambda: queue.count_excerpts(0, 0),
        lambda: queue.table_value(WRITE_LOCK),
    ]
    all_closed("queue", asks)


def test_writing_on_a_network_file_system_can_be_allowed(path: Path) -> None:
    with quire.open(path, layout=quire.LayoutOptions(allow_network=True)) as queue:
        queue.appender().write_bytes(b"x")
        assert payloads(queue) == [b"x"]
