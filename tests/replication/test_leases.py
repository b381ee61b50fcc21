"""The lease of a source: past its end no append of Quire is made, by any process or in any way."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import quire
from quire._native import ReplicaStates, boot_time_ns
from quire.errors import AppendLockedError, CorruptError, LeaseExpiredError

HOUR_MS = 3_600_000
HOUR_NS = HOUR_MS * 1_000_000
OVER = 1
NAME = "replicas.quire"
LEASE_AT, BOOT_AT = 16, 8

Append = Callable[[quire.JournalAppender], object]


def in_document(appender: quire.JournalAppender) -> None:
    with appender.writing_document() as document:
        document.write_bytes(b"x")


WAYS: dict[str, Append] = {
    "bytes": lambda it: it.write_bytes(b"x"),
    "text": lambda it: it.write_text("x"),
    "map": lambda it: it.write_map({"a": 1}),
    "many": lambda it: it.write_many([b"x", b"y"]),
    "document": in_document,
}


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[quire.JournalQueue]:
    with quire.open(tmp_path / "queue") as queue:
        yield queue


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_append_is_refused_past_the_end_of_the_lease(
    queue: quire.JournalQueue, way: str
) -> None:
    states = ReplicaStates.open_or_create(queue.path)
    appender = queue.appender()
    WAYS[way](appender)  # no lease is needed
    states.set_lease_end(boot_time_ns() + HOUR_NS)
    WAYS[way](appender)
    states.set_lease_end(boot_time_ns() - 1)
    count = queue.entry_count
    with pytest.raises(LeaseExpiredError, match="over_ms="):
        WAYS[way](appender)
    assert queue.entry_count == count
    states.set_lease_end(boot_time_ns() + HOUR_NS)
    WAYS[way](appender)
    assert queue.entry_count > count


@pytest.mark.parametrize("step_ms", [1000, HOUR_MS, -HOUR_MS])
def test_an_appender_notices_the_file_within_a_second_of_its_clock(
    step_ms: int, tmp_path: Path
) -> None:
    """Also of one that is set, forward or back."""
    clock = quire.ManualClock(1_700_000_000_000)
    with quire.open(tmp_path / "queue", clock=clock) as queue:
        appender = queue.appender()
        appender.write_bytes(b"before")
        ReplicaStates.open_or_create(queue.path).set_lease_end(OVER)
        appender.write_bytes(b"not noticed yet")
        clock.now_ms += step_ms
        with pytest.raises(LeaseExpiredError):
            appender.write_bytes(b"after")
        with pytest.raises(LeaseExpiredError):
            queue.appender().write_bytes(b"of a new appender")
        assert queue.entry_count == 2


def test_a_lease_of_before_the_start_of_the_machine_is_over(queue: quire.JournalQueue) -> None:
    states = ReplicaStates.open_or_create(queue.path)
    slot = states.slot_of("b", "host:1")
    states.set_member(slot, True)  # noqa: FBT003 - positional alone
    states.note(slot, sent=7, acknowledged=7, time_ns=1)
    states.set_lease_end(boot_time_ns() + HOUR_NS)
    appender = queue.appender()
    appender.write_bytes(b"x")
    poke(Path(queue.path, NAME), BOOT_AT, 1)
    assert states.acknowledged("any") is None
    with pytest.raises(LeaseExpiredError, match="machine was restarted"):
        appender.write_bytes(b"y")
    again = ReplicaStates.open_or_create(queue.path)
    assert (again.lease_end, again.acknowledged("any"), again.members) == (OVER, None, 1)
    with pytest.raises(LeaseExpiredError):
        appender.write_bytes(b"y")
    again.set_lease_end(0)
    appender.write_bytes(b"z")


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
def test_a_lease_and_a_wall_clock_that_is_set(step_ms: int, tmp_path: Path) -> None:
    """It neither ends sooner nor goes on longer: its time is that since the machine was started."""
    clock = quire.ManualClock(1_700_000_000_000)
    with quire.open(tmp_path / "queue", clock=clock) as queue:
        states, appender = ReplicaStates.open_or_create(queue.path), queue.appender()
        for end_ns in (boot_time_ns() + HOUR_NS // 2, boot_time_ns() - 1):
            states.set_lease_end(end_ns)
            clock.now_ms += step_ms
            if end_ns > boot_time_ns():
                appender.write_bytes(b"within the lease")
            else:
                with pytest.raises(LeaseExpiredError):
                    appender.write_bytes(b"past it")
        assert queue.entry_count == 1


def test_an_open_document_is_not_published_past_the_end(queue: quire.JournalQueue) -> None:
    states = ReplicaStates.open_or_create(queue.path)
    appender = queue.appender()
    document = appender.writing_document()
    document.write_bytes(b"x")
    states.set_lease_end(OVER)
    with pytest.raises(LeaseExpiredError):
        document.close()
    states.set_lease_end(0)
    appender.write_bytes(b"the lock is free")
    assert queue.entry_count == 1


def test_messages_in_the_ring_stay_until_the_lease_is_renewed(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    with quire.open(path) as made:
        states = ReplicaStates.open_or_create(made.path)
    states.set_lease_end(OVER)
    with quire.open(path, buffer_mode="async") as queue:
        queue.appender().write_bytes(b"x")
        assert queue.entry_count == 0
        states.set_lease_end(0)
    with quire.open(path) as queue:
        assert queue.entry_count == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"short", bytes(36_864), os.urandom(36_864), b"x" * 99_999],
    ids=["empty", "short", "zeros", "random", "long"],
)
def test_a_file_that_is_none_is_refused(queue: quire.JournalQueue, content: bytes) -> None:
    Path(queue.path, NAME).write_bytes(content)
    with pytest.raises(CorruptError, match=NAME):
        ReplicaStates.open_or_create(queue.path)
    with pytest.raises(CorruptError, match=NAME):
        queue.appender().write_bytes(b"x")


def test_no_link_is_followed(queue: quire.JournalQueue, tmp_path: Path) -> None:
    Path(queue.path, NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises((OSError, quire.QuireError)):
        ReplicaStates.open_or_create(queue.path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_was_removed_does_not_open_the_queue(tmp_path: Path) -> None:
    clock = quire.ManualClock(1_700_000_000_000)
    with quire.open(tmp_path / "queue", clock=clock) as queue:
        ReplicaStates.open_or_create(queue.path).set_lease_end(OVER)
        appender = queue.appender()
        with pytest.raises(LeaseExpiredError):
            appender.write_bytes(b"before")
        Path(queue.path, NAME).unlink()
        clock.advance(5000)
        with pytest.raises(LeaseExpiredError):
            appender.write_bytes(b"after")


def test_other_processes_have_the_same_lease(queue: quire.JournalQueue) -> None:
    states = ReplicaStates.open_or_create(queue.path)
    states.set_lease_end(OVER)
    child = os.fork()
    if child == 0:
        code = 1
        with quire.open(queue.path) as own:
            try:
                own.appender().write_bytes(b"x")
            except AppendLockedError:
                code = 0
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def poke(path: Path, position: int, value: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(struct.pack("<Q", value))
