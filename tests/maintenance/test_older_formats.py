"""`quire.verify` and `quire.repair` of Vanilla Chronicles and Quick-Queues."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import quire
from any_format import open_vanilla
from damages import patch

MESSAGES = 20


@pytest.fixture
def vanilla(path: Path) -> Path:
    clock = quire.ManualClock(1_705_314_600_000)
    with (
        open_vanilla(path, clock=clock, index_block_bytes=4096, data_block_bytes=4096) as queue,
        queue.appender() as appender,
    ):
        for number in range(MESSAGES):
            appender.write_bytes(b"message %d" % number)
    return path


@pytest.fixture
def quick(path: Path) -> Path:
    with (
        quire.quick_queue.open(path, page_bytes=256) as queue,
        queue.appender() as appender,
    ):
        for number in range(MESSAGES):
            appender.write_bytes(b"message %d" % number)
    return path


def kinds(path: Path) -> list[str]:
    return [finding.kind for finding in quire.verify(path).findings]


def payloads(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return list(tailer.payloads())


def index_of(path: Path) -> Path:
    return next(path.glob("*/index-0"))


def test_a_whole_vanilla_chronicle(vanilla: Path) -> None:
    report = quire.verify(vanilla)
    assert (report.findings, report.messages) == ((), MESSAGES)


def test_a_vanilla_chronicle_in_use(vanilla: Path) -> None:
    with quire.open(vanilla, format="vanilla") as queue, queue.appender() as appender:
        appender.write_bytes(b"one more")
        assert kinds(vanilla) == []


def test_entries_of_a_vanilla_chronicle(vanilla: Path) -> None:
    index = index_of(vanilla)
    entry = index.read_bytes()[16:24]
    patch(index, 24, entry)  # repeats the one before it
    found = quire.verify(vanilla).findings
    assert [it.kind for it in found] == ["repeated-entry", "record-without-entry"]
    assert (found[0].file, found[0].position) == (str(index), 24)
    patch(index, 24, bytes(8))
    assert kinds(vanilla) == ["free-entries", "record-without-entry"]
    patch(index, 24, b"\1" * 8)
    assert kinds(vanilla) == ["entry-without-record", "record-without-entry"]


def test_a_vanilla_chronicle_is_repaired(vanilla: Path) -> None:
    before = payloads(vanilla)
    patch(index_of(vanilla), 24, bytes(8))
    assert quire.repair(vanilla).planned
    report = quire.repair(vanilla, dry_run=False)
    assert report.actions
    assert report.after.findings == ()
    assert payloads(vanilla) == before


def test_a_whole_quick_queue(quick: Path) -> None:
    report = quire.verify(quick)
    assert (report.findings, report.messages) == ((), MESSAGES)
    with quire.open(quick, format="quick-queue") as queue, queue.appender() as appender:
        appender.write_bytes(b"one more")
        assert kinds(quick) == []


def test_pages_and_entries_of_a_quick_queue(quick: Path) -> None:
    patch(quick / "0.qx", 32 + 15, b"\x55")
    (finding,) = quire.verify(quick).findings
    assert (finding.kind, finding.position) == ("entry", 32)
    (quick / "0.qd").unlink()
    assert kinds(quick) == ["page", "entry"]
    os.truncate(quick / "1.qx", 100)
    assert "page" in kinds(quick)
    assert quire.repair(quick, dry_run=False).actions == ()


def test_a_message_of_many_missing_pages_is_one_finding(quick: Path) -> None:
    patch(quick / "1.qx", 3 * 16 + 9, b"\xff")  # the second byte of the last message's length
    (finding,) = quire.verify(quick).findings
    assert finding.kind == "page"
    assert "of the same message after it" in finding.found


def test_a_dead_producer_of_a_quick_queue(path: Path) -> None:
    with (
        quire.quick_queue.open(path, page_bytes=256) as queue,
        queue.appender("AA0") as appender,
    ):
        appender.write_bytes(b"whole")
        appender.write_bytes(b"claimed")
    patch(path / "0.qmx", 16 + 15, b"\0")
    report = quire.verify(path)
    assert [finding.kind for finding in report.findings] == ["pending-entry"]
    assert report.ok
