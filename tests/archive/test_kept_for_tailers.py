"""What `archive --delete` leaves for named tailers and consumer groups."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from queues import DAY_MS, START_MS
from quire.archive import archive


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Four days of two messages."""
    clock = quire.ManualClock(START_MS)
    path = tmp_path / "orders"
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock) as queue:
        appender = queue.appender()
        for day in range(4):
            appender.write_many([b"%d.0" % day, b"%d.1" % day])
            clock.advance(DAY_MS)
    return path


@pytest.mark.parametrize("end", [".lock", ".version"])
def test_a_name_that_ends_as_what_stands_beside_replicated_ones_is_one(
    orders: Path, tmp_path: Path, cli: Cli, end: str
) -> None:
    with quire.open(orders) as queue:
        with queue.tailer("feed") as feed:
            feed.to_end()
        queue.tailer(f"feed{end}").close()

    report = archive(orders, tmp_path / "archived", delete=True)

    assert report.deleted == 0
    assert [f"tailer=feed{end}" in each.reason for each in report.kept] == [True] * 3
    facts = json.loads(cli.ok("stat", orders, "--json").out)
    assert [(it["name"], it["lag"]) for it in facts["tailers"]] == [("feed", 0), (f"feed{end}", 8)]
    assert set(facts["locks"]) == {"chronicle.write.lock", "chronicle.append.lock"}
    assert [f"feed{end}", "0x0", "8"] in [it.split() for it in cli.ok("stat", orders).lines]


def test_what_stands_beside_a_replicated_one_keeps_nothing(orders: Path, tmp_path: Path) -> None:
    with quire.open(orders) as queue:
        with queue.tailer("replicated:feed") as feed:
            feed.to_end()
        assert [name for name, _ in queue.named_tailers()] == ["replicated:feed"]
    assert archive(orders, tmp_path / "archived", delete=True).deleted == 3


def test_the_cycle_that_a_tailer_is_in_stays_so_that_it_loses_nothing(
    orders: Path, tmp_path: Path
) -> None:
    with quire.open(orders) as queue, queue.tailer("job") as job:
        assert len(job.read_many(4)) == 4  # to the end of the second day

    report = archive(orders, tmp_path / "archived", delete=True)

    assert (report.deleted, len(report.kept)) == (1, 2)
    with quire.open(orders) as queue, queue.tailer("job", on_missing="raise") as job:
        assert job.read_bytes() == b"2.0"
    assert archive(orders, tmp_path / "archived", delete=True).deleted == 1


def test_the_cycles_that_a_group_needs_stay(orders: Path, tmp_path: Path) -> None:
    with quire.open(orders) as queue, queue.group("billing").consumer() as consumer:
        consumer.ack_many(consumer.read_many(3))

    report = archive(orders, tmp_path / "archived", delete=True)

    assert report.deleted == 1
    assert ["group=billing" in each.reason for each in report.kept] == [True] * 2
    with quire.open(orders) as queue, queue.group("billing").consumer() as consumer:
        left = consumer.read_many(10)
        assert [bytes(it.data) for it in left] == [b"1.1", b"2.0", b"2.1", b"3.0", b"3.1"]
        consumer.ack_many(left)
    assert archive(orders, tmp_path / "archived", delete=True).deleted == 2
