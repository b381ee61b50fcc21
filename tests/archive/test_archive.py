"""Archives: what a queue held is in plain Parquet files, whatever happened on the way."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from archives import (
    FIRST_DAY,
    PER_DAY,
    cut,
    cut_between,
    fill,
    finished,
    leftovers,
    parquet_files,
    rows,
    zero,
)
from cli_runs import Cli
from golden_sets import QUEUES, name_of
from parameters import some_sets
from queues import DAY_MS, START_MS, snapshot
from quire import archive as archives
from quire._common.durable import SafeFolder
from quire.archive.digest import Digest
from quire.maintenance.holders import REPLICA, SINK_WRITE, Holder
from quire.maintenance.pending import RING
from reference import open_queue, read_queue

# A run that kills itself at a certain moment of a certain cycle.
KILLED = """
import os, signal, sys
from pathlib import Path
from quire import archive
from quire.archive import archiving as running
path, dest, place, after = sys.argv[1:]
calls = 0
def wrapped(work):
    def call(*given, **named):
        global calls
        calls += 1
        if calls > int(after):
            os.kill(os.getpid(), signal.SIGKILL)
        result = work(*given, **named)
        return result
    return call
if place == "progress":
    archive.archive(path, dest, progress=wrapped(lambda *_: None))
elif place == "lists":
    running.Archive.keep = wrapped(running.Archive.keep)
elif place == "publish":
    running.SafeFolder.publish = wrapped(running.SafeFolder.publish)
else:
    setattr(running, place, wrapped(getattr(running, place)))
archive.archive(path, dest)
"""


def test_finished_cycles_become_files_whose_rows_are_the_messages(path: Path, dest: Path) -> None:
    before = snapshot(path)

    report = archives.archive(path, dest)

    assert rows(dest) == finished(path)
    assert (len(report.entries), report.messages, report.unfinished) == (3, 3 * PER_DAY, 1)
    assert report.is_complete
    assert snapshot(path) == before
    assert [str(file.relative_to(dest)) for file in parquet_files(dest)] == [
        f"topic=orders/2024011{day}T4.parquet" for day in (5, 6, 7)
    ]


def test_each_column_holds_what_its_name_says(path: Path, dest: Path) -> None:
    archives.archive(path, dest)

    table = pq.read_table(dest / "topic=orders", partitioning=None).to_pydict()

    roll_cycle = quire.RollCycle("TEST4_DAILY")
    assert [*table] == ["_index", "_cycle", "_sequence", "_topic", "payload"]
    assert table["_cycle"] == [roll_cycle.to_cycle(index) for index in table["_index"]]
    assert table["_sequence"] == [*range(PER_DAY)] * 3
    assert {*table["_topic"]} == {"orders"}


@pytest.mark.parametrize("golden", QUEUES, ids=name_of)
def test_queues_that_java_wrote_are_archived(golden: Path, dest: Path) -> None:
    report = archives.archive(golden, dest, grace_s=0)

    expected = finished(golden)
    assert (rows(dest) if parquet_files(dest) else []) == expected
    assert report.messages == len(expected)
    assert not report.failed
    assert not archives.verify(dest).failed


def test_a_second_run_adds_what_was_finished_since(path: Path, dest: Path) -> None:
    archives.archive(path, dest)
    before = {file: (file.stat().st_ino, file.stat().st_mtime_ns) for file in parquet_files(dest)}
    assert archives.archive(path, dest).entries == []
    fill(path, range(4, 6))

    report = archives.archive(path, dest)

    assert [entry.cycle - FIRST_DAY for entry in report.entries] == [3, 4]
    assert report.present == 3
    assert rows(dest) == finished(path)
    after = {file: (file.stat().st_ino, file.stat().st_mtime_ns) for file in parquet_files(dest)}
    assert before.items() <= after.items()


def test_a_directory_of_queues_has_a_folder_for_each(tmp_path: Path, dest: Path) -> None:
    topics = ["eu/trades", "us/trades", "50% off = gone"]
    for number, topic in enumerate(topics):
        fill(tmp_path / "queues" / topic, range(number + 2))

    archives.archive(tmp_path / "queues", dest)

    found: Any = ds.dataset(dest, partitioning="hive").to_table()
    named: list[str] = found["_topic"].to_pylist()
    assert found["topic"].cast(pa.string()).to_pylist() == named
    counts = {topic: named.count(topic) for topic in topics}
    assert counts == dict(zip(topics, [PER_DAY, 2 * PER_DAY, 3 * PER_DAY], strict=True))
    assert archives.Archive(dest).topics() == sorted(topics)


@pytest.mark.parametrize(
    ("place", "after"),
    some_sets(
        [
            ("progress", 1),
            ("check_file", 1),
            ("publish", 0),
            ("publish", 2),
            ("lists", 0),
            ("lists", 1),
        ],
        keep=[2],
    ),
)
def test_a_run_that_is_killed_leaves_nothing_half_and_the_next_does_the_rest(
    path: Path, dest: Path, place: str, after: int
) -> None:
    command = [sys.executable, "-c", KILLED, str(path), str(dest), place, str(after)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    there = [file.name for file in parquet_files(dest)]
    expected = finished(path)
    if there:
        assert rows(dest) == expected[: len(there) * PER_DAY]

    report = archives.archive(path, dest)

    assert rows(dest) == expected
    assert report.present == len(there)
    assert leftovers(dest) == []
    assert not archives.verify(dest).failed


def test_two_runs_at_once_exclude_each_other(path: Path, dest: Path, cli: Cli) -> None:
    archives.archive(path, dest)
    fill(path, [4])
    with SafeFolder.at(dest / "_quire") as lists, lists.locked("lock"):
        with pytest.raises(
            quire.errors.ArchiveError, match=f"another run is working on.*pid={os.getpid()}"
        ):
            archives.archive(path, dest)
        assert cli("archive", path, dest).code == 1

    assert len(archives.archive(path, dest).entries) == 1


def test_an_archive_within_a_queue_is_refused(path: Path, tmp_path: Path, cli: Cli) -> None:
    fill(path, range(2))
    (tmp_path / "link").symlink_to(path)
    before = snapshot(tmp_path)
    for place, dest in ((path, path / "archive"), (path.parent, tmp_path / "link" / "a")):
        with pytest.raises(ValueError, match="expected a directory outside the queue"):
            archives.archive(place, dest)
        assert cli("archive", place, dest).code == 2
    assert snapshot(tmp_path) == before


def test_a_queues_own_directory_is_no_archive(path: Path, tmp_path: Path, cli: Cli) -> None:
    fill(path, range(2))
    with quire.open(tmp_path / "old", format="vanilla") as vanilla:
        vanilla.appender().write_bytes(b"x")
    before = snapshot(tmp_path)
    for dest in (path, tmp_path / "old"):
        with pytest.raises(ValueError, match="expected no queue's own directory"):
            archives.archive(path, dest)
        ran = cli("archive", path, dest)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("quire: invalid dest: ")
    assert snapshot(tmp_path) == before


def test_a_flipped_byte_of_the_archive_is_found_wherever_it_is(path: Path, dest: Path) -> None:
    archives.archive(path, dest)
    file = parquet_files(dest)[1]
    whole = file.read_bytes()
    for place in range(4, len(whole), max(1, len(whole) // 150)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])

        failed = archives.verify(dest).failed

        assert [(each.topic, each.cycle) for each in failed] == [("orders", FIRST_DAY + 1)], place
        assert file.name in failed[0].reason
    file.write_bytes(whole)
    assert not archives.verify(dest).failed


def test_a_flipped_byte_of_the_queue_is_found(path: Path, dest: Path) -> None:
    archives.archive(path, dest)
    roll_file = path / "20240116T4.cq4"
    data = bytearray(roll_file.read_bytes())
    data[data.index(b"1.17 ")] ^= 1
    roll_file.write_bytes(data)

    verified = archives.verify(dest)

    assert [each.cycle for each in verified.failed] == [FIRST_DAY + 1]
    assert "20240116T4.cq4" in verified.failed[0].reason
    assert verified.compared == 2


def test_a_file_that_is_gone_is_reported(path: Path, dest: Path) -> None:
    archives.archive(path, dest)
    parquet_files(dest)[0].unlink()

    (failed,) = archives.verify(dest).failed

    assert "20240115T4.parquet" in failed.reason


@pytest.mark.parametrize("damage", [cut, cut_between, zero])
def test_a_damaged_cycle_is_not_archived_and_the_others_are(
    path: Path, dest: Path, cli: Cli, damage: Callable[[Path], None]
) -> None:
    expected = finished(path)
    damage(path / "20240116T4.cq4")

    ran = cli("archive", path, dest)

    assert ran.code == 1
    assert "archived=2" in ran.out
    failures = [line for line in ran.err.splitlines() if "quire: failed:" in line]
    assert len(failures) == 1
    assert "20240116T4.cq4" in failures[0]
    assert f"cycle={FIRST_DAY + 1}" in failures[0]
    assert "index=0x4d1a00000064" in failures[0]
    assert rows(dest) == expected[:PER_DAY] + expected[2 * PER_DAY :]
    assert leftovers(dest) == []


def test_a_cycle_that_is_deleted_before_it_was_archived_is_lost(path: Path, dest: Path) -> None:
    archives.archive(path, dest)
    fill(path, [4])
    (path / "20240118T4.cq4").unlink()

    for _ in range(2):
        report = archives.archive(path, dest)
        assert [(each.topic, each.cycle) for each in report.lost] == [("orders", FIRST_DAY + 3)]
        assert archives.verify(dest).failed

    assert archives.archive(path, dest, accept_loss=True).is_complete
    assert archives.archive(path, dest).is_complete


def test_cycles_that_may_have_come_and_gone_are_lost(path: Path, dest: Path) -> None:
    archives.archive(path, dest)
    fill(path, [4])
    archives.archive(path, dest)
    fill(path, [6])
    for file in path.glob("*.cq4"):
        if file.name < "20240121":
            file.unlink()

    (lost,) = archives.archive(path, dest).lost

    assert lost.cycle == FIRST_DAY + 4


def test_a_cycle_without_end_marker_must_be_quiet(path: Path, dest: Path) -> None:
    old = path / "20240117T4.cq4"
    _, stores = open_queue(path)
    tail = stores[FIRST_DAY + 2].tail
    data = bytearray(old.read_bytes())
    data[tail : tail + 8] = bytes(8)
    old.write_bytes(data)

    def append(what: str, done: int, _total: int) -> None:
        """As Java with a clock behind."""
        if "20240117" in what and done == 3 * PER_DAY:
            data[tail : tail + 8] = struct.pack("<I", 4) + b"late"
            with old.open("r+b") as file:
                file.write(data)

    report = archives.archive(path, dest, grace_s=0.05, progress=append)
    assert [each.cycle for each in report.failed] == [FIRST_DAY + 2]
    assert "still written to" in report.failed[0].reason

    report = archives.archive(path, dest, grace_s=0.05)
    assert [each.messages for each in report.entries] == [PER_DAY + 1]
    assert rows(dest) == finished(path)


def test_what_came_late_is_archived_after_all(path: Path, dest: Path) -> None:
    old = path / "20240117T4.cq4"
    _, stores = open_queue(path)
    tail = stores[FIRST_DAY + 2].tail
    with old.open("r+b") as file:
        file.seek(tail)
        file.write(bytes(8))
    archives.archive(path, dest, grace_s=0)
    with old.open("r+b") as file:
        file.seek(tail)
        file.write(struct.pack("<I", 4) + b"late")

    report = archives.archive(path, dest, grace_s=0)

    assert [each.messages for each in report.entries] == [PER_DAY + 1]
    assert rows(dest) == finished(path)


def test_a_queue_given_as_the_directory_above_has_its_own_name(
    path: Path, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path / "inside").mkdir()
    monkeypatch.chdir(path / "inside")
    assert [*archives.archive("..", dest).archived] == ["orders"]
    assert archives.archive(path, dest).present == 3


def test_another_queue_of_the_same_name_is_refused(path: Path, dest: Path, tmp_path: Path) -> None:
    archives.archive(path, dest)
    moved = tmp_path / "elsewhere" / "orders"
    shutil.copytree(path, moved)
    other = tmp_path / "other" / "orders"
    fill(other, range(4), per_day=PER_DAY - 1)

    assert archives.archive(moved, dest).is_complete
    (failed,) = archives.archive(other, dest).failed
    assert failed.cycle is None
    assert rows(dest) == finished(path)


def test_deleting_leaves_the_newest_and_what_tailers_have_not_read(path: Path, dest: Path) -> None:
    expected = read_queue(path)
    with quire.open(path) as queue, queue.tailer("risk") as risk:
        for _ in range(PER_DAY + 1):
            risk.read()

    report = archives.archive(path, dest, delete=True)

    assert report.deleted == 1
    assert ["risk" in each.reason for each in report.kept] == [True, True]
    assert min(file.name for file in path.glob("*.cq4")) == "20240116T4.cq4"
    with quire.open(path) as queue, queue.tailer("risk") as risk:
        assert [it.data for it in risk] == [data for _, data in expected[PER_DAY + 1 :]]

    report = archives.archive(path, dest, delete=True)
    assert (report.deleted, report.kept) == (2, [])
    assert read_queue(path) == expected[3 * PER_DAY :]
    assert rows(dest) == expected[: 3 * PER_DAY]
    assert archives.archive(path, dest).is_complete
    verified = archives.verify(dest)
    assert (verified.cycles, verified.compared, verified.failed) == (3, 0, [])


def test_the_newest_cycle_stays_even_if_it_is_ended(path: Path, dest: Path) -> None:
    (path / "20240118T4.cq4").unlink()

    report = archives.archive(path, dest, delete=True)

    assert (len(report.entries), report.deleted) == (3, 2)
    assert [file.name for file in path.glob("*.cq4")] == ["20240117T4.cq4"]
    fill(path, [3])
    report = archives.archive(path, dest, delete=True)
    assert (report.is_complete, report.deleted) == (True, 1)


def test_deleting_by_force_passes_over_tailers(path: Path, dest: Path) -> None:
    with quire.open(path) as queue, queue.tailer("risk"):
        pass

    assert archives.archive(path, dest, delete=True).deleted == 0
    assert archives.archive(path, dest, delete=True, force=True).deleted == 3


@pytest.mark.parametrize("kind", [RING, REPLICA, SINK_WRITE])
def test_deleting_by_force_passes_over_nobody_else(
    path: Path, dest: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    holder = Holder(kind, "it", 0, FIRST_DAY)

    def holders(_: quire.Queue) -> list[Holder]:
        return [holder]

    monkeypatch.setattr("quire.archive.deletion.holders_of", holders)

    report = archives.archive(path, dest, delete=True, force=True)

    assert (report.deleted, len(report.kept)) == (0, 3)
    assert report.kept[0].reason == holder.reason


def test_nothing_is_deleted_that_does_not_equal_its_archive(
    path: Path, dest: Path, cli: Cli
) -> None:
    archives.archive(path, dest)
    file = parquet_files(dest)[0]
    data = bytearray(file.read_bytes())
    data[300] ^= 1
    file.write_bytes(data)

    report = archives.archive(path, dest, delete=True)

    assert report.deleted == 0
    assert [each.cycle for each in report.failed] == [FIRST_DAY]
    reason = "kept after an older one that is kept: 20240115T4.cq4"
    assert [(it.cycle, it.reason) for it in report.kept] == [
        (FIRST_DAY + day, reason) for day in (1, 2)
    ]
    assert (path / "20240115T4.cq4").exists()
    assert cli("archive", path, dest, "--delete").code == 1


def test_row_groups_follow_the_index_and_are_bounded(
    path: Path, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.archive.archived_columns.BATCH_ROWS", 16)
    monkeypatch.setattr("quire.archive.cycle_file.GROUP_ROWS", 64)

    archives.archive(path, dest)

    file = pq.ParquetFile(parquet_files(dest)[0])
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    assert [group.num_rows for group in groups] == [64, 64, 64, 8]
    ranges: list[Any] = [group.column(0).statistics for group in groups]
    first = quire.RollCycle("TEST4_DAILY").to_index(FIRST_DAY, 0)
    assert [(it.min - first, it.max - first) for it in ranges] == [
        (0, 63), (64, 127), (128, 191), (192, 199)
    ]  # fmt: skip
    assert {group.column(4).compression for group in groups} == {"ZSTD"}
    assert rows(dest) == finished(path)


def test_large_messages_make_small_row_groups(
    path: Path, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.archive.archived_columns.BATCH_BYTES", 1000)
    monkeypatch.setattr("quire.archive.cycle_file.GROUP_BYTES", 5000)

    archives.archive(path, dest)

    file = pq.ParquetFile(parquet_files(dest)[0])
    total = sum(len(data) for _, data in finished(path)[:PER_DAY])
    assert file.num_row_groups > total / 6000
    assert rows(dest) == finished(path)


def test_a_cycle_without_messages_is_archived_too(tmp_path: Path, dest: Path) -> None:
    path = tmp_path / "queue"
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock) as queue:
        with queue.appender() as appender, appender.writing_document(metadata=True) as document:
            document.write("note", "no message")
        clock.advance(DAY_MS)
        with queue.appender() as appender:
            appender.write_text("one")

    report = archives.archive(path, dest)

    assert [entry.messages for entry in report.entries] == [0]
    assert not archives.verify(dest).failed


@given(
    st.lists(st.tuples(st.integers(1, 5), st.binary(max_size=40)), max_size=30),
    st.lists(st.integers(1, 7), min_size=1, max_size=5),
)
def test_a_digest_is_that_of_the_messages_however_they_come(
    steps: list[tuple[int, bytes]], sizes: list[int]
) -> None:
    messages: list[tuple[int, bytes]] = []
    for step, data in steps:
        messages.append(((messages[-1][0] if messages else 2**40) + step, data))
    whole = pa.record_batch(
        [
            pa.array([index for index, _ in messages], pa.int64()),
            pa.array([data for _, data in messages], pa.binary()),
        ],
        ["_index", "payload"],
    )

    digest, start, turn = Digest(), 0, 0
    while start < len(messages):
        digest.add(whole.slice(start, sizes[turn % len(sizes)]))
        start, turn = start + sizes[turn % len(sizes)], turn + 1

    parts = [
        b"".join(struct.pack("<q", index) for index, _ in messages),
        b"".join(struct.pack("<q", len(data)) for _, data in messages),
        b"".join(data for _, data in messages),
    ]
    hashes = b"".join(hashlib.sha256(part).digest() for part in parts)
    assert digest.hex == hashlib.sha256(hashes).hexdigest()
    assert digest.messages == len(messages)


def test_the_command_tells_what_it_did_and_what_is_wrong(path: Path, dest: Path, cli: Cli) -> None:
    ran = cli.ok("archive", path, dest)
    assert ran.out.startswith("archived=3 messages=600 ")
    assert cli.ok("archive", "--verify", dest).out == (
        "verified=3 messages=600 compared=3 wrong=0\n"
    )
    assert cli("archive", path).code == 2
    assert cli("archive", path, dest, "--force").code == 2
    assert cli("archive", "--verify", "--delete", dest).code == 2
    assert cli("archive", "--verify", path).code == 1
    missing = cli("archive", path / "nowhere", dest)
    assert missing.code == 1
    assert "no such directory" in missing.err
    parquet_files(dest)[0].unlink()
    gone = cli("archive", "--verify", dest)
    assert (gone.code, gone.out) == (1, "verified=3 messages=600 compared=2 wrong=1\n")
