"""Archives of the older formats: cycles of a Vanilla Chronicle, index pages of a Quick-Queue."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import quire
from archives import parquet_files, rows
from older_queues import FORMATS, fill, found, free_entries, wires
from quire import archive as archives

PER_DAY = 200
DAYS = 3


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path, kind: str) -> Path:
    """A queue of three days, of which two are finished; or of two index pages and some entries."""
    days = [[b"%d.%d" % (day, n) for n in range(PER_DAY)] for day in range(DAYS)]
    return fill(tmp_path / "old", kind, days)


def test_finished_cycles_are_archived_once(path: Path, tmp_path: Path, kind: str) -> None:
    dest = tmp_path / "archive"
    finished = 2 * PER_DAY if kind == "vanilla" else 2 * 256

    report = archives.archive(path, dest, grace_s=0)

    assert (report.messages, report.unfinished, report.failed) == (finished, 1, [])
    assert rows(dest) == found(path)[:finished]
    names = ["20240115", "20240116"] if kind == "vanilla" else ["0", "1"]
    assert [file.stem for file in parquet_files(dest)] == names
    assert archives.verify(dest).compared == 2
    assert archives.archive(path, dest, grace_s=0).entries == []


def test_places_are_those_of_the_index(path: Path, tmp_path: Path) -> None:
    archives.archive(path, tmp_path / "archive", grace_s=0)

    table = pq.read_table(tmp_path / "archive", columns=["_cycle", "_sequence"])
    places = [*zip(*table.to_pydict().values(), strict=True)]
    cycles = sorted({cycle for cycle, _ in places})
    assert places == [(cycle, n) for cycle in cycles for n in range(len(places) // 2)]


def test_a_schema_makes_columns_of_wire(tmp_path: Path, kind: str) -> None:
    messages = wires(range(300), tmp_path / "wires")
    path = fill(tmp_path / "old", kind, [[*messages[:260], b"\x82raw"], [b"last"]])
    archives.archive(path, tmp_path / "archive", schema=quire.Schema({"n": "int64"}), grace_s=0)

    table = pq.read_table(tmp_path / "archive").to_pydict()
    known = 260 if kind == "vanilla" else 256
    assert table["n"][:known] == [*range(known)]
    assert table["n"][known:] == [None] * (len(table["n"]) - known)


def test_another_queue_of_the_name_is_refused(path: Path, tmp_path: Path) -> None:
    dest = tmp_path / "archive"
    archives.archive(path, dest, grace_s=0)
    path.rename(tmp_path / "moved")
    with quire.open(path, roll_cycle="TEST4_DAILY", block_bytes=2**16) as queue:
        queue.appender().write_bytes(b"x")

    report = archives.archive(path, dest, grace_s=0)

    (failed,) = report.failed
    assert "the archive holds another queue of this name" in failed.reason
    assert archives.archive(tmp_path / "moved", tmp_path / "other", grace_s=0).is_complete


def test_nothing_is_deleted(path: Path, tmp_path: Path) -> None:
    before = found(path)

    report = archives.archive(path, tmp_path / "archive", grace_s=0, delete=True)

    (failed,) = report.failed
    assert "only cycles of a Chronicle Queue can be deleted" in failed.reason
    assert len(report.entries) == 2
    assert found(path) == before


def test_a_cycle_that_grew_is_archived_again(tmp_path: Path) -> None:
    path, dest = tmp_path / "old", tmp_path / "archive"
    fill(path, "vanilla", [[b"one"], [b"next day"]])
    archives.archive(path, dest, grace_s=0)
    fill(path, "vanilla", [[b"of a slow writer"]])

    report = archives.archive(path, dest, grace_s=0)

    assert (report.messages, report.failed) == (2, [])
    assert [payload for _, payload in rows(dest)] == [b"one", b"of a slow writer"]
    assert not archives.verify(dest).failed


def test_free_index_entries_are_no_rows(tmp_path: Path) -> None:
    path, dest = tmp_path / "old", tmp_path / "archive"
    fill(path, "vanilla", [[b"%d" % n for n in range(20)], [b"next day"]])
    free_entries(path, 5, 9)

    report = archives.archive(path, dest, grace_s=0)

    assert (report.messages, report.failed) == (16, [])
    assert rows(dest) == found(path)[:16]
    assert archives.verify(dest).compared == 1
    assert archives.archive(path, dest, grace_s=0).entries == []
