"""What `queue.metrics()` counts, in this process and in others."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import quire
from queues import exit_code, fork
from quire.metrics import Histogram

SIDE_FILE = "metrics.quire"


@pytest.fixture
def counted(path: Path) -> Any:  # noqa: ANN401 - an iterator of queues
    with quire.open(path, metrics=True) as queue:
        yield queue


def test_every_way_to_append_is_counted(counted: quire.JournalQueue) -> None:
    appender = counted.appender()
    appender.write_bytes(b"one")
    appender.write_text("two")
    appender.write_map({"n": 1})
    appender.write_many([b"a", b"bb"])
    with appender.writing_document() as document:
        document.write("n", 1)
    with pytest.raises(ZeroDivisionError), appender.writing_document() as document:
        document.write("n", 1 / 0)
    with quire.open(counted.path, read_only=True) as uncounted, uncounted.tailer() as tailer:
        sizes = [len(payload) for payload in tailer.payloads()]
    found = counted.metrics()
    assert found.messages_appended == len(sizes) == 6
    assert found.bytes_appended == sum(sizes)
    assert found.append_latency.count == 5  # a batch is one call
    assert found.rolls == 1
    assert found.messages_read == 0


def test_asynchronous_appends_are_counted_when_they_are_drained(path: Path) -> None:
    with quire.open(path, buffer_mode="async", metrics=True) as queue:
        with queue.appender() as appender:
            appender.write_bytes(b"one")
            appender.write_many([b"a", b"bb"])
            with appender.writing_document(metadata=True) as document:
                document.write("n", 1)
        assert queue.ring is not None
        queue.ring.flush()
        found = queue.metrics()
    assert (found.messages_appended, found.bytes_appended) == (3, 6)
    assert found.append_latency.count >= 1


def test_every_way_to_read_is_counted(counted: quire.JournalQueue) -> None:
    appender = counted.appender()
    appender.write_many([b"12345678"] * 8)
    tailer = counted.tailer()
    tailer.read()
    tailer.read_bytes()
    next(tailer.payloads())
    tailer.read_many(2)
    tailer.read_batch(1)
    with tailer.reading_document() as document:
        assert document.is_present
    assert next(iter(tailer))
    assert tailer.read() is None
    found = counted.metrics()
    assert (found.messages_read, found.bytes_read) == (8, 64)
    assert found.read_latency.count == 7


def test_nothing_is_counted_unless_asked_for(path: Path, queue: quire.JournalQueue) -> None:
    queue.appender().write_bytes(b"x")
    found = queue.metrics()
    assert not found.recorded
    assert found.messages_appended == 0
    assert not (path / SIDE_FILE).exists()


@pytest.mark.parametrize(("value", "counts"), [("1", True), ("0", False), ("", False)])
def test_the_environment_turns_it_on(
    value: str,
    counts: bool,  # noqa: FBT001
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QUIRE_METRICS", value)
    with quire.open(path) as queue:
        queue.appender().write_bytes(b"x")
        assert queue.metrics().recorded == counts
        again = pickle.loads(pickle.dumps(queue))
        assert again.metrics().messages_appended == counts
    with quire.open(path / "off", metrics=False) as queue:
        assert not queue.metrics().recorded
    quire.open(path / "quick", format="quick-queue").close()


def test_another_process_sees_what_was_counted_and_what_a_killed_one_counted(
    path: Path, counted: quire.JournalQueue
) -> None:
    writer = (
        "import os, signal, sys, quire\n"
        "appender = quire.open(sys.argv[1], metrics=True).appender()\n"
        "for number in range(100):\n"
        "    appender.write_bytes(b'four')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ran = subprocess.run([sys.executable, "-c", writer, str(path)], check=False)
    assert ran.returncode == -signal.SIGKILL
    counted.appender().write_bytes(b"four")
    with quire.open(path, read_only=True) as reader:
        for queue in (counted, reader):
            found = queue.metrics()
            assert (found.messages_appended, found.bytes_appended) == (101, 404)
            assert found.append_latency.count == 101


def test_a_reader_sees_counting_begin(path: Path) -> None:
    with quire.open(path) as queue:
        assert not queue.metrics().recorded
        with quire.open(path, metrics=True) as other:
            other.appender().write_bytes(b"x")
        assert queue.metrics().messages_appended == 1


def test_threads_lose_no_count(counted: quire.JournalQueue) -> None:
    def write() -> None:
        appender = counted.appender()
        for _ in range(500):
            appender.write_bytes(b"x")

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = counted.metrics()
    assert found.messages_appended == found.append_latency.count == 2000


def test_a_forked_child_counts_through_its_own_queue(
    path: Path, counted: quire.JournalQueue
) -> None:
    def child() -> None:
        with quire.open(path, metrics=True) as queue:
            queue.appender().write_bytes(b"x")

    assert exit_code(fork(child)) == 0
    assert counted.metrics().messages_appended == 1


def test_waits_for_the_write_lock_are_counted(counted: quire.JournalQueue) -> None:
    appender, other = counted.appender(), counted.appender()
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with appender.writing_document() as document:
            document.write("n", 1)
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    # The lock is held until the wait below ended.
    with (
        pytest.raises(quire.errors.LockTimeoutError),
        quire.open(counted.path, metrics=True, timeout_s=0.05) as impatient,
    ):
        impatient.appender().write_bytes(b"x")
    release.set()
    thread.join()
    other.write_bytes(b"x")
    waited = counted.metrics().lock_wait
    assert waited.count == 1
    assert waited.max_ns >= 50_000_000


def test_rolls_are_counted(path: Path, clock: quire.ManualClock) -> None:
    with quire.open(path, roll_cycle="TEST4_SECONDLY", clock=clock, metrics=True) as queue:
        for _ in range(3):
            queue.appender().write_bytes(b"x")
            clock.advance(1000)
        assert queue.metrics().rolls == 3


def test_the_lag_is_that_of_each_named_tailer(path: Path, clock: quire.ManualClock) -> None:
    with quire.open(path, roll_cycle="TEST4_SECONDLY", clock=clock) as queue:
        appender = queue.appender()
        for _ in range(3):
            appender.write_many([b"x"] * 4)
            clock.advance(1000)
        with queue.tailer("fresh"), queue.tailer("middle") as middle, queue.tailer("end") as end:
            middle.read_many(6)
            middle.commit()
            end.to_end()
            assert queue.metrics().lag == {"fresh": 12, "middle": 6, "end": 0}
        appender.write_bytes(b"x")
        assert queue.metrics().lag == {"fresh": 13, "middle": 7, "end": 1}


def test_what_groups_deliver_again_and_give_up_is_counted(
    path: Path, counted: quire.JournalQueue
) -> None:
    counted.appender().write_many([b"x"] * 3)
    group = counted.group("billing", dead_letter=path / "dead", max_deliveries=2)
    with group.consumer() as consumer:
        assert len(consumer.read_many(3)) == 3
    with group.consumer() as consumer:
        consumer.read_many(3)[0].ack()
    with quire.open(path, read_only=True) as reader:
        assert reader.metrics().group_lag == {"billing": 2}
        assert (reader.metrics().redeliveries, reader.metrics().dead_letters) == (3, 0)
        with group.consumer() as consumer:
            assert not consumer.read_many(3)
        found = reader.metrics()
        assert (found.redeliveries, found.dead_letters) == (3, 2)
        assert found.group_lag == {"billing": 0}


def test_what_retention_removes_is_counted(path: Path, clock: quire.ManualClock) -> None:
    with quire.open(path, roll_cycle="TEST4_SECONDLY", clock=clock, metrics=True) as queue:
        for _ in range(4):
            queue.appender().write_bytes(b"x")
            clock.advance(1000)
        assert queue.metrics().last_prune_ms == 0
        quire.prune(path, max_cycles=1, dry_run=True)
        assert queue.metrics().last_prune_ms == 0
    report = quire.prune(path, max_cycles=2, clock=clock)
    with quire.open(path, read_only=True) as queue:
        found = queue.metrics()
    assert (found.cycles_removed, found.bytes_freed) == (len(report.removed), report.bytes)
    assert found.cycles_removed == 2
    assert found.last_prune_ms == clock.now_ms


def test_retention_counts_only_where_others_do(path: Path, queue: quire.JournalQueue) -> None:
    queue.appender().write_bytes(b"x")
    quire.prune(path, max_cycles=1)
    assert not (path / SIDE_FILE).exists()


def test_another_process_sees_the_state_of_the_ring(path: Path) -> None:
    with quire.open(path, buffer_mode="async") as queue:
        queue.appender().write_bytes(b"x" * 100)
        ring = queue.ring
        assert ring is not None
        ring.flush()
        with quire.open(path, read_only=True) as reader:
            found = reader.metrics().ring
        assert found is not None
        assert (found.pending, found.used, found.stalls) == (0, 0, 0)
        assert found.high_water == ring.high_water_bytes >= 100
        assert found.capacity == ring.capacity_bytes
    with quire.open(path / "none") as queue:
        assert queue.metrics().ring is None


def test_the_disk_space_is_that_of_the_files(counted: quire.JournalQueue, path: Path) -> None:
    counted.appender().write_bytes(b"x")
    disk = counted.metrics().disk
    assert disk.used == sum(it.stat().st_blocks * 512 for it in path.iterdir())
    assert disk.total == os.statvfs(path).f_blocks * os.statvfs(path).f_frsize
    assert 0 < disk.free <= disk.total


def test_a_snapshot_pickles_and_compares(counted: quire.JournalQueue) -> None:
    counted.appender().write_bytes(b"x")
    found = counted.metrics()
    assert pickle.loads(pickle.dumps(found)) == found == counted.metrics()
    counted.appender().write_bytes(b"x")
    assert found != counted.metrics()


def test_a_queue_opened_read_only_changes_nothing(path: Path) -> None:
    with quire.open(path) as queue:
        queue.appender().write_bytes(b"x")
    with quire.open(path, read_only=True, metrics=True) as queue:
        assert queue.tailer().read_bytes() == b"x"
        assert not queue.metrics().recorded
    assert not (path / SIDE_FILE).exists()


@pytest.mark.parametrize("content", [b"", b"x", bytes(65536), b"QuireMt1", b"\xff" * 65536])
def test_a_side_file_of_something_else_is_refused(content: bytes, path: Path) -> None:
    quire.open(path).close()
    (path / SIDE_FILE).write_bytes(content)
    with quire.open(path) as queue:
        if content.strip(b"\0"):
            with pytest.raises(quire.errors.CorruptError, match="not a file of metrics"):
                queue.metrics()
            with pytest.raises(quire.errors.CorruptError, match="not a file of metrics"):
                quire.open(path, metrics=True)
        else:  # as a process leaves it that is killed while it makes the file
            assert not queue.metrics().recorded
            with quire.open(path, metrics=True) as counting:
                counting.appender().write_bytes(b"x")
            assert queue.metrics().messages_appended == 1


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    quire.open(path).close()
    victim = tmp_path / "victim"
    victim.write_bytes(bytes(65536))
    (path / SIDE_FILE).symlink_to(victim)
    with pytest.raises(quire.errors.NotAQueueError, match="a symbolic link"):
        quire.open(path, metrics=True)
    assert victim.read_bytes() == bytes(65536)


def test_verify_has_nothing_against_the_side_file(path: Path) -> None:
    with quire.open(path, metrics=True) as queue:
        queue.appender().write_bytes(b"x")
    assert quire.verify(path).ok


def test_other_formats_have_no_metrics(path: Path) -> None:
    opened: Any = quire.open
    for kind in ("vanilla", "quick-queue"):
        with pytest.raises(quire.errors.UnsupportedError, match="metrics=True"):
            opened(path / kind, format=kind, metrics=True)


def test_percentiles_of_a_histogram() -> None:
    even = Histogram(5050, 100, [(value, value + 1, 1) for value in range(1, 101)])
    assert [even.percentile(it) for it in (0, 50, 99, 100)] == [2, 51, 100, 100]
    assert even.mean_ns == 50.5
    assert Histogram().percentile(50) is None
    assert Histogram().mean_ns is None
    with pytest.raises(ValueError, match="invalid percent: expected 0 to 100, found 101"):
        even.percentile(101)


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_an_append_goes_on_where_the_side_file_goes(counted: quire.JournalQueue, how: str) -> None:
    with counted.appender() as appender, counted.tailer() as tailer:
        appender.write_bytes(b"one")
        side = Path(counted.path) / SIDE_FILE
        side.unlink()
        if how == "replaced":
            side.write_bytes(b"no metrics")
        appender.write_many([b"two", b"three"])
        assert tailer.read_many(9) == [b"one", b"two", b"three"]
    assert quire.verify(counted.path).ok
