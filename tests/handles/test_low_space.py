"""An almost full disk is told while something is appended, and while nothing is."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

import quire


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [it for it in caplog.messages if it.startswith("the disk is almost full: ")]


@pytest.mark.parametrize(
    ("percent", "bytes_", "count"),
    [(100, None, 1), (100, 0, 1), (0, None, 0), (0, 0, 0), (0, 2**60, 1), (1, 2**60, 1)],
)
def test_an_append_tells_of_little_space_once(
    path: Path,
    caplog: pytest.LogCaptureFixture,
    percent: int,
    bytes_: int | None,
    count: int,
) -> None:
    caplog.set_level(logging.WARNING, "quire")
    layout = quire.LayoutOptions(low_space_percent=percent, low_space_bytes=bytes_)
    with quire.open(path, layout=layout) as queue, queue.appender() as appender:
        for _ in range(3):
            appender.write_text("hello")
    assert len(told(caplog)) == count
    if count:
        assert f"low_space_percent={percent} low_space_bytes=" in told(caplog)[0]
        assert str(path) in told(caplog)[0]


@pytest.mark.slow
def test_a_thread_that_is_there_anyway_looks_while_nothing_is_appended(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with quire.open(path) as queue:
        queue.appender().write_text("hello")
    caplog.set_level(logging.WARNING, "quire")
    with (
        quire.open(
            path, durability="batch", layout=quire.LayoutOptions(low_space_percent=100)
        ) as queue,
        queue.appender(),
        queue.tailer() as tailer,
    ):
        assert tailer.read_text() == "hello"
        while not told(caplog):
            assert tailer.read_text() is None
            time.sleep(0.01)


def test_the_limits_are_set_from_outside(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, "quire")
    monkeypatch.setenv("QUIRE_LOW_SPACE_PERCENT", "0")
    monkeypatch.setenv("QUIRE_LOW_SPACE_BYTES", str(2**60))
    with quire.open(path) as queue:
        queue.appender().write_text("hello")
    assert len(told(caplog)) == 1
