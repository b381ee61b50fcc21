"""What goes missing or is damaged on either side of an archive is reported; the rest goes on."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import damages
from archives import (
    FIRST_DAY,
    PER_DAY,
    cut,
    cut_between,
    fill,
    finished,
    parquet_files,
    rows,
    zero,
)
from damages import erase_marker
from queues import snapshot
from quire import archive as archives
from reference import open_queue


def halve(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:1000])


def test_a_queue_whose_name_is_no_text_leaves_the_others(path: Path, dest: Path) -> None:
    queues = path.with_name("queues")
    shutil.copytree(path, queues / "named")
    shutil.copytree(path, queues / os.fsdecode(b"not\xffnamed"))

    report = archives.archive(queues, dest)

    (failed,) = report.failed
    assert "not UTF-8" in failed.reason
    assert len(report.entries) == 3
    assert not archives.verify(dest).failed


@pytest.mark.parametrize("damage", [Path.unlink, halve])
def test_what_the_archive_lost_is_archived_again(
    path: Path, dest: Path, damage: Callable[[Path], None]
) -> None:
    archives.archive(path, dest)
    damage(parquet_files(dest)[1])

    report = archives.archive(path, dest)

    assert report.is_complete
    assert ([each.cycle for each in report.entries], report.present) == ([FIRST_DAY + 1], 2)
    assert rows(dest) == finished(path)
    assert not archives.verify(dest).failed


def test_what_both_sides_lost_is_lost(path: Path, dest: Path) -> None:
    archives.archive(path, dest)
    file = parquet_files(dest)[1]
    file.rename(path.parent / "taken")
    (path / "20240116T4.cq4").unlink()

    for _ in range(2):
        report = archives.archive(path, dest)
        assert [each.cycle for each in report.lost] == [FIRST_DAY + 1]
        assert report.present == 2
        assert file.name in report.lost[0].reason

    (path.parent / "taken").rename(file)  # from a backup
    report = archives.archive(path, dest)
    assert (report.is_complete, report.present) == (True, 3)
    assert not archives.verify(dest).failed
    file.unlink()
    assert archives.archive(path, dest, accept_loss=True).is_complete
    assert archives.archive(path, dest).is_complete


def test_a_cut_file_of_a_cycle_that_is_gone_has_failed(path: Path, dest: Path) -> None:
    archives.archive(path, dest, delete=True)
    file = parquet_files(dest)[1]
    whole = file.read_bytes()
    halve(file)

    for _ in range(2):
        (failed,) = archives.archive(path, dest).failed
        assert (failed.cycle, file.name in failed.reason) == (FIRST_DAY + 1, True)

    file.write_bytes(whole)
    assert archives.archive(path, dest).is_complete
    assert not archives.verify(dest).failed


@pytest.mark.parametrize("damage", [cut, cut_between, zero])
def test_a_cycle_that_is_damaged_later_stops_no_other(
    path: Path, dest: Path, damage: Callable[[Path], None]
) -> None:
    """The newest that both have is the one to compare."""
    archives.archive(path, dest)
    for name in ("20240118T4.cq4", "20240117T4.cq4"):
        (path / name).unlink()
    fill(path, [4, 5])
    expected = rows(dest)
    damage(path / "20240116T4.cq4")

    report = archives.archive(path, dest, accept_loss=True)

    (failed,) = report.failed
    assert failed.cycle == FIRST_DAY + 1
    assert "20240116T4.cq4" in failed.reason
    assert "index=0x4d1a00000064" in failed.reason
    assert [each.cycle for each in report.entries] == [FIRST_DAY + 4]
    assert rows(dest)[: 3 * PER_DAY] == expected
    other = path.parent / "other" / "orders"
    fill(other, range(2), per_day=PER_DAY - 1)
    damage(other / "20240116T4.cq4")
    assert archives.archive(other, dest).entries == []  # an older one tells that it is another


def test_a_damaged_cycle_without_end_marker_stops_no_other(path: Path, dest: Path) -> None:
    old = path / "20240116T4.cq4"
    _, stores = open_queue(path)
    with old.open("r+b") as file:
        file.seek(stores[FIRST_DAY + 1].tail)
        file.write(struct.pack("<I", 0))
    archives.archive(path, dest, grace_s=0)
    fill(path, [4])
    zero(old)

    report = archives.archive(path, dest, grace_s=0)

    assert [each.cycle for each in report.failed] == [FIRST_DAY + 1]
    assert [each.cycle for each in report.entries] == [FIRST_DAY + 3]


def test_a_queue_that_is_gone_is_lost(tmp_path: Path, dest: Path) -> None:
    root = tmp_path / "queues"
    for topic in ("eu/orders", "us/orders"):
        fill(root / topic, range(3))
    archives.archive(root, dest)
    shutil.rmtree(root / "us")

    for _ in range(2):
        report = archives.archive(root, dest)
        assert [(each.topic, each.cycle) for each in report.lost] == [
            ("us/orders", FIRST_DAY + 2),
            ("us/orders", None),
        ]
        assert {each.topic for each in archives.verify(dest).failed} == {"us/orders"}
        assert report.present == 4

    assert archives.archive(root / "eu", dest).lost == []
    assert archives.archive(root, dest, accept_loss=True).is_complete
    assert archives.archive(root, dest).is_complete
    assert not archives.verify(dest).failed
    fill(root / "us/orders", range(5, 7))
    assert [each.cycle for each in archives.archive(root, dest).entries] == [FIRST_DAY + 5]
    shutil.rmtree(root / "us")
    assert len(archives.archive(root, dest).lost) == 2


def test_the_only_queue_that_is_gone_is_lost_and_can_be_accepted(path: Path, dest: Path) -> None:
    archives.archive(path, dest)
    expected = rows(dest)
    shutil.rmtree(path)

    assert [each.cycle for each in archives.archive(path, dest).lost] == [FIRST_DAY + 3, None]
    assert archives.verify(dest).failed
    assert archives.archive(path, dest, accept_loss=True).is_complete
    assert not archives.verify(dest).failed
    assert rows(dest) == expected


def test_an_archive_that_was_carried_elsewhere_is_whole(path: Path, dest: Path) -> None:
    archives.archive(path, dest)
    shutil.rmtree(path.parent)

    assert not archives.verify(dest).failed


def test_a_queue_is_the_same_however_its_path_is_written(
    path: Path, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archives.archive(path, dest, delete=True)  # no cycle is left to compare
    (path / "elsewhere").mkdir()
    link = path.with_name("link")
    link.symlink_to(path.parent)
    monkeypatch.chdir(path / "elsewhere")

    for place in (Path("..", "..", path.name), link / path.name, path):
        assert archives.archive(place, dest).is_complete

    shutil.rmtree(path)
    for root in (link, dest / ".." / path.parent.name):
        report = archives.archive(root, dest)
        assert {it.topic for it in report.lost} == {"orders"}


def test_a_queue_that_was_moved_is_known_by_a_link_at_its_former_path(
    path: Path, dest: Path
) -> None:
    archives.archive(path, dest, delete=True)
    moved = path.with_name("moved") / path.name
    moved.parent.mkdir()
    path.rename(moved)

    (failed,) = archives.archive(moved, dest).failed
    assert "make a link to it at the archived path" in failed.reason
    path.symlink_to(moved)
    assert archives.archive(moved, dest).is_complete
    path.unlink()
    assert archives.archive(moved, dest).is_complete
    assert not archives.verify(dest).failed


def test_topics_that_begin_with_a_dot_are_verified(tmp_path: Path, dest: Path) -> None:
    for topic in (".hidden", "seen"):
        fill(tmp_path / "queues" / topic, range(2))
    archives.archive(tmp_path / "queues", dest)

    assert archives.Archive(dest).topics() == [".hidden", "seen"]
    assert archives.verify(dest).cycles == 2
    halve(dest / "topic=.hidden" / "20240115T4.parquet")
    assert [each.topic for each in archives.verify(dest).failed] == [".hidden"]


@pytest.mark.parametrize("what", ["junk", "folder", "copy", "list", "list-is-folder"])
def test_a_bad_file_of_one_topic_stops_no_other(tmp_path: Path, dest: Path, what: str) -> None:
    root = tmp_path / "queues"
    for topic in ("a", "b", "c"):
        fill(root / topic, range(2))
    archives.archive(root, dest)
    for topic in ("a", "b", "c"):
        fill(root / topic, [2])
    folder, listed = dest / "topic=b", dest / "_quire" / "b.json"
    if what == "junk":
        (folder / "junk.parquet").write_bytes(b"junk")
    elif what == "folder":
        (folder / "folder.parquet").mkdir()
    elif what == "copy":
        shutil.copy(folder / "20240115T4.parquet", folder / "copy.parquet")
    else:
        listed.unlink()
        listed.mkdir() if what == "list-is-folder" else listed.write_text("{")
    before = snapshot(root)

    report = archives.archive(root, dest)

    assert [each.topic for each in report.failed] == ["b"]
    assert (what if "list" not in what else "b.json") in report.failed[0].reason
    archived = ["a", "c"] if "list" in what else ["a", "b", "c"]
    assert sorted(report.archived) == archived
    assert {each.topic for each in archives.verify(dest).failed} == {"b"}
    assert snapshot(root) == before


def test_what_a_killed_run_left_is_read_before_it_is_taken_in(path: Path, dest: Path) -> None:
    archives.archive(path, dest)
    listed = dest / "_quire" / "orders.json"
    content = json.loads(listed.read_bytes())
    del content["cycles"][1]
    content["seen"].append(FIRST_DAY + 1)
    listed.write_text(json.dumps(content))
    file = parquet_files(dest)[1]
    data = bytearray(file.read_bytes())
    data[300] ^= 1
    file.write_bytes(data)

    report = archives.archive(path, dest)

    assert [each.cycle for each in report.failed] == [FIRST_DAY + 1]
    assert [each.cycle for each in report.entries] == [FIRST_DAY + 1]
    assert rows(dest) == finished(path)
    assert archives.archive(path, dest).is_complete
    assert not archives.verify(dest).failed


def test_a_longer_cycle_of_another_queue_replaces_no_file(tmp_path: Path, dest: Path) -> None:
    path = tmp_path / "replaced"
    fill(path, range(2))
    erase_marker(path / "20240115T4.cq4")  # so that the cycle may grow
    archives.archive(path, dest, grace_s=0)
    before = rows(dest)
    assert before == finished(path)
    shutil.rmtree(path)
    erase_marker(damages.fill(path, 2, PER_DAY + 1)[0])

    for _ in range(2):
        (failed,) = archives.archive(path, dest, grace_s=0).failed
        assert "the messages differ from those that were archived" in failed.reason
        assert rows(dest) == before
