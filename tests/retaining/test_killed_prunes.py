"""A run of retention that is killed at any step loses nothing, and the next one finishes it."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Literal, cast

import pytest

import quire
from queues import DAY_MS, START_MS, exit_code, fork, payloads, problems_of
from quire.retaining import actions

DAYS = 4
FIRST = 19737
STEPS = ("unlink", "rename", "fsync", "truncate", "ftruncate", "open", "mkdir", "pwrite")
LOCK = "quire.retention.lock"


def die_before(last: int, *, is_apart: bool) -> None:
    """Have this process killed before the n-th call that changes the disk or the table."""
    steps = count(1)

    def counted(work: Callable[..., Any]) -> Callable[..., object]:
        def step(*values: object, **options: object) -> object:
            if next(steps) == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return work(*values, **options)

        return step

    rename = os.rename

    def within_a_folder(*values: Any, **folders: Any) -> None:  # noqa: ANN401 - as it is called
        if folders.get("src_dir_fd") != folders.get("dst_dir_fd"):
            raise OSError(errno.EXDEV, "another file system")
        rename(*values, **folders)

    if is_apart:
        os.rename = within_a_folder
    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    for name in ("_announce_removal", "_announce_compression", "refresh"):
        setattr(quire.JournalQueue, name, counted(getattr(quire.JournalQueue, name)))
    for name in ("compress_roll_file", "is_compressed_copy"):
        setattr(actions, name, counted(getattr(actions, name)))


def killed(
    step: int,
    path: Path,
    dest: Path | None,
    *,
    is_apart: bool = False,
    action: Literal["delete", "move", "compress"] = "delete",
) -> bool:
    """Run retention in a child; return whether it was killed before this step."""

    def run() -> None:
        die_before(step, is_apart=is_apart)
        quire.prune(path, max_cycles=2, action=action, dest=dest)

    code = exit_code(fork(run))
    assert code in {0, -signal.SIGKILL}
    return code != 0


def write_days(path: Path) -> quire.ManualClock:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="FAST_DAILY", clock=clock, block_bytes=2**16) as queue:
        appender = queue.appender()
        for day in range(DAYS):
            appender.write_bytes(b"%d" % day)
            clock.advance(DAY_MS)
    return clock


def days_in(path: Path) -> list[int]:
    if not [*path.glob("*.cq4"), *path.glob("*.cq4.zst")]:
        return []
    with quire.open(path, read_only=True) as queue:
        return [int(it) for it in payloads(queue)]


@pytest.mark.slow
@pytest.mark.parametrize("action", ["delete", "rename", "copy"])
def test_nothing_is_lost_at_any_step(
    path: Path, tmp_path: Path, action: Literal["delete", "rename", "copy"]
) -> None:
    clock = write_days(path)
    dest = None if action == "delete" else tmp_path / "old"
    whole = path.rename(tmp_path / "whole")
    step, was_killed = 0, True
    while was_killed:
        step += 1
        for old in (path, tmp_path / "old"):
            shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(whole, path)
        was_killed = killed(
            step, path, dest, is_apart=action == "copy", action="move" if dest else "delete"
        )

        left = days_in(path)
        assert left == [*range(left[0], DAYS)], "a gap"
        if dest is not None:
            # By its files: one that was announced and not moved yet is hidden until the next run.
            found = {it.name for place in (path, dest) for it in place.glob("*.cq4")}
            assert found == {it.name for it in whole.glob("*.cq4")}, "a cycle is in no place"
            assert days_in(dest) == [*range(len([*dest.glob("*.cq4")]))]
        with quire.open(path, clock=clock, block_bytes=2**16) as queue:  # others go on meanwhile
            queue.appender().write_bytes(b"4")
        quire.prune(path, max_cycles=3, action="move" if dest else "delete", dest=dest)
        assert days_in(path) == [2, 3, 4]
        assert problems_of(path) == []
        if dest is not None:
            names = ["20240115F.cq4", "20240116F.cq4"]
            assert sorted(it.name for it in dest.iterdir()) == [*names, LOCK]
            for name in names:
                assert (dest / name).read_bytes() == (whole / name).read_bytes()
    assert step > (20 if dest else 10)


def killed_compressions(path: Path, whole: Path) -> Iterator[int]:
    """Yield each step before which compressing was killed, and at last that of a whole run."""
    write_days(whole)
    for step in count(1):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        was_killed = killed(step, path, None, action="compress")
        yield step
        if not was_killed:
            assert step > 15
            return


@pytest.mark.slow
def test_a_cycle_is_counted_once_at_any_step_of_compressing(path: Path, tmp_path: Path) -> None:
    for _ in killed_compressions(path, tmp_path / "whole"):
        assert days_in(path) == [*range(DAYS)]
        clock = quire.ManualClock(START_MS + DAYS * DAY_MS)
        with quire.open(path, clock=clock, block_bytes=2**16) as queue:  # others go on meanwhile
            assert (queue.entry_count, len(queue.cycles)) == (DAYS, DAYS)
            queue.appender().write_bytes(b"4")
            assert queue.first_index == FIRST << 32
        quire.prune(path, max_cycles=3, action="compress")
        assert days_in(path) == [*range(DAYS + 1)]
        names = [f"2024011{day}F.cq4" for day in range(5, 10)]
        compressed = [f"{name}.zst" for name in names[:2]]
        assert sorted(it.name for it in path.iterdir()) == sorted(
            [*compressed, *names[2:], "metadata.cq4t", LOCK]
        )
        assert problems_of(path) == []


@pytest.mark.slow
def test_what_is_left_of_compressing_goes_with_its_cycle(path: Path, tmp_path: Path) -> None:
    for step in killed_compressions(path, tmp_path / "whole"):
        if step % 2:
            killed(step // 2, path, None)  # a removal, which is killed too
        quire.prune(path, max_cycles=2)
        assert days_in(path) == [2, 3]
        assert len([*path.glob("*.cq4*")]) == 3  # with the table
        assert problems_of(path) == []


def inode_of(file: int) -> int:
    return os.fstat(file).st_ino


@pytest.mark.parametrize("action", ["move", "compress"])
def test_what_replaces_a_file_is_durable_before_it_goes(
    path: Path,
    tmp_path: Path,
    action: Literal["move", "compress"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its bytes before its name, its name before the removal: whenever the power is cut."""
    write_days(path)
    place, end = (tmp_path / "aside", "") if action == "move" else (path, ".zst")
    place.mkdir(exist_ok=True)
    steps: list[tuple[str, object]] = []

    def note(name: str, of: Callable[..., object]) -> None:
        work = getattr(os, name)

        def noted(*values: Any, **options: Any) -> object:  # noqa: ANN401 - as it is called
            steps.append((name, of(*values)))
            return work(*values, **options)

        monkeypatch.setattr(os, name, noted)

    def rename(*values: Any, **folders: Any) -> None:  # noqa: ANN401 - as it is called
        if folders.get("src_dir_fd") != folders.get("dst_dir_fd"):
            raise OSError(errno.EXDEV, "another file system")
        steps.append(("rename", values))
        os_rename(*values, **folders)

    def compress(source: str, target: str, check: Callable[[], object]) -> None:
        compress_roll_file(source, target, check)  # which returns when it is synced
        steps.append(("fsync", os.stat(target).st_ino))  # noqa: PTH116

    os_rename, compress_roll_file = os.rename, vars(actions)["compress_roll_file"]
    note("fsync", inode_of)
    note("unlink", os.fspath)
    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(actions, "compress_roll_file", compress)
    quire.prune(path, max_cycles=2, action=action, dest=place if action == "move" else None)

    replaced = [it for it in steps if it[0] == "rename" and it[1][1].endswith(f".cq4{end}")]  # type: ignore[index]
    assert len(replaced) == 2
    for step in replaced:
        _, name = cast("tuple[str, str]", step[1])
        own = (place / name).stat().st_ino
        wanted = [("fsync", own), step, ("fsync", place.stat().st_ino)]
        wanted.append(("unlink", name.removesuffix(".zst")))
        assert is_part(wanted, steps), steps


def is_part(wanted: list[tuple[str, object]], steps: list[tuple[str, object]]) -> bool:
    """Whether all *wanted* are among the steps, in this order."""
    rest = iter(steps)
    return all(step in rest for step in wanted)
