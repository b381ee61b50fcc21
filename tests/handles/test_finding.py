"""Tailers go to a key or a time: a list of messages says where."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import quire
from queues import START_MS

DAY_MS = 86_400_000
START = datetime.fromtimestamp(START_MS / 1000, UTC)
Days = list[list[int | None] | None]


def written(path: Path, days: Days) -> list[tuple[int, int | None]]:
    """
    Write a message for each key, in the cycle of its day; return index and key of those left.

    None is a message without a key; None for a day, that its file was deleted. A day without
    messages has a file.
    """
    clock = quire.ManualClock(START_MS)
    left: list[tuple[int, int | None]] = []
    gone: list[str] = []
    with quire.open(path, clock=clock, block_bytes=2**16) as queue, queue.appender() as appender:
        for number, keys in enumerate(days):
            clock.now_ms = START_MS + number * DAY_MS
            if not keys:
                with appender.writing_document() as document:
                    document.write_bytes(b"deleted or never there")
                    if keys is not None:
                        document.rollback_on_close()
            if keys is None:
                gone.append(queue.current_file)
            for key in keys or ():
                values = {"other": 1} if key is None else {"key": key, "at": START_MS + key}
                left.append((appender.write_map(values), key))
    for file in gone:
        Path(file).unlink()
    return left


def in_order(days: list[list[tuple[int, bool]] | None]) -> Days:
    """Make steps keys that never fall; about one message in four has none."""
    key, result = 0, list[list[int | None] | None]()
    for steps in days:
        keys: list[int | None] = []
        for step, has_key in steps or ():
            key += step
            keys.append(key if has_key else None)
        result.append(None if steps is None else keys)
    return result


step = st.tuples(st.sampled_from([0, 0, 1, 2, 5]), st.sampled_from([True, True, True, False]))
days_in_order = st.lists(st.none() | st.lists(step, max_size=7), min_size=1, max_size=5).map(
    in_order
)
by_function: Callable[[quire.Excerpt], Any] = lambda it: it.to_dict().get("key")  # noqa: E731


@settings(max_examples=50)
@given(days=days_in_order, wanted=st.integers(-1, 40), by=st.sampled_from(["key", by_function]))
@example(days=[[1, 2, 2, 2, 3]], wanted=2, by="key")
@example(days=[[1], [], None, [4, 4]], wanted=2, by="key")
@example(days=[None, [1, 2], [None, None], [], [None, 3]], wanted=3, by="key")
@example(days=[[1, 2, None, None]], wanted=3, by=by_function)
def test_the_next_message_is_the_first_whose_key_is_not_less(
    days: Days, wanted: int, by: str | Callable[[quire.Excerpt], Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        messages = written(Path(folder), days)
        keyed = [(index, key) for index, key in messages if key is not None]
        with quire.open(folder, read_only=True) as queue, queue.tailer() as tailer:
            if messages and not keyed:
                with pytest.raises(ValueError, match="no message has the key: by="):
                    tailer.move_to(wanted, by=by)
                return
            expected = next((index for index, key in keyed if key >= wanted), None)
            assert tailer.move_to(wanted, by=by) is (expected is not None)
            found = tailer.read()
            assert (found and found.index) == expected
            moment = START + timedelta(milliseconds=wanted)
            assert tailer.move_to_time(moment, time_field="at") is (expected is not None)
            assert [it.index for it in tailer] == [
                index for index, _ in messages if expected is not None and index >= expected
            ]


def test_a_key_is_found_below_the_top_level(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_yaml("trade: {id: EURUSD, leg: {id: 1}}")
    appender.write_yaml("trade: {id: USDJPY, leg: {id: 2}}")
    tailer = queue.tailer()
    for key, by in [("F", "id"), ("F", "trade.id"), (2, "leg.id"), (2, "trade.leg.id")]:
        assert tailer.move_to(key, by=by), by
        assert b"USDJPY" in (tailer.read_bytes() or b"")


def test_messages_of_any_bytes_are_found_by_a_function(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    indexes = [appender.write_bytes(b"%04d" % number) for number in range(300)]
    with queue.tailer("finder") as tailer:
        assert tailer.move_to(b"0123", by=lambda it: it.data)
        assert tailer.index == indexes[123]
    with queue.tailer("finder") as tailer:
        assert tailer.read_bytes() == b"0123"


@pytest.mark.parametrize("filled", [0, 5])
def test_what_is_appended_during_the_search_is_not_passed_over(
    queue: quire.JournalQueue, appender: quire.JournalAppender, filled: int
) -> None:
    for number in range(filled):
        appender.write_map({"key": number})
    pending = [3, 99]

    def key(excerpt: quire.Excerpt) -> int:
        while pending:
            appender.write_map({"key": pending.pop(0)})
        return int(excerpt.to_dict()["key"])

    tailer = queue.tailer()
    assert tailer.move_to(50, by=key) is False
    if not filled:
        appender.write_map({"key": 3})
    assert (tailer.read_map() or {})["key"] == 3


def test_backward_from_a_key(queue: quire.JournalQueue, appender: quire.JournalAppender) -> None:
    for number in range(10):
        appender.write_map({"key": number})
    tailer = queue.tailer()
    tailer.direction = "backward"
    assert tailer.move_to(7, by="key")
    assert [it.to_dict()["key"] for it in tailer] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert tailer.move_to(70, by="key") is False
    assert (tailer.read_map() or {})["key"] == 9


def test_a_search_that_fails_leaves_the_position(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    for number in range(10):
        appender.write_map({"key": number})
    tailer = queue.tailer()
    tailer.read_many(4)
    with pytest.raises(TypeError, match=r"cannot be compared: index=0x\w+ found=\d wanted='5'"):
        tailer.move_to("5", by="key")
    with pytest.raises(ValueError, match="no message has the key: by=kee "):
        tailer.move_to(5, by="kee")
    with pytest.raises(ZeroDivisionError):
        tailer.move_to(5, by=lambda _: 1 // 0)
    assert (tailer.read_map() or {})["key"] == 4


@pytest.mark.parametrize("cycle", ["TEST_SECONDLY", "MINUTELY", "FAST_DAILY"])
@pytest.mark.parametrize("time", ["2200-01-01", "9999-12-31T23:59:59"])
def test_a_time_after_all_cycles_that_can_be_is_after_the_last(
    tmp_path: Path, cycle: str, time: str
) -> None:
    with (
        quire.open(tmp_path, roll_cycle=cycle, clock=quire.ManualClock(START_MS)) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        assert tailer.move_to_time(time) is False
        appender.write_many([b"1", b"2"])
        assert tailer.move_to_time(time) is False
        assert tailer.read_bytes() is None


def test_what_is_no_time_and_no_field_is_refused(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_map({"at": START_MS})
    tailer = queue.tailer()
    with pytest.raises(TypeError, match="not a time: type=datetime64"):
        tailer.move_to_time(np.datetime64("2024-01-15T10:30"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="invalid time_field: expected text, found int"):
        tailer.move_to_time(0, time_field=5)  # type: ignore[arg-type]
