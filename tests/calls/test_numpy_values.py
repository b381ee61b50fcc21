# ruff: noqa: ANN401, DTZ001, FBT001, FBT003 - values of all kinds
"""Scalars of numpy are the values that Python has for them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

import quire
from quire.errors import WireError

SCALARS: dict[str, tuple[Any, Any]] = {
    **{name: (getattr(np, name)(7), 7) for name in ("int8", "int16", "int32", "int64")},
    **{name: (getattr(np, name)(7), 7) for name in ("uint8", "uint16", "uint32", "uint64")},
    "float16": (np.float16(1.5), 1.5),
    "float32": (np.float32(0.1), float(np.float32(0.1))),
    "float64": (np.float64(0.1), 0.1),
    "bool": (np.bool_(True), True),
    "str": (np.str_("seven"), "seven"),
    "bytes": (np.bytes_(b"seven"), b"seven"),
    "year": (np.datetime64("2024"), date(2024, 1, 1)),
    "day": (np.datetime64("2024-02-29"), date(2024, 2, 29)),
    "hour": (np.datetime64("2024-02-29T07", "h"), datetime(2024, 2, 29, 7)),
    "us": (np.datetime64("2024-02-29T07:08:09.000010"), datetime(2024, 2, 29, 7, 8, 9, 10)),
    "ns": (np.datetime64("2024-02-29T07:08:09.000010000"), datetime(2024, 2, 29, 7, 8, 9, 10)),
    "finer": (np.datetime64("2024-02-29T07:08:09.000000001"), "2024-02-29T07:08:09.000000001"),
    "seconds": (np.timedelta64(90, "s"), "PT1M30S"),
    "nanoseconds": (np.timedelta64(5, "ns"), "PT0.000000005S"),
}


@quire.message
@dataclass
class Fill:
    """Fields of the types that numpy has scalars of."""

    size: int
    px: float
    small: quire.types.int8
    half: quire.types.float32
    live: bool
    note: str
    blob: bytes
    day: date
    at: datetime
    took: timedelta
    more: dict[str, Any]


class Desk(Protocol):
    """Calls with such arguments."""

    def fill(self, size: int, live: bool, at: datetime) -> None: ...


@pytest.mark.parametrize(("value", "plain"), SCALARS.values(), ids=SCALARS.keys())
def test_a_scalar_in_a_map_is_a_plain_value(tmp_path: Path, value: Any, plain: Any) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_map({"v": value, "listed": [value], "keyed": {value: 1}})
        found = tailer.read_map()
    assert found is not None
    assert (found["v"], found["listed"], found["keyed"]) == (plain, [plain], {plain: 1})
    assert type(found["v"]) is type(plain)


def test_scalars_fill_the_fields_of_a_message(tmp_path: Path) -> None:
    made: Any = Fill
    fill = made(
        np.int32(3),
        np.float32(0.5),
        np.uint8(9),
        np.float64(0.25),
        np.bool_(True),
        np.str_("n"),
        np.bytes_(b"b"),
        np.datetime64("2024-01-02"),
        np.datetime64("2024-01-02T03:04:05", "ns"),
        np.timedelta64(90, "s"),
        {"deep": np.int64(1)},
    )
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_message(fill)
        found = tailer.read_message(Fill)
    assert found == Fill(
        3,
        0.5,
        9,
        0.25,
        True,
        "n",
        b"b",
        date(2024, 1, 2),
        datetime(2024, 1, 2, 3, 4, 5),
        timedelta(seconds=90),
        {"deep": 1},
    )


def test_scalars_are_arguments_and_keys(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        writer: Any = appender.method_writer(Desk)
        writer.fill(np.int64(4), np.bool_(False), np.datetime64("2024", "s"))
        assert tailer.read_map() == {"fill": [4, False, datetime(2024, 1, 1)]}
        appender.topic(np.int64(4)).write_map({"a": np.int64(1)})
        assert tailer.topics(4).read_map() == {"a": 1}


def test_a_scalar_that_does_not_fit_says_so(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        with pytest.raises(WireError, match=r"more than 64 bits.*field=v"):
            appender.write_map({"v": np.uint64(2**64 - 1)})
        for value in (np.complex128(1), np.longdouble(1)):
            with pytest.raises(WireError, match=r"has no encoding.*field=v"):
                appender.write_map({"v": value})
        assert queue.entry_count == 0


def test_plain_values_do_not_import_numpy(tmp_path: Path) -> None:
    script = (
        "import sys, quire\n"
        "with quire.open(sys.argv[1]) as queue, queue.appender() as appender:\n"
        "    appender.write_map({'a': 1, 'b': 'x', 'c': [1.5, None, True]})\n"
        "    try: appender.write_map({'a': object()})\n"
        "    except quire.errors.WireError: pass\n"
        "assert 'numpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "q")], check=True)
