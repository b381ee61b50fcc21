"""`quire.read_merged`: several queues of any format in the order of a key."""

from __future__ import annotations

import random
from heapq import merge
from itertools import islice
from pathlib import Path

import pytest

import quire


def number_of(excerpt: quire.quick_queue.QuickExcerpt | quire.Excerpt) -> int:
    return int(excerpt.data.split()[0])


def filled(path: Path, payloads: list[bytes]) -> quire.quick_queue.QuickQueue:
    queue = quire.quick_queue.open(path, page_bytes=4096)
    queue.appender().write_many(payloads)
    return queue


def test_it_is_the_merge_of_the_standard_library(tmp_path: Path) -> None:
    rng = random.Random(7)  # noqa: S311 - to be repeated
    lists = [
        [b"%d %d" % (number, place) for number in sorted(rng.choices(range(50), k=count))]
        for place, count in enumerate((100, 0, 1, 37))
    ]
    queues = [filled(tmp_path / str(place), found) for place, found in enumerate(lists)]
    found = [excerpt.data for excerpt in quire.read_merged(queues, key=number_of)]
    assert found == [*merge(*lists, key=lambda payload: int(payload.split()[0]))]
    assert [*quire.read_merged([], key=number_of)] == []


def test_formats_and_tailers_mix(tmp_path: Path) -> None:
    journal = quire.open(tmp_path / "journal")
    journal.appender().write_many([b"0", b"2", b"4"])
    quick = filled(tmp_path / "quick", [b"0", b"1", b"3", b"5"])
    tailer = quick.tailer(start=16)
    found = [number_of(excerpt) for excerpt in quire.read_merged([journal, tailer], key=number_of)]
    assert found == [0, 1, 2, 3, 4, 5]
    assert not tailer.closed


def test_it_is_lazy_and_closes_what_it_opened(tmp_path: Path) -> None:
    queue = filled(tmp_path, [b"1", b"2", b"3"])
    tailer = queue.tailer()
    merged = quire.read_merged([tailer], key=number_of)
    assert next(merged).data == b"1"
    assert tailer.index == 16
    with queue.appender() as appender:
        appender.write_bytes(b"4")
    assert [number_of(excerpt) for excerpt in merged] == [2, 3, 4]


def test_an_empty_source_holds_up_the_others_only_when_asked(tmp_path: Path) -> None:
    full, empty = filled(tmp_path / "full", [b"1", b"3"]), filled(tmp_path / "empty", [])
    assert [number_of(it) for it in quire.read_merged([full, empty], key=number_of)] == [1, 3]
    assert [*quire.read_merged([full, empty], key=number_of, wait_for_all=True)] == []
    with empty.appender() as appender:
        appender.write_bytes(b"2")
    held = quire.read_merged([full, empty], key=number_of, wait_for_all=True)
    assert [number_of(it) for it in held] == [1, 2]  # 3 waits for what may come before it


def test_tailers_are_left_at_what_was_held_back(tmp_path: Path) -> None:
    full, empty = filled(tmp_path / "full", [b"1", b"3"]), filled(tmp_path / "empty", [])
    tailers = [full.tailer(), empty.tailer()]
    merged = quire.read_merged(tailers, key=number_of, wait_for_all=True)
    assert [*merged] == []
    with empty.appender() as appender:
        appender.write_many([b"0", b"2"])
    again = quire.read_merged(tailers, key=number_of, wait_for_all=True)
    assert [number_of(it) for it in again] == [0, 1, 2]
    assert tailers[0].read_bytes() == b"3"


def test_leaving_early_loses_nothing(tmp_path: Path) -> None:
    one, other = filled(tmp_path / "one", [b"1", b"4"]), filled(tmp_path / "other", [b"2", b"x"])
    tailers = [one.tailer(), other.tailer()]
    for _ in quire.read_merged(tailers, key=number_of):
        break
    assert [number_of(it) for it in islice(quire.read_merged(tailers, key=number_of), 1)] == [2]
    with pytest.raises(ValueError, match="x"):
        list(quire.read_merged(tailers, key=number_of))
    assert [tailer.read_bytes() for tailer in tailers] == [b"4", b"x"]

    left = quire.read_merged([one.tailer(), closed := other.tailer()], key=number_of)
    assert number_of(next(left)) == 1
    closed.close()
    left.close()  # type: ignore[attr-defined]


def test_following_waits_for_more(tmp_path: Path) -> None:
    one, other = filled(tmp_path / "one", [b"1"]), filled(tmp_path / "other", [b"2"])
    merged = quire.read_merged([one, other], key=number_of, follow=True)
    assert [number_of(next(merged)) for _ in range(2)] == [1, 2]
    with other.appender() as appender:
        appender.write_bytes(b"3")
    assert number_of(next(merged)) == 3


def test_wrong_arguments_are_refused_at_once(tmp_path: Path) -> None:
    queue = filled(tmp_path, [b"1"])
    with pytest.raises(TypeError, match="invalid key"):
        quire.read_merged([queue], key="data")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="invalid sources"):
        quire.read_merged([tmp_path], key=number_of)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="invalid sources"):
        quire.read_merged(7, key=number_of)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="invalid follow"):
        quire.read_merged([queue], key=number_of, follow=1)  # type: ignore[arg-type]
