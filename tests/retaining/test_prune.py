"""Which cycles `quire.prune` removes, which it keeps, and the reasons it gives."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import Cli
from queues import DAY_MS, START_MS, copy_of, payloads, snapshot
from quire._common.durable import SafeFolder
from quire.errors import LockHeldError

DAYS = 6
NOW = quire.ManualClock(START_MS + (DAYS - 1) * DAY_MS)  # during the newest day

READER = """\
import sys, quire
with quire.open(sys.argv[1], read_only=True) as queue, queue.tailer() as tailer:
    tailer.move_to_index(int(sys.argv[2]))
    tailer.read_bytes()
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def orders(path: Path) -> Path:
    """Six days of two messages; all but the newest are finished."""
    write_days(path, DAYS)
    return path


def write_days(path: Path, days: int) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="FAST_DAILY", clock=clock, block_bytes=2**16) as queue:
        appender = queue.appender()
        for day in range(days):
            appender.write_many([b"%d.0" % day, b"%d.1" % day])
            clock.advance(DAY_MS)


def days_in(path: Path) -> list[int]:
    with quire.open(path, read_only=True) as queue:
        return [int(it[:1]) for it in payloads(queue)[::2]]


def prune(path: Path, **options: Any) -> quire.retaining.PruneReport:  # noqa: ANN401 - as given
    options.setdefault("clock", NOW)
    return quire.prune(path, **options)


@contextmanager
def reading(path: Path, index: int) -> Generator[int]:
    """Another process that reads from an index on; its pid."""
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(path), str(index)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process.pid


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ({"keep": "2d"}, [3, 4, 5]),  # the day three days ago ended less than two days ago
        ({"keep": timedelta(days=2)}, [3, 4, 5]),
        ({"keep": 2 * 86_400}, [3, 4, 5]),
        ({"keep": "1 hour"}, [5]),
        ({"keep": "4 weeks"}, [0, 1, 2, 3, 4, 5]),
        ({"max_cycles": 2}, [4, 5]),
        ({"max_cycles": 1}, [5]),
        ({"max_bytes": "1 PiB"}, [0, 1, 2, 3, 4, 5]),
        ({"max_bytes": 1}, [5]),
        ({"keep": "3d", "max_cycles": 3}, [3, 4, 5]),
    ],
)
def test_the_oldest_go_by_age_size_and_count(
    orders: Path, limits: dict[str, Any], left: list[int]
) -> None:
    report = prune(orders, **limits)

    assert days_in(orders) == left
    assert [it.cycle for it in report.removed + report.kept] == [*range(19737, 19743)]
    assert len(report.kept) == len(left)
    assert all(it.bytes > 0 and it.reason for it in report.removed + report.kept)
    assert report.bytes == sum(it.bytes for it in report.removed)


def test_size_counts_what_is_on_disk(orders: Path) -> None:
    sizes = [file.stat().st_blocks * 512 for file in sorted(orders.glob("*.cq4"))]
    report = prune(orders, max_bytes=sum(sizes[-2:]))
    assert [it.bytes for it in report.removed] == sizes[:-2]
    assert days_in(orders) == [4, 5]


def test_the_newest_stays_whatever_the_limits_say(orders: Path) -> None:
    much_later = quire.ManualClock(START_MS + 1000 * DAY_MS)
    report = quire.prune(orders, keep="1d", clock=much_later)
    assert [(it.cycle, it.reason) for it in report.kept] == [(19742, "kept as the newest")]
    assert days_in(orders) == [5]


def test_a_dry_run_changes_nothing_and_says_the_same(orders: Path) -> None:
    before = snapshot(orders)
    dry = prune(orders, max_cycles=2, dry_run=True)
    assert snapshot(orders) == before
    assert dry.dry_run
    done = prune(orders, max_cycles=2)
    assert (dry.removed, dry.kept) == (done.removed, done.kept)


def test_an_open_queue_is_pruned_as_its_path_is(orders: Path) -> None:
    with quire.open(orders) as queue:
        report = quire.prune(queue, max_cycles=2, clock=NOW, dry_run=True)
        assert report.removed == prune(orders, max_cycles=2, dry_run=True).removed
        assert len(quire.prune(queue, max_cycles=2, clock=NOW).removed) == len(report.removed)
    with pytest.raises(TypeError, match="invalid queue: expected a queue, or its path"):
        quire.prune(5, max_cycles=2)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def test_the_time_is_the_machines_by_default(orders: Path) -> None:
    assert len(quire.prune(orders, keep="7d").removed) == DAYS - 1


def test_a_named_tailer_keeps_its_cycle_and_all_later_ones(orders: Path) -> None:
    with quire.open(orders) as queue, queue.tailer("risk") as tailer:
        tailer.read_many(5)  # the next is the second message of the third day
    report = prune(orders, max_cycles=1)
    assert [it.reason for it in report.kept] == [
        "kept for a named tailer: tailer=risk next=0x4d1b00000001",
        *["kept after an older one that is kept: 20240117F.cq4"] * 2,
        "within the limits",
    ]
    with quire.open(orders) as queue, queue.tailer("risk", on_missing="raise") as tailer:
        assert tailer.read_bytes() == b"2.1"


def test_a_tailer_that_has_read_nothing_keeps_everything(orders: Path) -> None:
    with quire.open(orders) as queue:
        queue.tailer("new").close()
    assert prune(orders, max_cycles=1).removed == []


def test_a_stale_tailer_keeps_nothing_and_gets_the_first_index_once(
    orders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with quire.open(orders) as queue:
        with queue.tailer("risk") as tailer:
            tailer.read_many(3)
        with queue.tailer("live") as tailer:
            tailer.read_many(9)
    assert prune(orders, max_cycles=1, stale_after="9d").removed[1:] == []
    with caplog.at_level(logging.WARNING, logger="quire"):
        report = prune(orders, max_cycles=1, stale_after="2d")

    assert report.overtaken == ["risk"]
    assert "a stale reader loses messages: name=risk" in caplog.text
    assert days_in(orders) == [4, 5]
    lost = pytest.raises(
        quire.errors.DataLossError, match=r"expected=0x4d1a00000001 first=0x4d1d0+ "
    )
    with quire.open(orders) as queue, lost:
        queue.tailer("risk", on_missing="raise")
    caplog.clear()
    with quire.open(orders) as queue, queue.tailer("risk") as tailer:
        assert tailer.read_bytes() == b"4.0"
        assert tailer.read_bytes() == b"4.1"
        assert caplog.text.count("0x4d1d00000000") == 1
    with quire.open(orders) as queue, queue.tailer("live", on_missing="raise") as tailer:
        assert tailer.read_bytes() == b"4.1"


def test_what_a_process_has_open_stays_with_all_that_is_newer(orders: Path) -> None:
    with reading(orders, 0x4D1A00000000) as pid:
        report = prune(orders, max_cycles=1)
        assert [it.reason for it in report.kept][:2] == [
            f"kept as a process has it open: pid={pid}",
            "kept after an older one that is kept: 20240116F.cq4",
        ]
        assert days_in(orders) == [1, 2, 3, 4, 5]
    assert len(prune(orders, max_cycles=1).removed) == DAYS - 2


def test_a_cycle_that_java_could_append_to_stays(orders: Path) -> None:
    file = sorted(orders.glob("*.cq4"))[1]
    data = bytearray(file.read_bytes())
    end = data.rindex(b"\0\0\0\xc0")
    data[end : end + 4] = bytes(4)
    with file.open("r+b") as found:
        found.write(data)
    report = prune(orders, max_cycles=1)
    assert report.kept[0].reason.startswith("kept as it has no end-of-file marker")
    assert [it.file.name for it in report.removed] == ["20240115F.cq4"]


def test_a_damaged_cycle_stays(orders: Path) -> None:
    with min(orders.glob("*.cq4")).open("r+b") as file:
        file.write(b"damaged!" * 64)
    report = prune(orders, max_cycles=1)
    assert report.removed == []
    assert report.kept[0].reason.startswith("kept as it is damaged: ")


def test_the_listing_never_names_a_file_that_is_gone(orders: Path) -> None:
    with quire.open(orders, read_only=True) as reader:
        before = reader.table_value("listing.modCount")
        prune(orders, max_cycles=2)
        assert reader.table_value("listing.lowestCycle") == 19741
        assert reader.table_value("listing.modCount") != before
        assert reader.cycles == [19741, 19742]
        assert reader.first_index == 0x4D1D00000000
        with reader.tailer() as tailer:
            assert tailer.read_bytes() == b"4.0"


def test_an_unnamed_tailer_that_is_open_goes_on_with_what_is_left(orders: Path) -> None:
    with quire.open(orders, read_only=True) as queue, queue.tailer(on_missing="skip") as tailer:
        assert tailer.read_bytes() == b"0.0"
        for file in sorted(orders.glob("*.cq4"))[:4]:  # as where /proc shows no process
            file.unlink()
        rest = [bytes(it) for it in tailer.payloads()]
    assert rest == [b"0.1", b"4.0", b"4.1", b"5.0", b"5.1"]


def test_messages_are_appended_while_old_cycles_go(path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="FAST_DAILY", clock=clock, block_bytes=2**16) as queue:
        appender = queue.appender()
        for day in range(8):
            appender.write_bytes(b"%d" % day)
            quire.prune(path, max_cycles=2, clock=clock)
            clock.advance(DAY_MS)
        assert payloads(queue) == [b"6", b"7"]


def test_listeners_are_called_once_each_cycle_is_gone(orders: Path) -> None:
    seen: list[tuple[str, bool]] = []

    def removed(cycle: quire.retaining.PrunedCycle) -> None:
        with SafeFolder.at(orders) as folder, folder.locked("quire.retention.lock"):
            seen.append((cycle.file.name, cycle.file.exists()))

    prune(orders, max_cycles=4, on_removed=removed)
    assert seen == [("20240115F.cq4", False), ("20240116F.cq4", False)]


def test_progress_is_reported(orders: Path) -> None:
    seen: list[tuple[str, int, int]] = []

    def progress(what: str, done: int, total: int) -> None:
        seen.append((what, done, total))

    prune(orders, max_cycles=4, progress=progress)
    assert seen == [("delete 20240115F.cq4", 0, 2), ("delete 20240116F.cq4", 1, 2)]


def test_two_at_once_are_refused(orders: Path) -> None:
    with SafeFolder.at(orders) as folder, folder.locked("quire.retention.lock"):
        with pytest.raises(LockHeldError, match=f"pid={os.getpid()}"):
            prune(orders, max_cycles=1)
        assert len(prune(orders, max_cycles=1, dry_run=True).removed) == DAYS - 1
    assert days_in(orders) == [0, 1, 2, 3, 4, 5]


def test_moving_keeps_files_that_can_be_read(orders: Path, tmp_path: Path) -> None:
    whole = copy_of(orders, tmp_path / "whole")
    dest = tmp_path / "old" / "orders"
    report = prune(orders, max_cycles=2, action="move", dest=dest)
    assert [it.dest for it in report.removed] == [dest / it.file.name for it in report.removed]
    assert (days_in(orders), days_in(dest)) == ([4, 5], [0, 1, 2, 3])
    for file in dest.glob("*.cq4"):
        assert file.read_bytes() == (whole / file.name).read_bytes()
        assert file.stat().st_nlink == 1


def test_moving_to_another_file_system_copies_and_leaves_holes(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    whole = copy_of(orders, tmp_path / "whole")
    sizes = {file.name: file.stat().st_blocks for file in orders.glob("*.cq4")}
    monkeypatch.setattr(os, "link", refused)
    dest = tmp_path / "old"
    prune(orders, max_cycles=2, action="move", dest=dest)
    assert len([*dest.glob("*.cq4")]) == DAYS - 2
    for file in dest.glob("*.cq4"):
        assert file.read_bytes() == (whole / file.name).read_bytes()
        assert file.stat().st_blocks <= sizes[file.name]


def test_moving_replaces_nothing(orders: Path, tmp_path: Path) -> None:
    dest = tmp_path / "old"
    dest.mkdir()
    (dest / "20240116F.cq4").write_bytes(b"something else")
    with pytest.raises(
        quire.errors.UnsafePathError, match=r"another file has the name: .*20240116F"
    ):
        prune(orders, max_cycles=1, action="move", dest=dest)
    assert days_in(orders) == [1, 2, 3, 4, 5]
    assert (dest / "20240116F.cq4").read_bytes() == b"something else"


def test_moving_leaves_hidden_files_of_others_alone(orders: Path, tmp_path: Path) -> None:
    dest = tmp_path / "old"
    (dest / ".backup.tmp").mkdir(parents=True)
    for name in (".report.tmp", ".backup.tmp/one", f".report.{'0' * 16}.tmp"):
        (dest / name).write_bytes(b"mine")
    left = dest / f".20240115F.cq4.{'0' * 16}.tmp"
    left.write_bytes(b"of a run that was killed")
    prune(orders, keep="1d", action="move", dest=dest)
    assert {it.name for it in dest.iterdir() if it.name.startswith(".")} == {
        ".backup.tmp",
        ".report.tmp",
        f".report.{'0' * 16}.tmp",
    }
    assert (dest / ".backup.tmp" / "one").read_bytes() == b"mine"


def test_archiving_verifies_before_a_cycle_goes(orders: Path, tmp_path: Path) -> None:
    import quire.archive

    report = prune(orders, max_cycles=2, action="archive", dest=tmp_path / "archive")
    assert [it.dest is not None and it.dest.suffix for it in report.removed] == [".parquet"] * 4
    assert days_in(orders) == [4, 5]
    verified = quire.archive.verify(tmp_path / "archive")
    assert (verified.cycles, verified.failed) == (5, [])

    write_days(tmp_path / "b", 3)
    prune(tmp_path / "b", max_cycles=2, action="archive", dest=tmp_path / "second")
    (file,) = (tmp_path / "second").rglob("20240116F.parquet")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(quire.errors.ArchiveError):
        prune(tmp_path / "b", max_cycles=1, action="archive", dest=tmp_path / "second")
    assert days_in(tmp_path / "b") == [1, 2]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({}, ValueError, "no limit: give at least one of keep, max_bytes and max_cycles"),
        ({"keep": "soon"}, ValueError, "invalid keep: expected a duration such as 7d"),
        ({"keep": "0d"}, ValueError, "invalid keep"),
        ({"keep": 0}, ValueError, "invalid keep"),
        ({"keep": -1}, ValueError, "a duration cannot be negative: keep=-1"),
        ({"keep": float("nan")}, ValueError, "keep"),
        ({"keep": timedelta(days=-1)}, ValueError, "invalid keep"),
        ({"keep": [7]}, TypeError, "invalid keep: expected seconds, found list"),
        ({"max_bytes": "much"}, ValueError, "invalid max_bytes: expected a size such as 10GB"),
        ({"max_bytes": 0}, ValueError, "invalid max_bytes"),
        ({"max_bytes": 1.5}, TypeError, "invalid max_bytes: expected an integer, found float"),
        ({"max_cycles": 0}, ValueError, "invalid max_cycles"),
        ({"max_cycles": 1, "stale_after": "x"}, ValueError, "invalid stale_after"),
        ({"max_cycles": 1, "action": "burn"}, ValueError, "invalid action: expected one of"),
        ({"max_cycles": 1, "action": "move"}, ValueError, "invalid dest: action=move"),
        ({"max_cycles": 1, "dest": "old"}, ValueError, "invalid dest: action=delete"),
        ({"max_cycles": 1, "on_removed": 1}, TypeError, "invalid on_removed"),
        ({"max_cycles": 1, "dry_run": "yes"}, TypeError, "invalid dry_run"),
    ],
)
def test_wrong_rules_are_refused(
    orders: Path, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text.replace("(", r"\(")):
        quire.prune(orders, **options)
    assert days_in(orders) == [0, 1, 2, 3, 4, 5]


def test_files_are_not_moved_into_a_queue(orders: Path, tmp_path: Path) -> None:
    write_days(tmp_path / "other", 1)
    (tmp_path / "link").symlink_to(orders)
    for action in ("move", "archive"):
        for dest in (orders, tmp_path / "other", orders / "old" / "of", tmp_path / "link" / "old"):
            with pytest.raises(ValueError, match="invalid dest: expected a directory outside"):
                prune(orders, max_cycles=1, action=action, dest=dest)
    assert not (orders / "old").exists()


def test_files_are_not_moved_to_where_queues_lie(orders: Path, tmp_path: Path, cli: Cli) -> None:
    write_days(tmp_path / "other", 1)
    found = cli.ok("stat", tmp_path, "--format", "csv").lines
    ran = cli("prune", orders, "--max-cycles", "1", "--move", tmp_path)
    assert (ran.code, "expected a directory beside the queue" in ran.err) == (2, True)
    assert cli.ok("stat", tmp_path, "--format", "csv").lines == found


def test_what_is_no_queue_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(quire.errors.NotAQueueError):
            quire.prune(place, max_cycles=1)
    assert not [*tmp_path.iterdir()]


def test_a_quick_queue_is_refused_with_the_reason(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q", format="quick-queue") as queue, queue.appender() as appender:
        appender.write_bytes(b"x")
    with pytest.raises(quire.errors.UnsupportedError, match="quick-queue"):
        quire.prune(tmp_path / "q", max_cycles=1)
