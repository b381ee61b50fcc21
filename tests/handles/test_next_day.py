"""A start on a later day is nothing that an operator has to be warned of."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import quire
from damages import erase_marker
from queues import DAY_MS


def test_a_start_on_the_next_day_warns_of_nothing(
    path: Path, clock: quire.ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "quire")
    for _ in range(3):
        with quire.open(path, clock=clock) as queue, queue.tailer("risk") as tailer:
            queue.appender().write_text("hello")
            assert tailer.read_text() == "hello"
        clock.advance(DAY_MS)
    with quire.open(path, clock=clock) as queue:
        queue.appender().normalise_eofs()
    assert caplog.messages == []


def test_a_marker_that_a_writer_left_out_before_a_later_cycle_is_reported(
    path: Path, clock: quire.ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with quire.open(path, clock=clock) as queue:
            queue.appender().write_text("hello")
        clock.advance(DAY_MS)
    first, _ = sorted(path.glob("*.cq4"))
    erase_marker(first)
    with quire.open(path, clock=clock) as queue:
        queue.appender().write_text("hello")
        cycle = queue.cycles[0]
    assert caplog.messages == [f"an older cycle had no end-of-file marker: {cycle=}"]
