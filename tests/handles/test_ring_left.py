"""What waits in a ring: it is counted, and no message or error keeps the others there."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from event_loops import held
from queues import START_MS, payloads, problems_of
from ring_left import SUM, leave_in_ring

LONG = 20 << 20  # more than the default blocks take
MUCH = 64 << 20
PATIENCE_S = 300.0
KIB = 1024
LEAST = 64 * KIB  # capacity of a ring
LONG_AGO_S = 1_700_000_000


def reached(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not done() and time.monotonic() < deadline:
        time.sleep(0.001)
    return done()


def test_a_message_that_is_long_for_the_drainer_is_appended(path: Path) -> None:
    with (
        quire.open(
            path, buffer_mode="async", ring=quire.RingOptions(capacity_bytes=MUCH)
        ) as drainer,
        quire.open(path, buffer_mode="async", block_bytes=8 * MUCH) as large,
    ):
        small, long = drainer.appender(), large.appender()
        with pytest.raises(quire.errors.MessageTooLargeError, match="block_bytes="):
            small.write_bytes(bytes(LONG))
        with pytest.raises(quire.errors.MessageTooLargeError, match="block_bytes="):
            quire.open(path).appender().write_bytes(bytes(LONG))
        # The other thread may drain, too: so this one holds the lock from the first message on.
        small.write_bytes(b"before")
        assert drainer.ring is not None
        drainer.ring.flush()
        assert long.write_bytes(b"x" * LONG) == -1
        small.write_bytes(b"after")
        drainer.ring.flush()
        assert [len(it) for it in payloads(drainer)] == [6, LONG, 5]


def test_a_ring_that_cannot_be_appended_now_does_not_keep_a_queue_shut(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock) as queue:
        queue.appender().write_bytes(b"first")
        leave_in_ring(path, queue, [b"one", b"two"])
    clock.advance(10**10)
    with caplog.at_level(logging.WARNING, "quire"):
        queue = quire.open(path, clock=clock, wait=quire.WaitOptions(max_clock_ahead_s=60))
    with queue:
        assert any("appended later" in it.message for it in caplog.records)
        assert queue.ring is None
        assert quire.maintenance.ring_pending(path) == (2, 11 + 2 * SUM)
        clock.advance(-(10**10))
        assert reached(lambda: payloads(queue) == [b"first", b"one", b"two"])
        assert reached(lambda: quire.maintenance.ring_pending(path)[0] == 0)


def test_what_waits_in_a_ring_is_counted_and_named(path: Path, cli: Cli) -> None:
    with quire.open(path) as queue:
        assert quire.maintenance.ring_pending(path) == (0, 0)
        leave_in_ring(path, queue, [b"one", b"three"])
    assert quire.maintenance.ring_pending(path) == (2, 13 + 2 * SUM)
    [finding] = quire.verify(path).findings
    assert (finding.kind, finding.severity) == ("pending-ring", "note")
    assert "messages=2" in finding.found
    assert quire.verify(path).ok
    assert "2 messages" in cli("stat", path).out
    assert json.loads(cli("stat", path, "--json").out)["ring"]["pending"] == 2
    assert cli("drain", path, "--once").code == 0
    assert quire.maintenance.ring_pending(path) == (0, 0)
    assert not quire.verify(path).findings


def test_a_ring_that_cannot_be_read_is_a_finding(path: Path) -> None:
    quire.open(path, buffer_mode="async").close()
    os.truncate(path / "async.ring", 5000)
    [finding] = quire.verify(path).findings
    assert finding.kind == "unreadable-ring"
    with pytest.raises(quire.errors.CorruptError):
        quire.maintenance.ring_pending(path)
    with pytest.raises(quire.errors.NotAQueueError):
        quire.maintenance.ring_pending(path / "missing")


def test_older_formats_have_nothing_in_a_ring(path: Path) -> None:
    with quire.open(path, format="vanilla") as queue:
        queue.appender().write_bytes(b"one")
        assert quire.maintenance.ring_pending(path) == (0, 0)


def test_closing_ends_a_put_that_is_blocked_and_appends_nothing_of_it(path: Path) -> None:
    with quire.open(path, timeout_s=PATIENCE_S) as plain, held(plain) as let_go:
        queue = quire.open(
            path,
            buffer_mode="async",
            ring=quire.RingOptions(capacity_bytes=LEAST),
            timeout_s=PATIENCE_S,
        )
        assert queue.ring is not None
        written: list[bytes] = []
        while queue.ring.used_bytes + 2 * KIB < LEAST:
            written.append(b"%04d" % len(written) * (KIB // 4))
            queue.appender().write_bytes(written[-1])
        blocked = queue.appender()
        with ThreadPoolExecutor(2) as pool:
            put = pool.submit(blocked.write_bytes, bytes(4 * KIB))
            assert reached(lambda: queue.ring is None or queue.ring.stalls == 1)
            closing = pool.submit(queue.close)
            with pytest.raises(quire.errors.ClosedError):
                put.result()
            let_go()
            closing.result()
        assert payloads(plain) == [b"held", *written]


def test_what_waits_in_a_ring_is_drained_after_the_examination_of_a_restart(path: Path) -> None:
    before = [b"%04d" % number * 10 for number in range(400)]
    with quire.open(path, roll_cycle="TEST4_DAILY", block_bytes=LEAST) as queue:
        queue.appender().write_many(before)
    with quire.open(path) as queue:
        leave_in_ring(path, queue, [b"waiting", b"too"])
    [newest] = path.glob("*.cq4")
    with newest.open("r+b") as file:  # a page that never reached the medium
        file.seek(2 * 4096)
        file.write(bytes(4096))
    os.utime(newest, (LONG_AGO_S, LONG_AGO_S))
    with quire.open(path) as queue:
        kept = payloads(queue)
    assert 1 < len(kept) < len(before)
    assert kept[-2:] == [b"waiting", b"too"]
    assert not problems_of(path)
