"""Rewriting: files of earlier versions are replaced, each whole at every moment."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import quire
from archives import leftovers, make_older, parquet_files
from cli_runs import Cli
from queues import DAY_MS, START_MS
from quire import archive as archives
from quire._common.durable import SafeFolder
from quire.errors import ArchiveError

SCHEMA = quire.Schema(
    {
        "n": "int32",
        "f": "float64",
        "s.x": "int32",
        "s": pa.struct([("x", pa.float32()), ("n", pa.int32())]),
    }
)


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path, clock = tmp_path / "orders", quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**18) as queue,
        queue.appender() as appender,
    ):
        for day in range(4):
            clock.now_ms = START_MS + day * DAY_MS
            for value in (float(day), math.nan):
                appender.write_map({"n": day, "f": value, "s": {"x": value, "n": day}})
    return path


@pytest.fixture
def dest(path: Path, tmp_path: Path) -> Path:
    archives.archive(path, tmp_path / "archive", schema=SCHEMA)
    return tmp_path / "archive"


def with_minimum(file: Path) -> set[str]:
    """The columns by which readers prune."""
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(each) for each in range(group.num_columns)]
    return {it.path_in_schema for it in columns if it.statistics and it.statistics.has_min_max}


def rows(dest: Path) -> list[Any]:
    return [
        repr(row) for row in pq.read_table(dest, partitioning=None).sort_by("_index").to_pylist()
    ]


def test_no_float_has_a_minimum_or_a_dictionary(dest: Path) -> None:
    for file in parquet_files(dest):
        assert with_minimum(file) == {"_index", "_cycle", "_sequence", "_topic", "n"}
        group = pq.read_metadata(file).row_group(0)
        floats = [group.column(it) for it in range(group.num_columns)]
        floats = [it for it in floats if it.physical_type in {"FLOAT", "DOUBLE"}]
        assert len(floats) == 2
        assert not any(it.has_dictionary_page for it in floats)


def test_older_files_are_replaced(path: Path, dest: Path) -> None:
    before = rows(dest)
    make_older(dest, only=2)
    assert any("f" in with_minimum(file) for file in parquet_files(dest))
    assert not archives.verify(dest).failed

    report = archives.rewrite(dest)

    assert (report.cycles, report.messages, report.failed) == (2, 4, [])
    assert not any("f" in with_minimum(file) for file in parquet_files(dest))
    assert rows(dest) == before
    assert not archives.verify(dest, path).failed
    assert archives.rewrite(dest).cycles == 0
    assert not leftovers(dest / "topic=orders")


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_killed_run_leaves_whole_files_and_the_next_does_the_rest(
    path: Path, dest: Path, monkeypatch: pytest.MonkeyPatch, side: str, nth: int
) -> None:
    make_older(dest)
    before, publish, calls = rows(dest), SafeFolder.publish, 0

    def killed(folder: SafeFolder, temporary: str, name: str) -> None:
        nonlocal calls
        calls += name.endswith(".parquet")
        is_last = name.endswith(".parquet") and calls == nth
        if is_last and side == "before":
            raise Killed
        publish(folder, temporary, name)
        if is_last:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(SafeFolder, "publish", killed)
        with pytest.raises(Killed):
            archives.rewrite(dest)
    assert rows(dest) == before
    assert not archives.verify(dest, path).failed
    assert not archives.archive(path, dest).failed
    assert not archives.verify(dest, path).failed

    assert archives.rewrite(dest).cycles == 3 - nth + (side == "before")
    assert rows(dest) == before
    assert not archives.verify(dest, path).failed


def test_a_damaged_file_stays_and_the_others_are_replaced(dest: Path) -> None:
    make_older(dest)
    file = parquet_files(dest)[0]
    file.write_bytes(file.read_bytes()[:-9] + bytes(9))
    damaged = file.read_bytes()

    report = archives.rewrite(dest)

    assert report.cycles == 2
    assert [it.topic for it in report.failed] == ["orders"]
    assert file.read_bytes() == damaged


def test_the_command_rewrites(cli: Cli, dest: Path) -> None:
    make_older(dest)

    assert cli.ok("archive", "--rewrite", dest).lines == ["rewritten=3 messages=6 failed=0"]
    assert cli.ok("archive", "--rewrite", dest).lines == ["rewritten=0 messages=0 failed=0"]
    assert cli("archive", "--rewrite", dest, dest).code == 2
    with pytest.raises(ArchiveError, match="no archive here"):
        archives.rewrite(dest / "topic=orders")
