"""Unfinished writes of Spark and retention: a write's marks stay until it is finished."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

import quire
from archives import parquet_files
from queues import DAY_MS, START_MS, exit_code, fork
from quire.archive import archive
from quire.errors import UnfinishedWriteError
from quire.maintenance.sink_writes import FOLDER, MANIFEST
from quire.staged import commits
from quire.staged.batch_target import Target
from quire.staged.commits import commit, finish
from quire.staged.staging import Part, PartWriter, Staging
from reference import read_queue

ROWS = [b"r%d" % number for number in range(10)]


@pytest.fixture
def clock() -> quire.ManualClock:
    return quire.ManualClock(START_MS)


def staged(path: Path, batch: int) -> Part:
    with PartWriter(Staging.of(str(path)).batch("w", batch), 0) as writer:
        writer.write(pa.array(ROWS, pa.large_binary()))
        part = writer.finish()
    assert part is not None
    return part


def messages(path: Path) -> list[bytes]:
    return [payload for _, payload in read_queue(path)]


def appended(path: Path, clock: quire.ManualClock, *messages: bytes) -> None:
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue,
        queue.appender() as appender,
    ):
        appender.write_many(messages)


def ends(*_: object) -> None:
    """Stand for the kill that comes before a batch is recorded as done."""
    os._exit(9)


def killed(path: Path, clock: quire.ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that is killed once all is appended, before that is recorded."""
    options = {"roll_cycle": "TEST4_DAILY", "clock": clock, "block_bytes": 2**16}
    target, part = Target(str(path), options), staged(path, 0)
    with monkeypatch.context() as patched:
        patched.setattr(commits, "CHUNK_ROWS", 5)
        patched.setattr(commits, "record", ends)
        assert exit_code(fork(lambda: commit(target, "w", 0, [part]))) == 9
    assert messages(path)[-10:] == ROWS


def rolled(path: Path, clock: quire.ManualClock) -> None:
    clock.advance(DAY_MS)
    appended(path, clock, b"other")
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        appender.normalise_eofs()


@pytest.fixture(params=["empty", "used"])
def path(
    tmp_path: Path,
    clock: quire.ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Path:
    """A queue with an unfinished write in its cycle before the last one."""
    path = tmp_path / "orders"
    if request.param == "used":
        appended(path, clock, b"before")
        rolled(path, clock)
    killed(path, clock, monkeypatch)
    rolled(path, clock)
    return path


def test_an_unfinished_write_holds_its_cycles(path: Path, clock: quire.ManualClock) -> None:
    report = quire.prune(path, max_cycles=1, clock=clock)

    held = [it for it in report.kept if "unfinished Spark write: write=w/0" in it.reason]
    assert len(held) == 1
    assert not set(quire.removable(path)) & {held[0].file}
    assert finish(str(path)) == 1
    assert messages(path)[-11:] == [*ROWS, b"other"]
    assert len(quire.prune(path, max_cycles=1, clock=clock).removed) == 1
    assert messages(path) == [b"other"]


def test_archive_deletes_no_cycle_of_an_unfinished_write(path: Path, tmp_path: Path) -> None:
    report = archive(path, tmp_path / "archive", delete=True, force=True)

    assert parquet_files(tmp_path / "archive")
    assert [it for it in report.kept if "unfinished Spark write: write=w/0" in it.reason]
    assert finish(str(path)) == 1
    assert messages(path)[-11:] == [*ROWS, b"other"]


@pytest.mark.parametrize("path", ["used"], indirect=True)
def test_a_write_whose_first_cycle_is_gone_is_not_appended_again(path: Path) -> None:
    for file in sorted(path.glob("*.cq4"))[:-1]:
        file.unlink()

    with pytest.raises(UnfinishedWriteError, match=r"a write began is gone.*\(to give up"):
        finish(str(path))
    assert messages(path) == [b"other"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"after": "x"}', b"{" * 10_000])
def test_a_manifest_that_does_not_read_holds_every_cycle(
    path: Path, clock: quire.ManualClock, content: bytes
) -> None:
    (path / FOLDER / "w" / "0" / MANIFEST).write_bytes(content)

    assert not quire.prune(path, max_cycles=1, clock=clock).removed


def test_a_finished_write_holds_nothing(path: Path, clock: quire.ManualClock) -> None:
    (path / FOLDER / "w" / "done.json").write_text(json.dumps({"batch": 0}))

    assert quire.prune(path, max_cycles=1, clock=clock).removed
