"""Archives that came from somebody else, or lie where others are: no links, nothing public."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quire
from queues import START_MS
from quire import archive as archives
from quire.errors import ArchiveError, UnsafePathError

DAY_MS = 86_400_000


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What a user has beside it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").write_text("precious")
    return tmp_path / "home"


def fill(path: Path, days: int = 3) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock) as queue:
        for _ in range(days):
            with queue.appender() as appender:
                appender.write_text("message")
            clock.advance(DAY_MS)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    fill(tmp_path / "orders")
    return tmp_path / "orders"


def is_whole(home: Path) -> bool:
    return [(it.name, it.read_text()) for it in home.iterdir()] == [("file", "precious")]


def problems(run: Callable[[], Any]) -> str:
    """What a run or a check tells that it could not do."""
    try:
        return " ".join(each.reason for each in run().failed)
    except (ArchiveError, UnsafePathError) as error:
        return str(error)


@pytest.mark.parametrize("kind", ["link", "pipe"])
@pytest.mark.parametrize("name", ["_quire", "_quire/lock", "_quire/orders.json", "topic=orders"])
def test_links_and_pipes_are_not_followed_at_any_level(
    orders: Path, dest: Path, home: Path, name: str, kind: str
) -> None:
    place = dest / name
    place.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(home if name in {"_quire", "topic=orders"} else home / "file")

    found = problems(lambda: archives.archive(orders, dest, delete=True))

    assert str(place) in found
    assert is_whole(home)
    assert len(list(orders.glob("*.cq4"))) == 3


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_an_archived_file_that_is_a_link_is_not_read(
    orders: Path, dest: Path, home: Path, kind: str
) -> None:
    archives.archive(orders, dest)
    file = min(dest.rglob("*.parquet"))
    moved = file.rename(home / "moved.parquet")
    file.symlink_to(moved) if kind == "link" else os.mkfifo(file)
    stray = file.with_name("stray.parquet")
    stray.symlink_to(moved) if kind == "link" else os.mkfifo(stray)

    for run in (
        lambda: archives.verify(dest),
        lambda: archives.archive(orders, dest),
        lambda: archives.archive(orders, dest, delete=True),
    ):
        assert str(file) in problems(run)
    assert str(stray) in problems(lambda: archives.verify(dest))
    assert (orders / "20240115T4.cq4").exists()


@pytest.mark.parametrize(
    "file", ["/etc/passwd", "../x.parquet", "..", "", ".x.parquet", 7, None, "a\0.parquet"]
)
def test_a_list_that_names_other_files_is_refused(orders: Path, dest: Path, file: object) -> None:
    archives.archive(orders, dest)
    listed = dest / "_quire" / "orders.json"
    content = json.loads(listed.read_text())
    content["cycles"][0]["file"] = file
    listed.write_text(json.dumps(content))

    assert "damaged manifest: file=" in problems(lambda: archives.verify(dest))
    assert "damaged manifest: file=" in problems(
        lambda: archives.archive(orders, dest, delete=True)
    )
    assert len(list(orders.glob("*.cq4"))) == 3


@pytest.mark.parametrize(
    "change", [{"queue": 7}, {"facts": 1, "cycles": 7}, {"cycles": [[1]]}, {"decodings": [7]}]
)
def test_a_list_of_other_things_is_refused(
    orders: Path, dest: Path, change: dict[str, object]
) -> None:
    archives.archive(orders, dest)
    listed = dest / "_quire" / "orders.json"
    listed.write_text(json.dumps(json.loads(listed.read_text()) | change))

    assert "damaged manifest: file=" in problems(lambda: archives.verify(dest))


def test_planted_temporary_files_are_neither_written_nor_kept(
    orders: Path, dest: Path, home: Path
) -> None:
    planted = [dest / "topic=orders" / ".20240115T4.parquet.tmp", dest / "_quire/.orders.json.tmp"]
    for place in planted:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(home / "file")

    assert archives.archive(orders, dest).entries
    assert not archives.verify(dest).failed
    assert is_whole(home)
    assert not any(it.is_symlink() for it in planted)


def test_a_lock_that_is_another_file_too_is_not_written(
    orders: Path, dest: Path, home: Path
) -> None:
    (dest / "_quire").mkdir(parents=True)
    os.link(home / "file", dest / "_quire" / "lock")

    assert "another file too: lock=" in problems(lambda: archives.archive(orders, dest))
    assert is_whole(home)


def modes(folder: Path) -> set[tuple[str, str]]:
    return {
        (
            "folder" if it.is_dir() else "lock" if it.name == "lock" else "file",
            f"{it.stat().st_mode & 0o777:o}",
        )
        for it in [folder, *folder.rglob("*")]
    }


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755])
@pytest.mark.parametrize("is_there", [False, True])
def test_an_archive_is_as_private_as_its_queue(
    orders: Path, dest: Path, mode: int, *, is_there: bool
) -> None:
    orders.chmod(mode)
    if is_there:
        dest.mkdir(0o755)
    mask = os.umask(0)
    try:
        archives.archive(orders, dest)
        fill(orders, 5)
        archives.archive(orders, dest)
    finally:
        os.umask(mask)

    folders, files = f"{mode:o}", f"{mode & 0o666:o}"
    expected = {("folder", folders), ("file", files), ("lock", "600")}
    assert modes(dest) == expected | ({("folder", "755")} if is_there else set())


def test_of_several_queues_the_most_private_decides_who_sees_the_lists(
    tmp_path: Path, dest: Path
) -> None:
    for name, mode in (("open", 0o755), ("closed", 0o700)):
        fill(tmp_path / "queues" / name)
        (tmp_path / "queues" / name).chmod(mode)
    (tmp_path / "queues").chmod(0o755)

    archives.archive(tmp_path / "queues", dest)

    found = {it.name: f"{it.stat().st_mode & 0o777:o}" for it in dest.iterdir()}
    assert found == {"_quire": "700", "topic=closed": "700", "topic=open": "755"}


def test_the_lock_of_an_earlier_version_is_closed_to_readers(orders: Path, dest: Path) -> None:
    (dest / "_quire").mkdir(parents=True, mode=0o755)
    (dest / "_quire" / "lock").touch(0o644)

    archives.archive(orders, dest)

    assert f"{(dest / '_quire' / 'lock').stat().st_mode & 0o777:o}" == "600"
