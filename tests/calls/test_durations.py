"""Durations as fields of messages, up to the longest that Python has."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import pytest

import quire


@quire.message(alias="test.Wait")
@dataclass
class Wait:
    time: dt.timedelta


@pytest.mark.parametrize("value", [dt.timedelta.min, dt.timedelta.max, dt.timedelta(2 * 10**8)])
def test_the_longest_durations_come_back(
    appender: quire.JournalAppender, tailer: quire.JournalTailer, value: dt.timedelta
) -> None:
    appender.write_message(Wait(value))
    assert tailer.read_message(Wait) == Wait(value)


def test_a_duration_that_python_does_not_have_is_an_error(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_map({"time": quire.Typed("Duration", "PT24000000000H")})
    with pytest.raises(quire.errors.WireError, match="field=time expected=timedelta"):
        tailer.read_message(Wait)
