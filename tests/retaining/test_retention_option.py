"""The option `retention=` of `quire.open`."""

from __future__ import annotations

import logging
import os
import pickle
import threading
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, payloads
from quire._common.durable import SafeFolder

WAIT_S = 60.0


class Removed:
    """Counts removed cycles."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._changed = threading.Condition()

    def __call__(self, cycle: quire.retaining.PrunedCycle) -> None:
        with self._changed:
            self.names.append(cycle.file.name)
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.names) >= count, WAIT_S)
            return self.names


def write_days(path: Path, clock: quire.ManualClock, days: int) -> None:
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        for day in range(days):
            appender.write_bytes(b"%d" % day)
            clock.advance(DAY_MS)


def threads() -> list[str]:
    return [it.name for it in threading.enumerate() if it.name.startswith("quire retention")]


def test_a_relative_destination_stays_where_it_was(
    path: Path, clock: quire.ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    removed = Removed()
    rule = quire.Retention(max_cycles=1, action="move", dest="old", on_removed=removed)
    with quire.open(path, roll_cycle="FAST_DAILY", clock=clock, retention=rule) as queue:
        monkeypatch.chdir(tmp_path / "elsewhere")  # as a daemon does
        for day in range(2):
            queue.appender().write_bytes(b"%d" % day)
            clock.advance(DAY_MS)
        removed.wait_for(1)
    assert (tmp_path / "old" / removed.names[0]).exists()
    assert not (tmp_path / "elsewhere" / "old").exists()


def test_each_roll_removes_what_exceeds_the_limits(path: Path, clock: quire.ManualClock) -> None:
    removed = Removed()
    rule = quire.Retention(max_cycles=2, on_removed=removed)
    with quire.open(path, roll_cycle="FAST_DAILY", clock=clock, retention=rule) as queue:
        appender = queue.appender()
        for day in range(5):
            appender.write_bytes(b"%d" % day)
            clock.advance(DAY_MS)
            removed.wait_for(max(0, day - 1))
        assert payloads(queue) == [b"3", b"4"]
    assert removed.names == ["20240115F.cq4", "20240116F.cq4", "20240117F.cq4"]


def test_age_goes_by_the_clock_of_the_queue(path: Path, clock: quire.ManualClock) -> None:
    write_days(path, clock, 4)
    removed = Removed()
    rule = quire.Retention(keep="2d", on_removed=removed)
    with quire.open(path, clock=clock, retention=[rule]):
        assert removed.wait_for(2) == ["20240115F.cq4", "20240116F.cq4"]


def test_the_thread_ends_with_the_queue(path: Path) -> None:
    rule = quire.Retention(max_cycles=1)
    with quire.open(path, retention=[rule, rule]) as queue:
        assert len(threads()) == 2
        queue.close()
        assert threads() == []


def test_a_queue_that_is_dropped_ends_the_thread(path: Path) -> None:
    queue = quire.open(path, retention=quire.Retention(max_cycles=1))
    (thread,) = [it for it in threading.enumerate() if it.name in threads()]
    del queue
    thread.join(WAIT_S)
    assert not thread.is_alive()


def test_another_process_that_is_at_it_is_no_failure(
    path: Path, clock: quire.ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        appender.write_bytes(b"x")
    caplog.set_level(logging.DEBUG, logger="quire")
    with SafeFolder.at(path) as folder, folder.locked("quire.retention.lock"):
        quire.open(path, retention=quire.Retention(max_cycles=1)).close()
    assert [it for it in caplog.records if it.levelno > logging.DEBUG] == []


def test_a_failure_is_logged_and_the_queue_goes_on(
    path: Path, clock: quire.ManualClock, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    dest = tmp_path / "old"
    dest.mkdir()
    (dest / "20240115F.cq4").write_bytes(b"something else")
    failed = threading.Event()

    class Seen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "retention failed" in record.getMessage():
                failed.set()

    handler = Seen()
    logging.getLogger("quire").addHandler(handler)
    rule = quire.Retention(max_cycles=1, action="move", dest=dest)
    try:
        write_days(path, clock, 2)
        with quire.open(path, clock=clock, retention=rule) as queue:
            assert failed.wait(WAIT_S)
            assert queue.appender().write_bytes(b"2")
            assert payloads(queue) == [b"0", b"1", b"2"]
    finally:
        logging.getLogger("quire").removeHandler(handler)
    assert "another file has the name" in caplog.text


def test_a_rule_is_no_part_of_a_pickle(path: Path) -> None:
    rule = quire.Retention(keep="7d", on_removed=lambda _: None)
    with quire.open(path, retention=rule) as queue, pickle.loads(pickle.dumps(queue)) as again:
        assert again.path == queue.path
        assert len(threads()) == 1


def test_wrong_rules_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"invalid retention: expected a quire\.Retention"):
        quire.open(path, retention="7d")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="invalid retention"):
        quire.open(path, retention=["7d"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="no limit"):
        quire.Retention()
    assert not path.exists()
    rule = quire.Retention(max_cycles=1)
    quire.open(path).close()
    with pytest.raises(quire.errors.ReadOnlyError, match="retention removes files"):
        quire.open(path, read_only=True, retention=rule)
    with pytest.raises(
        quire.errors.UnsupportedError, match="not an option of a Quick-Queue: retention"
    ):
        quire.open(tmp_path / "q", format="quick-queue", retention=rule)  # type: ignore[call-overload]


def test_a_forked_child_has_no_thread(path: Path) -> None:
    with quire.open(path, retention=quire.Retention(max_cycles=1)) as queue:
        pid = os.fork()
        if pid == 0:
            code = 0 if threads() == [] else 1
            try:
                queue.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
