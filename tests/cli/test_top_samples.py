"""Samples of queues, without a screen."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from older_queues import fill, wires
from opened import opened_below
from queues import DAY_MS, START_MS, UNLOCKED, WRITE_LOCK, poke
from quire._common import replication_file
from quire._common.replication_file import Standing
from quire._native import ReplicaStates
from quire.cli.live.sample import ReplicationSample, Sample
from quire.cli.live.sampler import Sampler
from quire.cli.live.trail import Trail, details
from quire.formats.detection import Format

SECOND = 10**9


class Clock:
    """A monotonic clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = SECOND

    def __call__(self) -> int:
        return self.now


class Watched:
    """A sampler that takes each sample two seconds after the one before."""

    def __init__(self, *paths: Path, time_field: str | None = None) -> None:
        self.clock = Clock()
        self.sampler = Sampler(paths, time_field=time_field, now_ns=self.clock)

    def all(self, *, seconds: float = 2) -> dict[str, Sample]:
        self.clock.now += round(seconds * SECOND)
        return {it.queue: it for it in self.sampler.sample()}

    def one(self) -> Sample:
        (found,) = self.all().values()
        return found


@pytest.fixture
def watched(appender: quire.JournalAppender, path: Path) -> Iterator[Watched]:
    """A queue with three messages, sampled once."""
    appender.write_many([b"one", b"two", b"three"])
    found = Watched(path)
    found.one()
    yield found
    found.sampler.close()


def test_a_first_sample_has_no_rates(appender: quire.JournalAppender, path: Path) -> None:
    appender.write_bytes(b"one")
    found = Watched(path).one()
    assert (found.state, found.format, found.messages_per_second) == ("ok", "chronicle", None)
    assert (found.files, found.rolls, found.idle_s) == (1, 0, 0)
    assert found.on_disk is not None
    assert found.disk is not None
    assert 0 < found.disk.free < found.disk.size


def test_rates_are_of_what_was_appended_since(
    watched: Watched, appender: quire.JournalAppender
) -> None:
    last = appender.write_many([b"four", b"fi"])
    assert last is not None
    found = watched.one()
    assert (found.messages_per_second, found.bytes_per_second) == (1, 3)
    assert (found.idle_s, found.end_index) == (0, hex(last + 1))
    idle = watched.one()
    assert (idle.messages_per_second, idle.bytes_per_second, idle.idle_s) == (0, 0, 2)


def test_bytes_are_extrapolated_from_the_newest_messages(
    watched: Watched, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"x" * 10] * 1000)
    found = watched.one()
    assert (found.messages_per_second, found.bytes_per_second) == (500, 5000)


def test_messages_are_counted_across_rolls(
    watched: Watched, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    appender.write_many([b"old"] * 5)
    for _ in range(2):
        clock.advance(DAY_MS)
        appender.write_many([b"new"] * 3)
    found = watched.one()
    assert found.messages_per_second == (5 + 3 + 3) / 2
    assert (found.files, found.rolls) == (3, 2)


def test_lags_are_those_of_the_named_tailers(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    clock: quire.ManualClock,
    watched: Watched,
) -> None:
    with queue.tailer("risk") as risk, queue.tailer("audit") as audit:
        risk.read_many(2)
        risk.commit()
        clock.advance(DAY_MS)
        appender.write_many([b"next"] * 4)
        audit.to_end()
        audit.commit()
        found = watched.one()
        assert {it.name: it.lag for it in found.tailers} == {"risk": 1 + 4, "audit": 0}
        assert found.lag == 5
        risk.read_bytes()
        risk.commit()
        risk_now = next(it for it in watched.one().tailers if it.name == "risk")
        assert (risk_now.lag, risk_now.messages_per_second) == (4, 0.5)
        risk.to_start()
        risk.commit()
        risk_now = next(it for it in watched.one().tailers if it.name == "risk")
        assert (risk_now.lag, risk_now.messages_per_second) == (7, None)


def test_a_source_says_what_no_replica_has(
    queue: quire.JournalQueue, watched: Watched, path: Path
) -> None:
    assert watched.one().replication is None
    replication_file.write(path, Standing.new().as_role("source"))
    first = queue.first_index or 0
    queue._note_acknowledged(first)  # pyright: ignore[reportPrivateUsage]
    states = ReplicaStates.open_or_create(path)
    for name in ("b", "c\x1b[2J", "observer"):
        states.set_member(states.slot_of(name, "host:1"), name != "observer")

    found = watched.one()

    members = ("b", "c\x1b[2J")
    assert found.replication == ReplicationSample("source", 1, hex(first), 2, members)
    shown = "\n".join(details(found, Trail(), 100))
    assert f"replication: source, epoch 1, acknowledged {first:#x}, lag 2, in sync b c" in shown
    assert "\x1b" not in shown


def test_a_sink_says_its_epoch(watched: Watched, path: Path) -> None:
    replication_file.write(path, Standing("0" * 32, 3, "sink"))

    assert watched.one().replication == ReplicationSample("sink", 3, None, None)


def test_the_holder_of_the_write_lock_is_shown(
    watched: Watched, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with appender.writing_document() as document:
        document.write("n", 1)
        assert watched.one().lock_pid == os.getpid()
        (lock,) = watched.one().locks
        assert (lock.name, lock.alive) == (WRITE_LOCK, True)
        holder = queue.write_lock.holder
        assert holder is not None
        assert holder.since is not None
        assert 0 <= lock.held_s <= time.time() - holder.since.timestamp()  # by its own record
    assert watched.one().locks == ()


def test_a_lock_without_a_record_is_held_for_as_long_as_it_was_seen(
    watched: Watched, path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_text("makes the file")
    poke(path, WRITE_LOCK, os.getpid())
    assert [watched.one().locks[0].held_s for _ in range(3)] == [0, 2, 4]
    poke(path, WRITE_LOCK, UNLOCKED)


def test_latency_is_from_the_first_append_in_histories(
    watched: Watched, appender: quire.JournalAppender
) -> None:
    for timings in ((10_000, 25_000, 30_000), (10_000, 25_000, 50_000), (10_000,)):
        history = {"sources": [1, 5], "timings": [*timings]}
        appender.write_map({"history": history, "buy": "EURUSD"})
    found = watched.one()
    assert (found.latencies_us, found.latency_us) == ((20, 40), 30)
    assert found.latency_of == "history"


def test_latency_by_a_time_field_ends_with_the_sample(
    appender: quire.JournalAppender, path: Path
) -> None:
    watched = Watched(path, time_field="at")
    watched.one()
    appender.write_map({"at": START_MS})
    found = watched.one()
    assert found.latency_of == "time field"
    assert found.latency_us is not None
    assert found.latency_us > 1e9  # START_MS is years ago


@pytest.mark.parametrize("kind", ["vanilla", "quick-queue"])
@pytest.mark.parametrize("count", [3, 1000])
def test_older_formats_have_rates_too(tmp_path: Path, kind: str, count: int) -> None:
    messages = wires(range(10), tmp_path / "wires")
    path = fill(tmp_path / "queue", kind, [messages])
    watched = Watched(path, time_field="at")
    assert watched.one().format == kind
    fill(path, kind, [(messages * 100)[:count]])
    found = watched.one()
    assert found.messages_per_second == count / 2
    assert found.bytes_per_second == pytest.approx(count * len(messages[0]) / 2, rel=0.01)
    assert found.latency_of == "time field"
    assert (found.lag, found.tailers, found.locks) == (None, (), ())
    assert watched.one().messages_per_second == 0


def test_named_tailers_of_a_vanilla_chronicle_have_lags(tmp_path: Path) -> None:
    path = fill(tmp_path / "queue", "vanilla", [[b"one", b"two"], [b"three"] * 4])
    with quire.open(path, format="vanilla") as queue:
        queue.tailer("idle").close()
        with queue.tailer("risk") as risk:
            assert risk.read_many(3) == [b"one", b"two", b"three"]
            risk.commit()
    watched = Watched(path)
    assert {it.name: it.lag for it in watched.one().tailers} == {"idle": 6, "risk": 3}
    fill(path, "vanilla", [[b"late"] * 2], first_day=2)
    found = watched.one()
    assert {it.name: it.lag for it in found.tailers} == {"idle": 8, "risk": 5}
    assert (found.lag, found.files, found.rolls) == (8, 3, 1)


def test_a_vanilla_chronicle_is_counted_across_cycles(tmp_path: Path) -> None:
    messages = wires(range(10), tmp_path / "wires")
    path = fill(tmp_path / "queue", "vanilla", [messages])
    watched = Watched(path)
    watched.one()
    fill(path, "vanilla", [messages * 50], first_day=1)
    fill(path, "vanilla", [messages], first_day=2)
    assert watched.one().messages_per_second == 510 / 2


def test_queues_come_and_go(tmp_path: Path) -> None:
    for name in ("a", "b/inner"):
        with quire.open(tmp_path / name) as queue, queue.appender() as appender:
            appender.write_bytes(b"one")
    watched = Watched(tmp_path)
    assert [*watched.all()] == ["a", "b/inner"]
    shutil.rmtree(tmp_path / "b/inner")
    gone = watched.all()["b/inner"]
    assert (gone.state, gone.error, gone.messages_per_second) == ("gone", None, None)
    with quire.open(tmp_path / "c") as queue, queue.appender() as appender:
        appender.write_bytes(b"one")
    assert [*watched.all(seconds=20)] == ["a", "c"]
    watched.sampler.close()


def test_another_queue_of_the_same_name_starts_again(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_many([b"one"] * 9)
    watched = Watched(path)
    watched.one()
    path.rename(tmp_path / "moved")
    with quire.open(path) as queue, queue.appender() as appender:
        last = appender.write_bytes(b"one")
    found = watched.one()
    assert (found.messages_per_second, found.end_index) == (None, hex(last + 1))
    watched.sampler.close()


def test_a_damaged_queue_is_shown_among_the_others(tmp_path: Path) -> None:
    for name in ("bad", "good"):
        with quire.open(tmp_path / name) as queue, queue.appender() as appender:
            appender.write_bytes(b"one")
    (file,) = (tmp_path / "bad").glob("*.cq4")
    with file.open("r+b") as damaged:
        damaged.seek(4)
        damaged.write(b"\xff" * 60)
    watched = Watched(tmp_path)
    found = watched.all()
    assert {name: it.state for name, it in found.items()} == {"bad": "error", "good": "ok"}
    assert file.name in (found["bad"].error or "")
    watched.sampler.close()


@pytest.mark.parametrize("form", ["chronicle", "vanilla", "quick-queue"])
def test_a_queue_whose_files_are_truncated_is_sampled_on(tmp_path: Path, form: Format) -> None:
    with quire.open(tmp_path / "queue", format=form) as queue:
        queue.appender().write_many([b"x" * 100] * 1000)
    sampler = Sampler((tmp_path / "queue",), time_field=None)
    try:
        for length in (4096, 100, 0):
            sampler.sample()
            for file in (tmp_path / "queue").rglob("*"):
                if file.is_file():
                    os.truncate(file, min(length, file.stat().st_size))
            for _ in range(2):  # without the signal that ends a process
                assert len(sampler.sample()) == 1
    finally:
        sampler.close()


def test_queues_of_one_name_are_told_apart(tmp_path: Path) -> None:
    paths = [tmp_path / "x" / "queue", tmp_path / "y" / "queue"]
    for path in paths:
        with quire.open(path) as queue, queue.appender() as appender:
            appender.write_bytes(b"one")
    watched = Watched(*paths)
    assert [*watched.all()] == [str(paths[1]), "queue"]
    watched.sampler.close()


@pytest.mark.skipif(sys.platform != "linux", reason="inotify")
def test_a_sample_lists_no_directory_and_opens_no_file(tmp_path: Path) -> None:
    queues = [quire.open(tmp_path / name, block_bytes=2**16) for name in ("a", "b", "c")]
    appenders = [queue.appender() for queue in queues]
    for queue, appender in zip(queues, appenders, strict=True):
        appender.write_many([b"x"] * 100)
        with queue.tailer("risk") as tailer:
            tailer.read_bytes()
            tailer.commit()
    watched = Watched(tmp_path)
    with opened_below(tmp_path) as at_first:
        watched.all()
    assert len(at_first) >= 3  # so it would be noticed
    with opened_below(tmp_path) as opened:
        for _ in range(5):
            for appender in appenders:
                appender.write_many([b"x"] * 10)
            assert all(it.messages_per_second == 5 for it in watched.all().values())
    assert opened == []
    watched.sampler.close()
    for queue in queues:
        queue.close()
