"""Files with a second hard link are not written through, and permissions are those asked for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import quire
from any_format import open_as
from cli_runs import Cli
from pause_points import Party


def linked(source: Path, target: Path) -> dict[Path, bytes]:
    """Copy a directory as ``cp -al`` does; return what its files hold."""
    shutil.copytree(source, target, copy_function=os.link)
    return {it: it.read_bytes() for it in target.rglob("*") if it.is_file()}


def append(path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_bytes(b"more")


def name_a_tailer(path: Path) -> None:
    with quire.open(path) as queue, queue.tailer("reader") as tailer:
        tailer.read_bytes()


def take_from_a_group(path: Path) -> None:
    with quire.open(path) as queue, queue.group("workers").consumer("a") as consumer:
        consumer.read_many(1)


def put_into_the_ring(path: Path) -> None:
    with quire.open(path, buffer_mode="async") as queue, queue.appender() as appender:
        appender.write_bytes(b"more")


ACTIONS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "append": ("chronicle", append),
    "vanilla": ("vanilla", append),
    "quick-queue": ("quick-queue", append),
    "named tailer": ("chronicle", name_a_tailer),
    "group": ("chronicle", take_from_a_group),
    "ring": ("chronicle", put_into_the_ring),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_is_written_through_a_hard_link(path: Path, tmp_path: Path, action: str) -> None:
    kind, act = ACTIONS[action]
    small = {
        "quick-queue": {"page_bytes": 2**16},
        "vanilla": {"index_block_bytes": 2**16, "data_block_bytes": 2**16},
    }
    with open_as(kind, path, **small.get(kind, {})) as queue:
        queue.appender().write_bytes(b"a")
    act(path)
    before = linked(path, tmp_path / "backup")
    with pytest.raises(quire.errors.UnsafePathError, match=r"quire copy\s+makes backups") as raised:
        act(path)
    assert "names=2" in str(raised.value)
    assert {it: it.read_bytes() for it in before} == before

    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert tailer.read_bytes() == b"a"  # readers change nothing
    for file in [it for it in path.rglob("*") if it.is_file()]:  # the remedy
        shutil.copy2(file, tmp_path / "new")
        (tmp_path / "new").rename(file)
    act(path)
    assert {it: it.read_bytes() for it in before} == before


def test_a_command_names_the_remedy(path: Path, tmp_path: Path, cli: Cli) -> None:
    append(path)
    linked(path, tmp_path / "backup")
    (tmp_path / "lines").write_text("more\n")
    ran = cli("write", path, tmp_path / "lines", "--text")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "cp -p FILE NEW && mv NEW FILE" in ran.err


MAKERS = {
    "group": "queue.group('workers').consumer('a')",
    "ring": "quire.open(sys.argv[1], buffer_mode='async')",
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_file_being_made_never_has_two_names(path: Path, kind: str, side: str) -> None:
    script = f"queue = quire.open(sys.argv[1])\narm()\nmade = {MAKERS[kind]}\nmade.close()\n"
    append(path)
    with Party(script, path, point=f"{kind}.file.publish", side=side) as party:  # type: ignore[arg-type]
        party.wait_until_stopped()
        assert all(it.stat().st_nlink == 1 for it in path.iterdir())
        party.kill()
    if kind == "ring":
        put_into_the_ring(path)
    else:
        take_from_a_group(path)


def test_a_name_that_an_earlier_version_left_is_removed(path: Path) -> None:
    put_into_the_ring(path)
    os.link(path / "async.ring", path / "async.ring.4711")
    put_into_the_ring(path)
    assert not (path / "async.ring.4711").exists()


@contextmanager
def umask(mask: int) -> Generator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0])
@pytest.mark.parametrize("kind", ["chronicle", "vanilla", "quick-queue"])
def test_permissions_are_those_asked_for_whatever_the_umask(
    path: Path, kind: str, mask: int
) -> None:
    with umask(mask):
        with quire.open(path, format=kind, file_mode=0o660) as queue:  # type: ignore[call-overload]
            queue.appender().write_bytes(b"a")
        if kind == "chronicle":
            with quire.open(path, file_mode=0o660, buffer_mode="async", metrics=True) as queue:
                queue.appender().write_bytes(b"b")
                queue.group("workers").consumer("a").close()
    modes = {it.name: it.stat().st_mode & 0o777 for it in path.rglob("*")}
    assert {mode for name, mode in modes.items() if (path / name).is_file()} <= {0o660}, modes
    assert path.stat().st_mode & 0o777 == 0o770


def test_files_of_a_shared_directory_stay_the_groups(path: Path) -> None:
    path.mkdir()
    path.chmod(0o2770)
    with umask(0o022), quire.open(path, file_mode=0o660) as queue:
        queue.appender().write_bytes(b"a")
    assert path.stat().st_mode & 0o7777 == 0o2770
