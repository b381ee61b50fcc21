"""A ring's files and directory go while programs put messages in: that is noticed by identity."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest

import quire
from pause_points import Party
from queues import payloads

RING = "async.ring"
# It is looked for the file now and then: a limit is a hang's.
PATIENCE_S = 300.0


def write_until_refused(appender: quire.JournalAppender) -> tuple[list[bytes], Exception]:
    written: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        payload = f"{len(written)}".encode()
        try:
            appender.write_bytes(payload)
        except quire.QuireError as error:
            return written, error
        written.append(payload)
        time.sleep(0.001)
    raise AssertionError("never noticed")


@pytest.mark.parametrize("how", ["removed", "replaced", "moved"])
def test_a_ring_that_goes_is_noticed_and_what_was_put_in_is_appended(path: Path, how: str) -> None:
    with quire.open(path, buffer_mode="async") as queue, queue.appender() as appender:
        assert queue.ring is not None
        appender.write_bytes(b"first")
        queue.ring.flush()
        if how == "moved":
            (path / RING).rename(path / "async.old")
        else:
            (path / RING).unlink()
        if how == "replaced":
            quire.open(path, buffer_mode="async").close()
        written, error = write_until_refused(appender)
        assert isinstance(error, quire.errors.RingLostError)
        assert f"was {'replaced' if how == 'replaced' else 'removed'}" in str(error)
        with pytest.raises(quire.errors.RingLostError):
            appender.write_bytes(b"not put in")
        with pytest.raises(quire.errors.RingLostError):
            appender.write_many([b"not put in"])
    with quire.open(path, buffer_mode="async") as queue:
        assert payloads(queue) == [b"first", *written]
        queue.appender().write_bytes(b"last")
    with quire.open(path, read_only=True) as queue:
        assert payloads(queue)[-1] == b"last"


def test_a_chain_of_rings_whose_first_goes_is_drained(path: Path) -> None:
    with (
        quire.open(
            path, buffer_mode="async", ring=quire.RingOptions(capacity_bytes=2**16, on_full="grow")
        ) as queue,
        quire.open(path) as plain,
        plain.appender() as direct,
        queue.appender() as appender,
        direct.writing_document() as document,
    ):
        written = [bytes([number]) * 5000 for number in range(40)]
        appender.write_many(written)
        (path / RING).unlink()
        document.rollback_on_close()
    with quire.open(path, read_only=True) as queue:
        assert payloads(queue) == written


def test_a_chain_that_is_handed_over_is_not_taken_for_lost(path: Path) -> None:
    with quire.open(
        path, buffer_mode="async", ring=quire.RingOptions(capacity_bytes=2**16, on_full="grow")
    ) as queue:
        appender, deadline = queue.appender(), time.monotonic() + 1.2
        count = 0
        while time.monotonic() < deadline:
            appender.write_many([bytes(5000)] * 40)
            count += 40
        assert queue.ring is not None
        queue.ring.flush()
        assert queue.entry_count == count


def test_writes_after_the_directory_went_are_refused_while_the_drainer_stands(path: Path) -> None:
    with Party(STANDS_IN_DRAINER, path, point="lock.take.cas") as party:
        party.wait_until_stopped()
        shutil.rmtree(path)
        [waited, name] = party.result()
        assert name in {"TableLostError", "RingLostError", "NotAQueueError"}
        assert waited < PATIENCE_S


STANDS_IN_DRAINER = """
import time
queue = quire.open(sys.argv[1], buffer_mode="async", timeout_s=1)
appender = queue.appender()
appender.write_bytes(b"up")
queue.ring.flush()
arm()
start = time.monotonic()
name = None
while name is None and time.monotonic() - start < 300:
    try:
        appender.write_bytes(b"x")
        time.sleep(0.001)
    except quire.errors.RingFullError:
        time.sleep(0.001)
    except Exception as error:
        name = type(error).__name__
say(time.monotonic() - start)
say(name)
os._exit(0)
"""

GROWS = """
ring = quire.RingOptions(capacity_bytes=65536, on_full="grow")
queue = quire.open(sys.argv[1], buffer_mode="async", ring=ring)
appender = queue.appender()
appender.write_bytes(b"up")
queue.ring.flush()
other = quire.open(sys.argv[1])
other.appender().writing_document().__enter__()
arm()
count = 0
try:
    for _ in range(100):
        appender.write_bytes(bytes(5000))
        count += 1
except quire.QuireError as error:
    pass
say(count)
os._exit(0)
"""


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_ring_grows_in_its_own_directory_whatever_its_path_names(path: Path, side: str) -> None:
    old = path.with_name("old")
    with Party(GROWS, path, point="ring.successor.cas", side=side) as party:  # type: ignore[arg-type]
        party.wait_until_stopped()
        path.rename(old)
        with quire.open(path, buffer_mode="async") as queue:
            queue.appender().write_bytes(b"another")
        before = sorted(path.glob("async*"))
        party.go_on()
        [count] = party.result()
    assert sorted(path.glob("async*")) == before
    with quire.open(path) as queue:
        assert payloads(queue) == [b"another"]
    with quire.open(old) as queue:
        assert len(payloads(queue)) == 1 + count


def test_many_threads_and_processes_open_the_first_ring(path: Path) -> None:
    failed: list[BaseException] = []
    for number in range(10):
        place = path.with_name(f"queue{number}")
        quire.open(place).close()
        barrier = threading.Barrier(4)

        def opens(place: Path = place, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            try:
                with quire.open(place, buffer_mode="async") as queue:
                    queue.appender().write_bytes(b"one")
            except BaseException as error:  # noqa: BLE001 - whatever it is
                failed.append(error)

        threads = [threading.Thread(target=opens) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with quire.open(place) as queue:
            assert payloads(queue) == [b"one"] * 4
        assert [it.name for it in place.glob("async*")] == [RING]
    assert not failed


def test_a_ring_that_was_not_finished_is_made_beside_it_and_removed(path: Path) -> None:
    script = 'arm()\nquire.open(sys.argv[1], buffer_mode="async")\n'
    quire.open(path).close()
    with Party(script, path, point="ring.file.publish") as party:
        party.wait_until_stopped()
        assert len([*path.glob("async.ring.*")]) == 1
        assert not (path / RING).exists()
        with quire.open(path, buffer_mode="async") as queue:
            queue.appender().write_bytes(b"one")
        assert len([*path.glob("async.ring.*")]) == 1  # of a living process
        party.kill()
    with quire.open(path, buffer_mode="async") as queue:
        assert payloads(queue) == [b"one"]
    assert [it.name for it in path.glob("async*")] == [RING]
