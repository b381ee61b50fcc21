# ruff: noqa: ANN401
"""What stands for a missing or impossible value is refused when it is written, never when read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

import quire
from quire.errors import WireError


class Odd(datetime):
    """Shows itself as no time."""

    def isoformat(self, *_: Any, **__: Any) -> str:
        return "soon"


class OddDay(date):
    """Shows itself as no date."""

    def isoformat(self) -> str:
        return "today"


@quire.message
@dataclass
class Quote:
    """A message with a time that may be missing."""

    at: datetime | None = None
    px: float = 0.0


REFUSED: dict[str, tuple[Any, str]] = {
    "NaT": (pd.NaT, r"write None instead.*field=v found=NaT"),
    "NA": (pd.NA, "write None instead.*field=v"),
    "datetime64 NaT": (np.datetime64("NaT"), "write None.*field=v"),
    "datetime64[ns] NaT": (np.datetime64("NaT", "ns"), "write None.*field=v"),
    "timedelta64 NaT": (np.timedelta64("NaT"), "write None.*field=v"),
    "timedelta64[ns] NaT": (np.timedelta64("NaT", "ns"), "write None.*field=v"),
    "a year of five digits": (pd.Timestamp(2**40, unit="s"), "years are 1 to 9999"),
    "datetime64 of five digits": (np.datetime64("12024-01-01"), "no date, time or duration"),
    "an offset of 23 hours": (
        datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=23))),
        "at most 18 hours",
    ),
    "an odd datetime": (Odd(2024, 1, 1), "no date or time"),
    "an odd date": (OddDay(2024, 1, 1), "no date or time"),
    "no snappy": (quire.Typed("!snappy", b"abc"), "does not unpack"),
    "an array": (np.array([1, 2]), "tolist"),
}


@pytest.mark.parametrize(("value", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_a_value_nobody_could_read_again_is_refused(tmp_path: Path, value: Any, why: str) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        with pytest.raises(WireError, match=why):
            appender.write_map({"v": value})
        with pytest.raises(WireError, match=why.replace("field=v", "")):
            appender.write_map({"listed": [value]})
        assert queue.entry_count == 0


def test_a_missing_time_in_a_field_is_refused(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        with pytest.raises(WireError, match=r"write None instead.*at"):
            appender.write_message(Quote(at=cast("Any", pd.NaT)))
        assert queue.entry_count == 0


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """A queue with what release 1.0 made of NaT, as event's value and as field of an object."""
    with quire.open(tmp_path / "old") as queue, queue.appender() as appender:
        appender.write_bytes(b"\xb9\x01v\xb4\x03NaT")
        appender.write_bytes(b"\xc2at\xb4\x03NaT\xc2px\xa1\x07")
        appender.write_map({"v": "next"})
    return tmp_path / "old"


def test_a_missing_time_already_written_is_read(poisoned: Path) -> None:
    with quire.open(poisoned, read_only=True) as queue, queue.tailer() as tailer:
        assert tailer.read_map() == {"v": "NaT"}
        assert tailer.read_message(Quote) == Quote(None, 7.0)
        assert tailer.read_map() == {"v": "next"}


def test_times_of_pandas_are_kept_to_the_nanosecond(tmp_path: Path) -> None:
    when = pd.Timestamp("2024-01-02T03:04:05.123456789", tz="UTC")
    took = pd.Timedelta(1_234_567_891, "ns")
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_map({"when": when, "took": took, "day": datetime(2024, 1, 1, tzinfo=UTC)})
        assert tailer.read_map() == {
            "when": "2024-01-02T03:04:05.123456789Z",
            "took": "PT1.234567891S",
            "day": datetime(2024, 1, 1, tzinfo=UTC),
        }
