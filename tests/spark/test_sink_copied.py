"""Copies by `quire copy` of queues that Spark writes to: what is done, and what is not finished."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

import quire
from quire.errors import UnfinishedWriteError
from quire.maintenance.sink_writes import DONE, FOLDER, MANIFEST
from quire.staged.commits import commit, finish, has
from staged_writes import MESSAGES, Home, at, found, left_half_done, manifest, put, stage


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return tmp_path / "copied"


def when(what: str, act: Callable[[], object]) -> Callable[[str, int, int], None]:
    """Do something once, as soon as a copy says that it does this."""
    left = [act]

    def progress(doing: str, _done: int, _total: int) -> None:
        if what in doing and left:
            left.pop()()

    return progress


def test_an_unfinished_write_is_finished_in_the_copy_and_in_the_queue(
    received: Path, copied: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left_half_done(received, monkeypatch)
    quire.copy_queue(received, copied)
    assert caplog.messages == []
    for path in (copied, received):
        assert found(path) == [b"there"]
        assert finish(str(path)) == 1
        assert has(str(path), "w", 0)
        assert not commit(at(path), "w", 0, [stage(path)])
        assert found(path) == [b"there", *MESSAGES]


def test_a_batch_that_is_done_is_not_repeated_in_the_copy(received: Path, copied: Path) -> None:
    assert commit(at(received), "w", 0, [stage(received)])
    quire.copy_queue(received, copied)
    assert not commit(at(copied), "w", 0, [stage(copied)])
    assert commit(at(copied), "w", 1, [stage(copied, batch=1)])
    assert found(copied) == [b"there", *MESSAGES * 2]
    assert found(received) == [b"there", *MESSAGES]


@pytest.mark.parametrize("what", [FOLDER, ".cq4", "completing"])
def test_a_write_that_is_finished_while_its_queue_is_copied_is_there_once(
    received: Path, copied: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    left_half_done(received, monkeypatch)
    quire.copy_queue(received, copied, progress=when(what, lambda: finish(str(received))))
    assert found(received) == [b"there", *MESSAGES]
    finish(str(copied))
    assert found(copied) == [b"there", *MESSAGES]
    assert not commit(at(copied), "w", 0, [stage(copied)])


def test_a_write_that_begins_while_its_queue_is_copied_is_finished_there(
    received: Path, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = when(".cq4", lambda: left_half_done(received, monkeypatch))
    quire.copy_queue(received, copied, progress=begin)
    assert finish(str(copied)) == 1
    assert found(copied) == [b"there", *MESSAGES]


def test_a_batch_that_came_and_went_while_its_queue_was_copied_is_named(
    received: Path, copied: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write = when(".cq4", lambda: commit(at(received), "w", 4, [stage(received, batch=4)]))
    quire.copy_queue(received, copied, progress=write)
    assert "the copy lacks records of Spark's writes: " in caplog.text
    assert f"writes=w/4 path={received}" in caplog.text


def test_what_is_staged_elsewhere_is_named_and_left_to_the_queue(
    received: Path,
    copied: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    left_half_done(received, monkeypatch, tmp_path / "staging")
    quire.copy_queue(received, copied)
    assert f"writes=w/0 path={received}" in caplog.text
    assert finish(str(copied)) == 0
    assert finish(str(received), staging_location=str(tmp_path / "staging")) == 1


def test_a_copy_that_goes_on_has_the_records_of_now(
    received: Path, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_half_done(received, monkeypatch)

    def fail() -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        quire.copy_queue(received, copied, progress=when(".cq4", fail))
    assert finish(str(received)) == 1
    quire.copy_queue(received, copied)
    assert finish(str(copied)) == 0
    assert not commit(at(copied), "w", 0, [stage(copied)])
    assert found(copied) == [b"there", *MESSAGES]


PLACES = {
    "folder": "",
    "writer": "w",
    "batch": "w/0",
    "manifest": f"w/0/{MANIFEST}",
    "record": f"w/{DONE}",
    "part": "w/0/PART",
}


@pytest.fixture
def half_done(received: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A queue with a write that is not finished, and a record."""
    left_half_done(received, monkeypatch)
    (received / FOLDER / "w" / DONE).write_text("{}")
    return received


@pytest.mark.parametrize("planted", [*product(PLACES, ("link", "dangling", "pipe"))], ids="-".join)
def test_links_and_pipes_are_not_copied(
    half_done: Path,
    copied: Path,
    home: Home,
    caplog: pytest.LogCaptureFixture,
    planted: tuple[str, str],
) -> None:
    (level, kind), received = planted, half_done
    (part,) = half_done.rglob("part-*")
    place = received / FOLDER / PLACES[level].replace("PART", part.name)
    place.rename(received.parent / "away")
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "dangling":
        place.symlink_to(home.path / "new")
    else:
        place.symlink_to(home.path if level in {"folder", "writer", "batch"} else home.path / DONE)

    quire.copy_queue(received, copied)

    assert home.is_whole
    assert found(copied) == [b"there"]
    assert not [it for it in copied.rglob("*") if it.is_symlink() or it.is_fifo()]
    assert b"precious" not in b"".join(it.read_bytes() for it in copied.rglob("*") if it.is_file())
    passed_over = kind == "pipe" and level in {"writer", "batch"}  # no folder of a writer or batch
    assert ("lacks records" in caplog.text) is not passed_over


NO_MANIFESTS = {
    "deep": "[" * 200_000,
    "empty": "",
    "null": "null",
    "a list": "[1]",
    "no parts": json.dumps(manifest(parts=7)),
    "part without name": json.dumps(manifest(parts=[[]])),
    "absolute part": json.dumps(manifest(parts=[["/etc/passwd", 0, 3]])),
    "part above": json.dumps(manifest(parts=[["../../../secret", 0, 3]])),
    "part that is not there": json.dumps(manifest(parts=[["part-00000-x.arrow", 0, 3]])),
    "long part": json.dumps(manifest(parts=[["x" * 5000, 0, 3]])),
}


@pytest.mark.parametrize("text", NO_MANIFESTS.values(), ids=NO_MANIFESTS)
def test_a_manifest_that_is_none_or_lacks_a_part_is_left_out(
    received: Path, copied: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    (received.parent / "secret").write_text("precious")
    put(received, text)
    quire.copy_queue(received, copied)
    assert f"writes=w/0 path={received}" in caplog.text
    assert commit(at(copied), "mine", 0, [stage(copied, "mine")])
    assert found(copied) == [b"there", *MESSAGES]
    with pytest.raises(UnfinishedWriteError):
        finish(str(received))


def test_a_hostile_manifest_that_names_itself_is_refused_in_the_copy_too(
    received: Path, copied: Path
) -> None:
    put(received, json.dumps(manifest(parts=[[MANIFEST, 0, 3]])))
    quire.copy_queue(received, copied)
    for path in (received, copied):
        with pytest.raises(UnfinishedWriteError, match="not a manifest of a sink"):
            finish(str(path))


def test_a_record_that_is_too_long_is_left_out(
    received: Path, copied: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (received / FOLDER / "w").mkdir(parents=True)
    (received / FOLDER / "w" / DONE).write_text('{"batch": 0, "more": "' + "x" * 5000 + '"}')
    quire.copy_queue(received, copied)
    assert f"writes=w path={received}" in caplog.text
    assert not [*copied.rglob(DONE)]
