"""What a conversion refuses: directories, options, and results that others changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import quire
from converted import INTO, Into, fill, messages
from quire._common.durable import locked_directory

DAYS = [[b"one", b"two"], [b"three"]]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    fill(tmp_path / "source", "vanilla", DAYS)
    return tmp_path / "source"


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "dest"


def test_a_directory_that_no_conversion_made_is_refused_and_stays(source: Path, dest: Path) -> None:
    dest.mkdir()
    for name in ("mine", ".mine.tmp"):
        (dest / name).write_text("mine")
    for into in INTO:
        with pytest.raises(quire.errors.ConvertError, match="not the result of a conversion"):
            quire.convert(source, dest, into=into)
    assert sorted(it.name for it in dest.iterdir()) == [".mine.tmp", "mine"]


def test_a_queue_that_no_conversion_made_is_refused(source: Path, dest: Path) -> None:
    fill(dest, "chronicle", DAYS)
    with pytest.raises(quire.errors.ConvertError, match="not the result of a conversion"):
        quire.convert(source, dest, into="chronicle")


def test_a_file_is_refused(source: Path, dest: Path) -> None:
    dest.write_text("mine")
    with pytest.raises(NotADirectoryError):
        quire.convert(source, dest, into="chronicle")
    assert dest.read_text() == "mine"


def test_an_empty_directory_is_filled(source: Path, dest: Path) -> None:
    dest.mkdir()
    assert quire.convert(source, dest, into="chronicle").messages == 3


@pytest.mark.parametrize("place", [".", "20240115", "inside/new"])
def test_a_queue_is_not_converted_into_itself(source: Path, place: str) -> None:
    with pytest.raises(ValueError, match="into its own directory"):
        quire.convert(source, source / place, into="chronicle")


@pytest.mark.parametrize("content", [b"", b"[]\n", b"{\n", b"\xff\n", b'{"convert": 2}\n'])
def test_a_map_that_is_none_is_refused(source: Path, dest: Path, content: bytes) -> None:
    quire.convert(source, dest, into="chronicle")
    (dest / "_indexes.jsonl").write_bytes(content)
    with pytest.raises(quire.errors.ConvertError, match="not the map of a conversion"):
        quire.convert(source, dest, into="chronicle")
    with pytest.raises(quire.errors.ConvertError, match="not the map of a conversion"):
        quire.converting.IndexMap(dest)


def test_a_map_with_lines_of_other_types_is_refused(source: Path, dest: Path) -> None:
    quire.convert(source, dest, into="chronicle")
    with (dest / "_indexes.jsonl").open("a") as file:
        file.write('{"source": 1, "dest": [], "count": "x"}\n')
    with pytest.raises(quire.errors.ConvertError, match="not the map of a conversion"):
        quire.converting.IndexMap(dest)


def test_a_map_that_is_a_link_or_a_pipe_is_not_followed(source: Path, dest: Path) -> None:
    quire.convert(source, dest, into="chronicle")
    index_map = dest / "_indexes.jsonl"
    elsewhere = dest.with_name("elsewhere")
    index_map.rename(elsewhere)
    index_map.symlink_to(elsewhere)
    with pytest.raises(quire.errors.UnsafePathError):
        quire.convert(source, dest, into="chronicle")
    index_map.unlink()
    os.mkfifo(index_map)
    with pytest.raises(quire.errors.UnsafePathError):
        quire.convert(source, dest, into="chronicle")


@pytest.mark.parametrize(
    "other", [{"into": "vanilla"}, {"roll_cycle": "FAST_HOURLY"}, {"block_bytes": 1 << 20}]
)
def test_a_conversion_goes_on_with_the_options_that_it_began_with(
    source: Path, dest: Path, other: dict[str, Any]
) -> None:
    quire.convert(source, dest, into="chronicle")
    options: dict[str, Any] = {"into": "chronicle", **other}
    with pytest.raises(quire.errors.ConvertError, match="began with other options"):
        quire.convert(source, dest, **options)


def test_options_that_failed_can_be_mended(source: Path, dest: Path) -> None:
    with pytest.raises(ValueError, match="roll cycle"):
        quire.convert(source, dest, into="chronicle", roll_cycle="NONE_SUCH")
    assert quire.convert(source, dest, into="chronicle").messages == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"into": "kafka"},
        {"into": "quick-queue", "roll_cycle": "FAST_DAILY"},
        {"into": "parquet", "roll_cycle": "FAST_DAILY"},
        {"into": "parquet", "block_bytes": 65_536},
        {"into": "chronicle", "block_bytes": 0},
    ],
)
def test_options_that_do_not_go_together_are_refused(
    source: Path, dest: Path, wrong: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"into|block_bytes"):
        quire.convert(source, dest, **wrong)
    assert not dest.exists()


@pytest.mark.parametrize("into", ["chronicle", "vanilla", "quick-queue"])
def test_a_result_that_others_wrote_to_is_noticed(source: Path, dest: Path, into: Into) -> None:
    quire.convert(source, dest, into=into)
    with quire.open(dest) as queue:
        queue.appender().write_bytes(b"a stranger")
    with pytest.raises(quire.errors.ConvertError, match="more messages than the source"):
        quire.convert(source, dest, into=into)
    with quire.open(source) as queue:
        queue.appender().write_bytes(b"a friend")
    with pytest.raises(quire.errors.ConvertError, match="another message: index="):
        quire.convert(source, dest, into=into)


def test_another_source_is_noticed(source: Path, dest: Path) -> None:
    quire.convert(source, dest, into="parquet")
    other = source.with_name("other")
    fill(other, "vanilla", [[b"one"], [b"two", b"three"]])
    with pytest.raises(quire.errors.ConvertError, match="other indexes"):
        quire.convert(other, dest, into="parquet")


def test_a_damaged_parquet_file_is_named(source: Path, dest: Path) -> None:
    quire.convert(source, dest, into="parquet")
    part = dest / "part-000000.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(quire.errors.ConvertError, match=r"cannot be read: file=.*part-000000"):
        quire.convert(source, dest, into="parquet")


def test_one_conversion_at_a_time(source: Path, dest: Path) -> None:
    dest.mkdir()
    with locked_directory(dest), pytest.raises(quire.errors.ConvertError, match="another process"):
        quire.convert(source, dest, into="chronicle")


def test_a_writer_that_appends_to_an_earlier_cycle_is_noticed(source: Path, dest: Path) -> None:
    """The result, made before, has newer messages in this place."""
    before = messages(source)
    quire.convert(source, dest, into="chronicle")
    with quire.open(source, clock=quire.ManualClock(1_705_314_600_000)) as queue:
        queue.appender().write_bytes(b"late")
    with pytest.raises(quire.errors.ConvertError, match="another message"):
        quire.convert(source, dest, into="chronicle")
    assert len(messages(source)) == len(before) + 1


def test_a_missing_source_makes_nothing(dest: Path) -> None:
    with pytest.raises(quire.errors.NotAQueueError):
        quire.convert(dest.with_name("nowhere"), dest, into="chronicle")
    assert not dest.exists()


def test_a_map_that_is_not_there_is_an_error(source: Path) -> None:
    with pytest.raises(quire.errors.ConvertError, match="no map of a conversion"):
        quire.converting.IndexMap(source)


@pytest.mark.parametrize("into", INTO)
def test_a_source_that_was_pruned_since_is_refused_and_the_result_stays(
    tmp_path: Path, into: Into
) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    fill(source, "chronicle", [[b"%d.%d" % (day, it) for it in range(20)] for day in range(3)])
    quire.convert(source, dest, into=into)
    before = messages(dest)
    assert len(quire.prune(source, max_cycles=2).removed) == 1
    with quire.open(source) as queue:
        queue.appender().write_bytes(b"new")
    with pytest.raises(quire.errors.ConvertError):
        quire.convert(source, dest, into=into)
    assert messages(dest) == before
