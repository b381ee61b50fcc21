"""A queue's side files came from somebody else: nothing outside of them is read, or touched."""

from __future__ import annotations

import json
import os
import shutil
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import quire
from queues import payloads
from quire._common.durable import Access
from quire.errors import CorruptError, QuireError, UnfinishedWriteError, UnsafePathError
from quire.maintenance.sink_writes import FOLDER
from quire.staged import commits
from quire.staged.batch_target import Target
from quire.staged.commits import commit, finish, has
from quire.staged.staging import Staging
from staged_writes import (
    MESSAGES,
    OPTIONS,
    TOKEN,
    Home,
    at,
    found,
    left_half_done,
    manifest,
    put,
    stage,
)

VERBS: dict[str, Callable[[Path], object]] = {
    "commit": lambda path: commit(at(path), "mine", 0, [stage(path, "mine")]),
    "finish": lambda path: finish(str(path)),
    "has": lambda path: has(str(path), "w", 0),
}


HOSTILE: dict[str, Callable[[Home], object]] = {
    "absolute part": lambda it: manifest(parts=[[f"{it.path}/1/part-00000.arrow", 0, 3]]),
    "part above": lambda _: manifest(parts=[["../../../../home/1/part-00000.arrow", 0, 3]]),
    "hidden path": lambda _: manifest(parts=[["part-00000-" + "a" * 32 + ".arrow/../x", 0, 3]]),
    "text as part": lambda _: manifest(parts=["abc"]),
    "number as part": lambda _: manifest(parts=[[7, 0, 3]]),
    "parts no list": lambda _: manifest(parts=7),
    "texts as numbers": lambda _: manifest(parts=[["part-00000-" + "a" * 32 + ".arrow", "0", "3"]]),
    "huge rows": lambda _: manifest(parts=[["part-00000-" + "a" * 32 + ".arrow", 0, 10**30]]),
    "huge after": lambda _: manifest(after=10**40),
    "negative after": lambda _: manifest(after=-1),
    "after is true": lambda _: manifest(after=True),
    "huge blocks": lambda _: manifest(block_bytes=2**62),
    "token no text": lambda _: manifest(token=[1]),
    "kept no truth": lambda _: manifest(kept="no"),
    "a list": lambda _: [manifest()],
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", [*HOSTILE, "deep", "no JSON", "empty"])
def test_a_hostile_manifest_is_refused_and_nothing_is_touched(
    received: Path, home: Home, kind: str, verb: str
) -> None:
    texts = {"deep": "[" * 200_000, "no JSON": "\x1b]0;", "empty": ""}
    put(received, texts[kind] if kind in texts else json.dumps(HOSTILE[kind](home)))

    with pytest.raises(
        UnfinishedWriteError, match=r"not a manifest of a sink: .* remove"
    ) as raised:
        VERBS[verb](received)

    assert str(received / FOLDER / "w" / "0") in str(raised.value)
    assert "\x1b" not in str(raised.value)
    assert home.is_whole
    assert found(received) == [b"there"]
    shutil.rmtree(received / FOLDER / "w" / "0")
    assert commit(at(received), "mine", 1, [stage(received, "mine", 1)])
    assert found(received) == [b"there", *MESSAGES]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kept", [True, False])
def test_the_writer_that_a_manifest_names_is_not_believed(
    received: Path, home: Home, verb: str, *, kept: bool
) -> None:
    """It is done already, so that what belongs to it would be removed."""
    put(received, json.dumps(manifest(writer=str(home.path), batch=9, kept=kept)))

    VERBS[verb](received)

    assert home.is_whole
    assert found(received)[:1] == [b"there"]


LINKED = {
    "folder": "",
    "writer": "w",
    "batch": "w/0",
    "manifest": "w/0/manifest.json",
    "record": "w/done.json",
    "lock": "lock",
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("level", LINKED)
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe"])
def test_links_and_pipes_are_not_followed_at_any_level(
    received: Path, home: Home, level: str, kind: str, verb: str
) -> None:
    place = received / FOLDER / LINKED[level]
    place.parent.mkdir(parents=True, exist_ok=True)
    is_folder = level in {"folder", "writer", "batch"}
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "dangling":
        place.symlink_to(home.path / "new")
    else:
        place.symlink_to(home.path if is_folder else home.path / "done.json")
    if level == "record":  # of the writer that is asked for
        shutil.copytree(place.parent, received / FOLDER / "mine", symlinks=True, copy_function=copy)

    if is_passed_over(kind, level, verb):
        VERBS[verb](received)
    else:
        with pytest.raises((UnsafePathError, UnfinishedWriteError), match=str(received / FOLDER)):
            VERBS[verb](received)

    assert home.is_whole
    assert found(received)[:1] == [b"there"]


def is_passed_over(kind: str, level: str, verb: str) -> bool:
    """Whether a verb has no need to look at what was planted."""
    if level == "folder":
        return kind == "dangling" and verb in {"finish", "has"}  # nothing is there
    if level == "writer":
        return kind == "pipe" and verb in {"commit", "finish"}  # another writer's, and no folder
    if level == "lock":
        return kind == "pipe" and verb == "has"  # which takes no lock
    return (level, verb) == ("record", "finish")


def copy(source: str, to: str) -> None:
    """Copy what tests put there, pipes too."""
    if stat.S_ISFIFO(Path(source).lstat().st_mode):
        os.mkfifo(to)
    else:
        shutil.copy2(source, to, follow_symlinks=False)


@pytest.mark.parametrize("name", [".done.json.tmp", ".manifest.json.tmp", ".done.json.0.tmp"])
def test_planted_temporary_files_are_neither_written_nor_kept(
    received: Path, home: Home, name: str
) -> None:
    for folder in (received / FOLDER / "mine", received / FOLDER / "mine" / "0"):
        folder.mkdir(parents=True)
        (folder / name).symlink_to(home.path / "secret")

    VERBS["commit"](received)

    assert home.is_whole
    assert found(received) == [b"there", *MESSAGES]
    assert not [*received.rglob(name)]


def test_a_lock_that_is_another_file_too_is_not_written(received: Path, home: Home) -> None:
    (received / FOLDER).mkdir()
    os.link(home.path / "secret", received / FOLDER / "lock")

    with pytest.raises(UnsafePathError, match=r"another file too: lock=.*\(remove it\)"):
        VERBS["commit"](received)

    assert home.is_whole


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "gone", "text", "offsets"])
def test_a_staged_file_that_is_none_is_not_appended(
    received: Path, home: Home, monkeypatch: pytest.MonkeyPatch, kind: str, verb: str
) -> None:
    part = left_half_done(received, monkeypatch)
    file = received / FOLDER / "w" / "0" / part.file
    file.unlink()
    if kind == "link":
        file.symlink_to(home.path / "secret")
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "text":
        file.write_text("no Arrow")
    elif kind == "offsets":
        write_outside(file)

    with pytest.raises(UnfinishedWriteError, match=r"to give up the rest of the write, remove"):
        VERBS[verb](received)

    assert home.is_whole
    assert found(received) == [b"there"]


def write_outside(file: Path) -> None:
    """Write an Arrow file whose second message ends outside of its data."""
    schema = pa.schema([pa.field("message", pa.large_binary(), nullable=False)])
    column = pa.array([b"one", b"two"], pa.large_binary())
    with pa.ipc.new_file(str(file), schema) as arrow:
        arrow.write_batch(pa.RecordBatch.from_arrays([column], schema=schema))
    offsets, outside = struct.pack("<3q", 0, 3, 6), struct.pack("<3q", 0, 3, 2**40)
    assert file.read_bytes().count(offsets) == 1
    file.write_bytes(file.read_bytes().replace(offsets, outside))


NO_RECORDS = {
    "empty": "",
    "no batch": "{}",
    "a text": '{"batch": "7"}',
    "null": '{"batch": null}',
    "a truth": '{"batch": true}',
    "a fraction": '{"batch": 7.0}',
    "infinite": '{"batch": Infinity}',
    "negative": '{"batch": -7}',
    "huge": '{"batch": 9223372036854775808}',
    "digits without end": '{"batch": ' + "9" * 4000,
    "a list": "[1]",
    "a number": "7",
    "deep": "[" * 4000,
    "no JSON": "\x00",
    "no text": "\udcff",
}


@pytest.mark.parametrize("text", NO_RECORDS.values(), ids=NO_RECORDS)
@pytest.mark.parametrize("verb", ["commit", "has"])
def test_a_record_that_is_none_is_refused(received: Path, text: str, verb: str) -> None:
    for writer in ("mine", "w"):
        put_record(received, text, writer)

    with pytest.raises(CorruptError, match=r"not a record of a sink: file=.*done.json \("):
        VERBS[verb](received)

    assert found(received) == [b"there"]


def put_record(path: Path, text: str, writer: str = "mine") -> None:
    file = path / FOLDER / writer / "done.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, errors="surrogateescape")


def test_a_record_longer_than_one_is_refused(received: Path) -> None:
    put_record(received, '{"batch": 0, "more": "' + "x" * 5000 + '"}')

    with pytest.raises(UnsafePathError, match=r"the file is too long: file=.*done.json limit=4096"):
        VERBS["commit"](received)

    assert found(received) == [b"there"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_record_in_the_folder_of_another_user_is_refused(received: Path) -> None:
    put_record(received, '{"batch": 7}')
    os.chown(received / FOLDER / "mine", 12345, 12345)

    with pytest.raises(UnsafePathError, match=r"belongs to another user: path=.* user=12345"):
        VERBS["commit"](received)

    assert found(received) == [b"there"]


def test_a_record_of_an_older_version_counts_in_a_plain_queue(received: Path) -> None:
    put_record(received, '{"batch": 0, "token": "' + TOKEN + '", "rows": 3}')

    assert not VERBS["commit"](received)
    assert commit(at(received), "mine", 1, [stage(received, "mine", 1)])
    assert found(received) == [b"there", *MESSAGES]


def test_a_batch_is_not_dropped_silently_by_a_record_of_a_later_one(
    received: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put_record(received, '{"batch": 0}')
    VERBS["commit"](received)
    assert not caplog.records  # a repeat

    put_record(received, '{"batch": 1000000}')
    VERBS["commit"](received)

    assert "a later one is recorded as done" in caplog.text
    assert "writer=mine batch=0 done=1000000" in caplog.text
    assert found(received) == [b"there"]


@pytest.mark.parametrize("kind", ["link", "file"])
def test_another_staging_location_is_not_left_by_a_link(
    received: Path, home: Home, tmp_path: Path, kind: str
) -> None:
    location = tmp_path / "staging"
    place = Staging.of(str(received), str(location)).path
    location.mkdir()
    place.symlink_to(home.path) if kind == "link" else place.write_text("")

    with pytest.raises(UnsafePathError, match=str(place)):
        stage(received, location=location)
    with pytest.raises(UnsafePathError, match=str(place)):
        commit(at(received, location), "w", 0, [])

    assert home.is_whole


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_staging_folder_that_another_user_put_there_is_refused(
    received: Path, tmp_path: Path
) -> None:
    location = tmp_path / "shared"
    place = Staging.of(str(received), str(location)).path
    place.mkdir(parents=True)
    location.chmod(0o1777)
    os.chown(place, 12345, 12345)

    with pytest.raises(UnsafePathError, match=r"belongs to another user: path=.* user=12345"):
        stage(received, location=location)
    os.chown(place, 0, 0)
    place.chmod(0o777)
    with pytest.raises(UnsafePathError, match=r"others may write there: path=.* mode=777"):
        stage(received, location=location)
    assert [*place.iterdir()] == []


def test_a_link_to_the_queue_or_to_the_staging_location_is_the_users_own(
    received: Path, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "staging").symlink_to(tmp_path / "disk")
    (tmp_path / "link").symlink_to(received)
    part = stage(tmp_path / "link", location=tmp_path / "staging")

    assert commit(at(tmp_path / "link", tmp_path / "staging"), "w", 0, [part])
    assert found(received) == [b"there", *MESSAGES]


def test_a_copied_queue_finishes_what_was_copied_and_the_original_its_own(
    received: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_half_done(received, monkeypatch)
    copied = Path(shutil.copytree(received, tmp_path / "copy"))

    assert finish(str(copied)) == 1
    assert found(copied) == [b"there", *MESSAGES]
    assert found(received) == [b"there"]
    assert finish(str(received)) == 1
    for path in (copied, received):
        assert has(str(path), "w", 0)
        assert not commit(at(path), "w", 0, [stage(path)])
        assert found(path) == [b"there", *MESSAGES]


def test_a_copy_of_a_queue_leaves_alone_what_is_staged_elsewhere_for_the_original(
    received: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = tmp_path / "staging"
    left_half_done(received, monkeypatch, location)
    copied = Path(shutil.copytree(received, tmp_path / "copy"))

    with pytest.raises(UnfinishedWriteError, match=r"staged in another folder: .*name the folder"):
        VERBS["commit"](copied)
    with pytest.raises(UnfinishedWriteError, match=r"was removed: file=.*copy-"):
        finish(str(copied), staging_location=str(location))
    assert found(copied) == [b"there"]

    with pytest.raises(UnfinishedWriteError, match=r"staging_location=\.\.\.\)"):
        has(str(received), "w", 0)
    assert has(str(received), "w", 0, staging_location=str(location))
    assert found(received) == [b"there", *MESSAGES]
    assert [it for it in location.rglob("*") if it.is_file()] == []


def modes(folder: Path) -> set[tuple[str, str]]:
    return {
        ("folder" if it.is_dir() else it.name[:4], f"{it.stat().st_mode & 0o777:o}")
        for it in [folder, *folder.rglob("*")]
    }


@pytest.mark.parametrize("mode", [0o700, 0o750])
@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_side_files_are_as_private_as_the_queue(
    received: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: int,
    *,
    is_elsewhere: bool,
) -> None:
    received.chmod(mode)
    location = tmp_path / "staging" if is_elsewhere else None
    mask = os.umask(0)
    try:
        left_half_done(received, monkeypatch, location, writer="v")
        commit(at(received, location), "w", 0, [stage(received, "w", location=location)])
        stage(received, "u", location=location)
    finally:
        os.umask(mask)

    folders, files = f"{mode:o}", f"{mode & 0o666:o}"
    found = {("folder", folders), ("done", files), ("lock", "600")}
    parts = {("folder", folders), ("part", files)}
    assert modes(received / FOLDER) == (found if is_elsewhere else found | parts)
    if location is not None:
        assert modes(location) == parts


def test_staging_for_a_queue_that_is_not_there_makes_a_private_one(path: Path) -> None:
    commit(at(path), "w", 0, [stage(path)])

    assert f"{path.stat().st_mode & 0o777:o}" == "700"
    assert modes(path / FOLDER) == {("folder", "700"), ("done", "600"), ("lock", "600")}


def test_the_lock_of_an_earlier_version_is_closed_to_readers(received: Path) -> None:
    (received / FOLDER).mkdir(0o755)
    (received / FOLDER / "lock").touch(0o644)

    VERBS["commit"](received)

    assert (received / FOLDER / "lock").stat().st_mode & 0o777 == 0o600


def test_a_group_that_the_queue_is_not_shared_with_gets_nothing() -> None:
    access = Access(0o770, group=5)

    assert access.mode_in(5) == 0o770
    assert access.mode_in(6) == 0o700
    assert Access(0o775, group=5).mode_in(6) == 0o755
    assert (access & Access(0o750, group=5)) == (0o750, 5)
    assert (access & Access(0o777, group=6)).mode_in(5) == 0o700


class Steps:
    """A clock that rolls a queue of seconds."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        self.now_ms += 700
        return self.now_ms


@pytest.mark.parametrize("verb", ["finish", "has"])
def test_every_verb_finds_what_is_in_cycles_without_an_end(
    path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """A chunk stands in a cycle after one that a killed writer left without its end marker."""
    options: dict[str, Any] = OPTIONS | {"roll_cycle": "TEST_SECONDLY", "clock": Steps()}
    with quire.open(path, format="chronicle", **options) as queue, queue.appender() as appender:
        appender.write_bytes(b"there")
    monkeypatch.setattr(commits, "CHUNK_ROWS", 1)
    append, left = quire.JournalAppender._write_column, [2]

    def ends(appender: quire.JournalAppender, *given: Any, **named: Any) -> int | None:  # noqa: ANN401
        left[0] -= 1
        if left[0] < 0:
            raise OSError("no space left")
        return append(appender, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(quire.JournalAppender, "_write_column", ends)
        with pytest.raises(OSError, match="no space left"):
            commit(Target(str(path), options), "w", 0, [stage(path)])
    for file in sorted(path.glob("*.cq4"))[:-1]:
        drop_end(file)

    VERBS[verb](path)

    assert [it for it in everything(path) if it in MESSAGES] == MESSAGES


def drop_end(file: Path) -> None:
    """Zero the end-of-file marker of a roll file, as if its writer had been killed before."""
    content = bytearray(file.read_bytes())
    place = content.rindex(b"\x00\x00\x00\xc0")
    content[place : place + 4] = bytes(4)
    file.write_bytes(content)


def everything(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True, wait=quire.WaitOptions(eof_grace_s=0.0)) as queue:
        return payloads(queue)


def test_errors_of_side_files_are_quires_own() -> None:
    assert issubclass(UnsafePathError, QuireError)
    assert issubclass(UnfinishedWriteError, QuireError)
