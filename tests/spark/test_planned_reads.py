"""Cycles that go or are compressed between a plan and its tasks: the same rows, or a loss."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructType

import quire
from pause_points import Party
from queues import DAY_MS, START_MS
from quire.spark.read.batch_reader import planned
from quire.spark.read.partitions import Partition
from quire.spark.read.row_plan import RowPlan, read
from quire.spark.source_options import ReadOptions
from quire.spark.spark_columns import checked

DAYS, PER_DAY = 4, 5
ROWS = [*range(DAYS * PER_DAY)]
TASK = """
import logging, pickle
from pathlib import Path
from quire.spark.read.row_plan import read
lines = []
handler = logging.Handler()
handler.emit = lambda record: lines.append(record.getMessage())
logging.getLogger("quire").addHandler(handler)
share, plan = pickle.loads(Path(sys.argv[1]).read_bytes())
arm()
try:
    rows = [row["n"] for batch in read(share, plan) for row in batch.to_pylist()]
except quire.QuireError as error:
    rows, lines = None, [str(error)]
say([rows, lines])
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path, clock = tmp_path / "orders", quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue,
        queue.appender() as appender,
    ):
        for row in ROWS:
            clock.now_ms = START_MS + row // PER_DAY * DAY_MS
            appender.write_map({"n": row})
        appender.normalise_eofs()
    return path


def task(path: Path, **options: str) -> Path:
    """Plan a read of all messages as one task."""
    read = ReadOptions.of({"path": str(path), **options})
    plan = RowPlan.of(checked(StructType().add("n", LongType()), read), read)
    file = path.parent / "task"
    file.write_bytes(pickle.dumps((Partition(planned(read)), plan)))
    return file


@pytest.mark.parametrize("fails", ["true", "false"])
def test_messages_that_no_replica_acknowledged_are_no_loss(
    path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    with quire.open(path) as queue, queue.tailer() as tailer:
        queue._note_acknowledged([*tailer][2].index)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setenv("QUIRE_READ_AFTER_REPLICA_ACKNOWLEDGED", "1")
    share, plan = pickle.loads(task(path, failOnDataLoss=fails).read_bytes())
    assert [row["n"] for batch in read(share, plan) for row in batch.to_pylist()] == ROWS


def delete(path: Path) -> None:
    for file in sorted(path.glob("*.cq4"))[:-1]:
        file.unlink()


def compress(path: Path) -> None:
    quire.prune(path, max_cycles=1, action="compress")


def stopped_at(path: Path, nth: int, meanwhile: Any, **options: str) -> Any:  # noqa: ANN401 - JSON
    """Rows and lines of a task that stands before it opens its *nth* file."""
    with Party(TASK, task(path, **options), point="file.open", nth=nth) as party:
        party.wait_until_stopped()
        meanwhile(path)
        party.go_on()
        ((rows, lines),) = party.result()
    return rows, lines


@pytest.mark.parametrize("nth", range(1, 8))
def test_cycles_that_are_compressed_give_the_same_rows(path: Path, nth: int) -> None:
    assert stopped_at(path, nth, compress) == (ROWS, [])


@pytest.mark.parametrize("nth", range(1, 8))
def test_cycles_that_are_deleted_are_one_line_of_loss(path: Path, nth: int) -> None:
    rows, lines = stopped_at(path, nth, delete, failOnDataLoss="false")

    assert {*ROWS[-PER_DAY:]} <= {*rows} <= {*ROWS}
    assert rows == sorted(rows)
    if rows != ROWS:
        (line,) = lines
        assert "was a cycle deleted?): topic=orders" in line
        assert f"planned={len(ROWS)} read={len(rows)}" in line


@pytest.mark.parametrize("nth", [1, 5])
def test_cycles_that_are_deleted_fail_the_query(path: Path, nth: int) -> None:
    rows, (line,) = stopped_at(path, nth, delete)

    assert rows is None
    assert "are gone (was a cycle deleted?): topic=orders" in line
