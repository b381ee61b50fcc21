"""Copies of Vanilla Chronicles and Quick-Queues in use, whole whatever their writers do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import quick_golden
import quire
from any_format import open_as, open_vanilla
from cli_runs import Cli
from damages import patch
from older_queues import FORMATS, fill, found, free_entries, leave_unfinished
from paths import SUPPORT
from queues import DAY_MS, START_MS, snapshot
from quire.maintenance import copy_run
from vanilla_golden import NAMES, listing, options_of, unpack

KINDS = ("vanilla", "single", "named")
DAYS = [[b"%d of day %d" % (number, day) * 3 for number in range(300)] for day in range(3)]


@contextmanager
def opened(path: Path, kind: str, **options: object) -> Generator[Any]:
    format_name = "vanilla" if kind == "vanilla" else "quick-queue"
    with open_as(format_name, path, **options) as queue:
        yield queue


def appender(queue: Any, kind: str, name: str = "AA0") -> Any:  # noqa: ANN401
    return queue.appender(name) if kind == "named" else queue.appender()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def filled(path: Path, kind: str) -> Path:
    if kind != "named":
        return fill(path, "vanilla" if kind == "vanilla" else "quick-queue", DAYS)
    with (
        quire.quick_queue.open(path, page_bytes=4096) as queue,
        queue.appender("AA0") as one,
        queue.appender("BB1") as other,
    ):
        for day in DAYS:
            for message in day:
                one.write_bytes(message)
                other.write_bytes(message)
    return path


def check_appends(path: Path, kind: str) -> None:
    """Check that a copy takes messages after those that it holds."""
    before = found(path)
    names = ("AA0", "BB1") if kind == "named" else ("",)
    with opened(path, kind) as queue:
        for name in names:
            with appender(queue, kind, name) as writer:
                writer.write_bytes(b"goes on")
    assert [data for _, data in found(path)] == [data for _, data in before] + [b"goes on"] * len(
        names
    )
    assert quire.verify(path).findings == ()


def test_a_copy_is_the_queue(filled: Path, tmp_path: Path, kind: str) -> None:
    before = snapshot(filled)
    copied = quire.copy_queue(filled, tmp_path / "copy")
    assert snapshot(filled) == before
    messages = found(filled)
    assert found(tmp_path / "copy") == messages
    assert (copied.messages, copied.last_index) == (len(messages), messages[-1][0])
    assert quire.verify(tmp_path / "copy").findings == ()
    check_appends(tmp_path / "copy", kind)


def test_holes_stay_holes(path: Path, tmp_path: Path, kind: str) -> None:
    with opened(path, kind) as queue, appender(queue, kind) as writer:
        writer.write_bytes(b"small")
        quire.copy_queue(path, tmp_path / "copy")
    files = [it.stat() for it in (tmp_path / "copy").rglob("*") if it.is_file()]
    assert sum(it.st_size for it in files) > 64 << 20
    assert sum(it.st_blocks * 512 for it in files) < 1 << 20


def test_only_its_owner_reads_a_copy(filled: Path, tmp_path: Path) -> None:
    quire.copy_queue(filled, tmp_path / "copy")
    made = [tmp_path / "copy", *(tmp_path / "copy").rglob("*")]
    assert {it.stat().st_mode & 0o077 for it in made} == {0}


def test_named_tailers_go_on_in_the_copy(path: Path, tmp_path: Path) -> None:
    fill(path, "vanilla", DAYS)
    with quire.open(path) as queue:
        with queue.tailer("risk") as tailer:
            tailer.read_many(450)
        quire.copy_queue(path, tmp_path / "copy")
        with quire.open(tmp_path / "copy") as copy:
            assert copy.named_tailers() == queue.named_tailers()
            with queue.tailer("risk") as one, copy.tailer("risk") as other:
                assert other.read_bytes() == one.read_bytes() == DAYS[1][150]


def test_hints_locks_and_old_indexes_are_left_out(path: Path, tmp_path: Path) -> None:
    fill(path, "vanilla", DAYS)
    day = min(it for it in path.iterdir() if it.is_dir())
    for name in (".cycles", ".sink.lock", "notes.txt"):
        (path / name).write_bytes(b"x")
    (day / ".before-rebuild-index-0").write_bytes(b"x")
    quire.copy_queue(path, tmp_path / "copy")
    assert {it.name for it in (tmp_path / "copy").rglob("*") if it.is_file()} == {
        ".cycle-length",
        *(it.name for it in path.glob("*/[di]*")),
    }


@contextmanager
def writing(path: Path, kind: str, name: str) -> Generator[subprocess.Popen[str]]:
    script = "vanilla_peer.py" if kind == "vanilla" else "quick_peer.py"
    arguments = ["write", path, name[-1]] if kind == "vanilla" else [path, name]
    command = [sys.executable, "-W", "ignore", SUPPORT / script, *arguments, 10**9]
    process = subprocess.Popen([str(it) for it in command], stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_copies_while_processes_write_and_after_they_were_killed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "queue"
    names = ("-",) if kind == "single" else ("AA0", "BB1")
    if kind == "vanilla":  # so that the peers, too, write small blocks
        with quire.vanilla.VanillaQueue(
            path, index_block_bytes=4096, data_block_bytes=8192
        ) as queue:
            queue.appender().write_bytes(bytes(8))
    acknowledged: list[int] = []
    copies: list[Path] = []

    def copy() -> None:
        copies.append(tmp_path / f"copy{len(copies)}")
        copied = quire.copy_queue(path, copies[-1])
        indexes = [index for index, _ in found(copies[-1])]
        assert set(acknowledged) <= set(indexes)
        assert (copied.messages, copied.last_index) == (len(indexes), indexes[-1])

    with ExitStack() as running:
        processes = [running.enter_context(writing(path, kind, name)) for name in names]
        for _ in range(4):
            for process in processes:
                assert process.stdout is not None
                acknowledged += [int(process.stdout.readline()) for _ in range(300)]
            copy()
        for process in processes:
            assert process.stdout is not None
            process.kill()
            acknowledged += [int(line) for line in process.stdout.read().split("\n")[:-1]]
    copy()
    whole = found(path)
    for each in copies:
        messages = found(each)
        assert messages == whole[: len(messages)]
        assert quire.verify(each).findings == ()
    check_appends(copies[-1], kind)
    check_appends(copies[1], kind)


def test_messages_between_any_two_reads_do_no_harm(
    filled: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = os.pread
    monkeypatch.setattr(copy_run, "_PIECE", 4096)
    clock = quire.ManualClock(START_MS + 2 * DAY_MS)
    options = {"clock": clock} if kind == "vanilla" else {}
    with (
        opened(filled, kind, **options) as queue,
        appender(queue, kind) as writer,
    ):

        def read_and_append(file: int, length: int, position: int) -> bytes:
            data = read(file, length, position)
            writer.write_many([b"x" * 50] * 20)
            return data

        monkeypatch.setattr(os, "pread", read_and_append)
        copied = quire.copy_queue(filled, tmp_path / "copy")
        monkeypatch.undo()
        assert queue.entry_count > copied.messages
    messages = found(tmp_path / "copy")
    assert (messages, len(messages)) == (found(filled)[: len(messages)], copied.messages)
    check_appends(tmp_path / "copy", kind)


class Stopped(Exception):  # noqa: N818 - not an error
    """The copy was interrupted here."""


def stop_at(step: int) -> Callable[[str, int, int], None]:
    steps = count(1)

    def progress(_what: str, _done: int, _total: int) -> None:
        if next(steps) == step:
            raise Stopped

    return progress


def test_a_copy_that_was_stopped_anywhere_is_resumed(
    filled: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_run, "_PIECE", 8192)
    monkeypatch.setattr(copy_run, "_BETWEEN_NOTES", 16_384)
    clock = quire.ManualClock(START_MS + 2 * DAY_MS)
    options = {"clock": clock} if kind == "vanilla" else {}
    step = 0
    for step in count(1, 6):
        copy = tmp_path / f"copy{step}"
        try:
            quire.copy_queue(filled, copy, progress=stop_at(step))
        except Stopped:
            assert not copy.exists()
        else:
            break
        with opened(filled, kind, **options) as queue, appender(queue, kind) as writer:
            writer.write_bytes(b"more")
        quire.copy_queue(filled, copy)
        assert found(copy) == found(filled)
        assert quire.verify(copy).findings == ()
        assert not [it for it in tmp_path.iterdir() if it.name.startswith(".")]
        shutil.rmtree(copy)
    assert step > 5


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_pending_entry_is_complete_in_the_copy(
    path: Path, tmp_path: Path, *, is_alive: bool
) -> None:
    with ExitStack() as alive:
        queue = alive.enter_context(quire.quick_queue.open(path, page_bytes=4096))
        one, other = (alive.enter_context(queue.appender(name)) for name in ("AA0", "BB1"))
        other.write_bytes(b"before")
        one.write_bytes(b"pending")
        leave_unfinished(path, 1)
        patch(path / "0.qmx", 16, bytes(8))  # the address, too
        other.write_bytes(b"after")
        if not is_alive:
            alive.close()
        quire.copy_queue(path, tmp_path / "copy")
    assert [data for _, data in found(tmp_path / "copy")] == [b"before", b"pending", b"after"]
    assert quire.verify(tmp_path / "copy").findings == ()
    check_appends(tmp_path / "copy", "named")


def test_an_entry_that_nothing_proves_is_skipped_in_the_copy_too(
    path: Path, tmp_path: Path
) -> None:
    with quire.quick_queue.open(path, page_bytes=4096) as queue:
        for number in range(3):
            with queue.appender("AA0") as appender_:
                appender_.write_bytes(b"message %d" % number)
    leave_unfinished(path, 1, proven=False)
    expected = found(path)
    assert len(expected) == 2
    copied = quire.copy_queue(path, tmp_path / "copy")
    assert (found(tmp_path / "copy"), copied.messages) == (expected, 2)
    with opened(tmp_path / "copy", "named") as copy, copy.appender("AA0") as writer:
        writer.write_bytes(b"goes on")
    assert len(found(tmp_path / "copy")) == 3


def test_a_message_without_an_entry_is_left_out(path: Path, tmp_path: Path) -> None:
    fill(path, "vanilla", DAYS)
    free_entries(path, 299, 300)
    expected = found(path)
    quire.copy_queue(path, tmp_path / "copy")
    assert found(tmp_path / "copy") == expected
    assert quire.verify(tmp_path / "copy").findings == ()


def test_empty_queues(path: Path, tmp_path: Path, kind: str) -> None:
    if kind == "vanilla":
        with quire.open(path, format="vanilla") as queue:
            queue.appender().write_bytes(b"only")
        free_entries(path, 0, 1)
    else:
        with opened(path, kind) as queue:
            appender(queue, kind).close()
    copied = quire.copy_queue(path, tmp_path / "copy")
    assert (copied.messages, copied.last_index, found(tmp_path / "copy")) == (0, None, [])
    with quire.open(tmp_path / "copy") as copy:
        assert isinstance(
            copy, quire.vanilla.VanillaQueue if kind == "vanilla" else quire.quick_queue.QuickQueue
        )
        with appender(copy, kind) as writer:
            writer.write_bytes(b"first")
    assert [data for _, data in found(tmp_path / "copy")] == [b"first"]


def lose_data(path: Path) -> None:
    min(path.rglob("data-*-0" if any(path.glob("*/index-0")) else "0.qd")).unlink()


def test_damage_is_named(filled: Path, tmp_path: Path) -> None:
    lose_data(filled)
    with pytest.raises(quire.errors.CorruptError, match=r"file=.*queue/.*(index-0|0\.qd)"):
        quire.copy_queue(filled, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("begun", [0, 1, 2])
def test_cycles_that_go_meanwhile_are_left_out(path: Path, tmp_path: Path, begun: int) -> None:
    fill(path, "vanilla", DAYS)
    whole = found(path)
    days = sorted(it for it in path.iterdir() if it.is_dir())
    seen = set[str]()

    def progress(what: str, _done: int, _total: int) -> None:
        seen.update(day.name for day in days if day.name in what)
        if len(seen) >= begun and days[0].exists():
            for day in days[:2]:  # as retention does
                shutil.rmtree(day)

    copied = quire.copy_queue(path, tmp_path / "copy", progress=progress)
    messages = found(tmp_path / "copy")
    assert messages == whole[-copied.messages :]
    assert len(messages) in {300, 900}  # all of them where they were read before
    assert sorted(it.name for it in (tmp_path / "copy").glob("[0-9]*")) == [
        day.name for day in days[-len(messages) // 300 :]
    ]


def test_a_data_file_that_was_removed_is_named(path: Path, tmp_path: Path) -> None:
    fill(path, "vanilla", DAYS)

    def progress(_what: str, _done: int, _total: int) -> None:
        for data in path.glob("*/data-*"):
            data.unlink()

    with pytest.raises(quire.errors.CorruptError, match="was removed while the queue was copied"):
        quire.copy_queue(path, tmp_path / "copy", progress=progress)


def test_lost_entries_are_not_passed_over(path: Path, tmp_path: Path) -> None:
    fill(path, "vanilla", DAYS)
    free_entries(path, 290, 300)
    with pytest.raises(quire.errors.CorruptError, match=r"records have no entry.*10 records"):
        quire.copy_queue(path, tmp_path / "copy")
    free_entries(path, 100, 101)
    with pytest.raises(quire.errors.CorruptError, match=r"records have no entry|free-entries"):
        quire.copy_queue(path, tmp_path / "copy")
    quire.repair(path, dry_run=False)
    quire.copy_queue(path, tmp_path / "copy")
    assert len(found(tmp_path / "copy")) == 900


@pytest.mark.parametrize(
    ("format_name", "name"),
    [
        ("vanilla", "*/index-0"),
        ("vanilla", "*/data-*-0"),
        ("vanilla", ".tailer-risk"),
        ("quick-queue", "0.qd"),
        ("quick-queue", "0.qx"),
    ],
)
def test_links_are_not_followed(path: Path, tmp_path: Path, format_name: str, name: str) -> None:
    fill(path, format_name, DAYS)
    if format_name == "vanilla":
        with quire.open(path) as queue:
            queue.tailer("risk").read_many(3)
    (victim, *_) = path.glob(name)
    victim.rename(tmp_path / "secret")
    victim.symlink_to(tmp_path / "secret")
    with pytest.raises((quire.QuireError, OSError)):
        quire.copy_queue(path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_cycles_of_unknown_names_are_refused(path: Path, tmp_path: Path) -> None:
    with open_vanilla(path, cycle_format="dd-MM-yyyy") as queue:
        queue.appender().write_bytes(b"x")
    with pytest.raises(quire.errors.UnsupportedError, match="no known pattern"):
        quire.copy_queue(path, tmp_path / "copy")


@pytest.mark.parametrize("name", NAMES)
def test_vanilla_chronicles_of_java_are_copied(name: str, tmp_path: Path) -> None:
    source = unpack(name, tmp_path / "source")
    quire.copy_queue(source, tmp_path / "copy")
    assert found(tmp_path / "copy") == found(source)
    cycles = options_of(listing(name))
    with open_vanilla(tmp_path / "copy", **cycles) as copy, copy.appender() as writer:
        writer.write_bytes(b"goes on")


def test_quick_queues_of_java_are_copied(tmp_path: Path) -> None:
    quick_golden.unpack(tmp_path)
    for name in quick_golden.WITH_FILES:
        quire.copy_queue(tmp_path / name, tmp_path / f"copy of {name}")
        assert found(tmp_path / f"copy of {name}") == found(tmp_path / name)
        assert quire.verify(tmp_path / f"copy of {name}").findings == ()


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_verb(cli: Cli, path: Path, tmp_path: Path, format_name: str) -> None:
    fill(path, format_name, DAYS)
    last = found(path)[-1][0]
    line = cli.ok("copy", path, tmp_path / "copy").out
    assert line.startswith("messages=900 files=")
    assert line.endswith(f" last={last:#x}\n")
    assert found(tmp_path / "copy") == found(path)
    ran = cli("copy", path, tmp_path / "copy")
    assert (ran.code, ran.err) == (
        1,
        f"quire: the destination is not empty: dest={tmp_path / 'copy'}\n",
    )
