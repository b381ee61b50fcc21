"""Places before the first message, also where that is the first index there can be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from queues import START_MS, poke

DAY_MS = 86_400_000


@pytest.fixture(params=[0, 5], ids="first cycle {}".format)
def epoch_ms(request: pytest.FixtureRequest) -> int:
    """An epoch that has the first cycle be this one."""
    number: int = request.param
    return START_MS - START_MS % DAY_MS - number * DAY_MS


def opened(path: Path, epoch_ms: int) -> quire.JournalQueue:
    clock = quire.ManualClock(START_MS)
    return quire.open(
        path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16, epoch_ms=epoch_ms
    )


def filled(path: Path, epoch_ms: int) -> quire.JournalQueue:
    queue = opened(path, epoch_ms)
    queue.appender().write_many([b"one", b"two", b"three"])
    return queue


def past_the_start(tailer: quire.JournalTailer) -> None:
    tailer.direction = "backward"
    tailer.to_end()
    assert [*tailer.payloads()] == [b"three", b"two", b"one"]
    assert tailer.state == "BEYOND_START_OF_CYCLE"


@pytest.mark.parametrize("epoch", [2**32, 1_415_577_600_000, -(2**40)])
def test_an_epoch_whose_shortest_form_is_a_float(path: Path, epoch: int) -> None:
    with quire.open(path, epoch_ms=epoch) as queue:
        queue.appender().write_text("hello")
    with quire.open(path) as queue:
        assert queue.epoch_ms == epoch
        assert queue.tailer().read_text() == "hello"


def test_a_tailer_turns_around_before_the_start(path: Path, epoch_ms: int) -> None:
    with filled(path, epoch_ms) as queue, queue.tailer() as tailer:
        past_the_start(tailer)
        assert tailer.read() is None
        tailer.direction = "forward"
        # As in Java, one read finds nothing and starts over.
        assert tailer.read() is None
        assert [*tailer.payloads()] == [b"one", b"two", b"three"]


def test_a_named_tailer_that_stopped_before_the_start_begins_there(
    path: Path, epoch_ms: int
) -> None:
    with filled(path, epoch_ms) as queue:
        with queue.tailer("name") as tailer:
            past_the_start(tailer)
        assert (queue.table_value("index.name") or 0) >= 0
    with opened(path, epoch_ms) as queue, queue.tailer("name") as tailer:
        found = [*tailer.payloads()] or [*tailer.payloads()]
        assert found == [b"one", b"two", b"three"]


IMPOSSIBLE = [-1, -(2**63), 2**63 - 1]


@pytest.mark.parametrize("stored", IMPOSSIBLE)
def test_an_impossible_position_is_the_start_and_is_logged(
    stored: int, path: Path, epoch_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    with filled(path, epoch_ms) as queue:
        queue.tailer("name").close()
    poke(path, "index.name", stored)
    with opened(path, epoch_ms) as queue, queue.tailer("name") as tailer:
        assert [*tailer.payloads()] == [b"one", b"two", b"three"]
        assert tailer.read() is None
        assert queue.table_value("index.name") == (queue.last_index or 0) + 1
    assert "stored position" in caplog.text
    assert str(path) in caplog.text


@pytest.mark.parametrize("stored", IMPOSSIBLE)
def test_stat_counts_all_messages_before_such_a_position(
    stored: int, path: Path, epoch_ms: int, cli: Cli
) -> None:
    with filled(path, epoch_ms) as queue:
        queue.tailer("name").close()
    poke(path, "index.name", stored)
    run = cli("stat", path, "--json")
    assert run.code == 0, run.err
    assert [it["lag"] for it in json.loads(run.out)["tailers"]] == [3]
    assert "name" in cli("stat", path).out
