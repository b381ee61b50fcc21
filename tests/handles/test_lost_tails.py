"""A file that lost its end, as in a power cut, and was appended to again."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

import quire
from queues import DAY_MS

OLD = [b"old %d" % number for number in range(20)]
LOST = [b"lost %d" % number for number in range(10)]
NEW = [b"new %d" % number for number in range(15)]
CLOCK = quire.ManualClock(1_705_314_600_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A queue whose file lost ten messages that named tailers had read."""
    path = tmp_path / "q"
    with quire.open(path, clock=CLOCK) as queue, queue.appender() as appender:
        appender.write_many(OLD)
        with queue.tailer("behind") as tailer:
            assert tailer.read_many(5) == OLD[:5]
    (file,) = path.glob("*.cq4")
    shutil.copy(file, tmp_path / "saved")
    with quire.open(path, clock=CLOCK) as queue, queue.appender() as appender:
        appender.write_many(LOST)
        for name in ("ahead", "replicated:ahead"):
            with queue.tailer(name) as tailer:
                assert tailer.read_many(100) == OLD + LOST
    file.unlink()
    shutil.copy(tmp_path / "saved", file)
    return path


def test_a_named_tailer_gets_every_message_that_fills_a_lost_tail(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with quire.open(path, clock=CLOCK) as queue, queue.appender() as appender:
        appender.write_bytes(NEW[0])
        appender.write_many(NEW[1:])
    assert "tailer=ahead stored=" in caplog.text
    assert "tailer=behind" not in caplog.text
    with quire.open(path, clock=CLOCK) as queue:
        for name in ("ahead", "replicated:ahead"):
            with queue.tailer(name) as tailer:
                assert list(tailer.payloads()) == NEW, name
        with queue.tailer("behind") as tailer:
            assert list(tailer.payloads()) == OLD[5:] + NEW


def test_the_version_of_a_replicated_tailer_counts_that_it_was_taken_back(path: Path) -> None:
    key = "index.replicated:ahead.version"
    with quire.open(path, clock=CLOCK) as queue:
        before = queue.table_value(key)
        assert before is not None
        with queue.appender() as appender:
            appender.write_bytes(NEW[0])
        assert queue.table_value(key) == before + 1


def test_a_tailer_that_is_opened_before_the_lost_tail_is_filled_gets_every_message(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with quire.open(path, clock=CLOCK) as queue, queue.tailer("ahead") as tailer:
        assert "after the end of its file" in caplog.text
        with queue.appender() as appender:
            appender.write_many(NEW)
        assert list(tailer.payloads()) == NEW


def test_no_position_is_taken_back_in_a_file_that_lost_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    path = tmp_path / "whole"
    clock = quire.ManualClock(1_705_314_600_000)
    for _ in range(3):
        with quire.open(path, clock=clock) as queue, queue.appender() as appender:
            appender.write_many(OLD)
            with queue.tailer("end") as tailer:
                assert tailer.read_many(100) == OLD
            with queue.tailer("backward") as tailer:
                tailer.direction = "backward"
                assert len(tailer.read_many(1000)) <= 60
        clock.advance(DAY_MS)
    assert "was lost" not in caplog.text
