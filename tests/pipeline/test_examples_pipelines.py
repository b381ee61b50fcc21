"""The pipelines in examples/ on small data, held against plain Python over the same data."""

import csv
import io
import os
import shutil
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow.parquet as pq
import pytest
from demo.flights import data_folder
from pyspark.sql import SparkSession

import quire
import quire.pipeline
from paths import ROOT
from quire.pipeline.run_report.html_page import page_of

EXAMPLES = ROOT / "examples" / "pipelines"
FLIGHTS = 3_000
ORDERS = 600
HOUR = timedelta(hours=1)
DELAY = timedelta(hours=4)

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def example(name: str, tmp_path: Path, *arguments: object) -> Path:
    """Copy an example, record what it reads, and return the folder of both pipeline and script."""
    folder = tmp_path / "examples" / "pipelines" / name
    shutil.copytree(EXAMPLES / name, folder)
    script(folder / "record.py", *arguments)
    return folder


def script(path: Path, *arguments: object) -> str:
    command = [sys.executable, str(path), *map(str, arguments)]
    ran = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return ran.stdout.strip()


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


class Departure(NamedTuple):
    """A row of flights.csv that departed or was cancelled."""

    scheduled: datetime
    happened: datetime
    carrier: str
    tailnum: str | None
    origin: str
    hour: int
    delay: int | None

    @property
    def window(self) -> datetime:
        return self.scheduled.replace(minute=0)


def departures() -> list[Departure]:
    """Read the file of the data set once more, by other means, in the order of events."""
    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive:
        text = io.TextIOWrapper(archive.open(archive.namelist()[0]), "utf-8")
        found = [departure(row) for row in islice(csv.DictReader(text), FLIGHTS)]
    return sorted(found, key=lambda it: it.happened)


def departure(row: dict[str, str]) -> Departure:
    clock = divmod(int(row["sched_dep_time"]), 100)
    day = (int(row["year"]), int(row["month"]), int(row["day"]))
    scheduled = datetime(*day, *clock, tzinfo=ZoneInfo("America/New_York")).astimezone(UTC)
    delay = None if row["dep_delay"] == "NA" else int(row["dep_delay"])
    tailnum = None if row["tailnum"] == "NA" else row["tailnum"]
    happened = scheduled + timedelta(minutes=delay or 0)
    return Departure(scheduled, happened, row["carrier"], tailnum, row["origin"], clock[0], delay)


class Arrived(NamedTuple):
    complete: list[Departure]
    late: list[Departure]
    held: list[Departure]


def arrived() -> Arrived:
    """Say of each departure whether it came in time, and whether its hour is complete."""
    latest = datetime(2000, 1, 1, tzinfo=UTC)
    in_time: list[Departure] = []
    late: list[Departure] = []
    for it in departures():
        (late if it.scheduled < latest - DELAY else in_time).append(it)
        latest = max(latest, it.scheduled)
    complete = [it for it in in_time if it.window + HOUR <= latest - DELAY]
    return Arrived(complete, late, [it for it in in_time if it not in complete])


def sums(groups: Iterator[tuple[Any, Departure]]) -> dict[Any, tuple[int, int, int, int]]:
    """Return flights, departed, minutes of delay, and late ones of each group."""
    delays: dict[Any, list[int | None]] = defaultdict(list)
    for key, it in groups:
        delays[key].append(it.delay)
    known = {key: [it for it in found if it is not None] for key, found in delays.items()}
    return {
        key: (len(delays[key]), len(it), sum(it), sum(delay >= 15 for delay in it))
        for key, it in known.items()
    }


def found_sums(path: Path, *key: str) -> dict[Any, tuple[int, ...]]:
    found: dict[Any, tuple[int, ...]] = {}
    for row in rows(path):
        group = tuple(aware(row[name]) for name in key)
        before = found.get(group, (0, 0, 0, 0))
        row["minutes"] = row["minutes"] or 0
        names = ("flights", "departed", "minutes", "late")
        found[group] = tuple(it + row[name] for it, name in zip(before, names, strict=True))
    return found


def aware(value: Any) -> Any:  # noqa: ANN401 - a cell
    """Return times as plain Python has them; Spark's Parquet files have them in UTC."""
    if not isinstance(value, datetime):
        return value
    return datetime.fromtimestamp(value.replace(tzinfo=UTC).timestamp(), UTC)


def skies() -> dict[tuple[str, datetime], str]:
    with (data_folder() / "weather.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["origin"], datetime.fromisoformat(row["time_hour"])): sky(row)
            for row in csv.DictReader(file)
        }


def sky(row: dict[str, str]) -> str:
    if float(row["precip"]) > 0:
        return "rain or snow"
    if float(row["visib"]) < 5:
        return "fog"
    return "wind" if row["wind_speed"] != "NA" and float(row["wind_speed"]) >= 20 else "calm"


def built() -> dict[str, int]:
    with (data_folder() / "planes.csv").open(encoding="utf-8", newline="") as file:
        found = {row["tailnum"]: row["year"] for row in csv.DictReader(file)}
    return {tailnum: int(year) for tailnum, year in found.items() if year != "NA"}


def age(it: Departure, years: dict[str, int]) -> int | None:
    year = years.get(it.tailnum or "")
    return None if year is None else (it.scheduled.year - year) // 5 * 5


def test_flights_come_to_what_plain_python_makes_of_the_data_set(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = example("flights", tmp_path, "--limit", FLIGHTS)
    file = folder / "pipeline.yaml"
    file.write_text(file.read_text("utf-8").replace("200000", "4000"), "utf-8")  # two batches
    expected = arrived()

    report = quire.pipeline.run(quire.pipeline.load(file), spark=spark)

    assert (report.outcome, report.errors) == ("succeeded", ())
    assert len(report.batches) == 2
    step = {it.name: it for it in report.steps}["departures"]
    assert (step.rows_out, step.quarantined, step.held) == tuple(map(len, expected))
    assert min(map(len, expected)) > 0
    broken = {rule.name: rule.broken for rule in step.rules}
    assert broken == {
        "delay is plausible": sum((it.delay or 0) > 720 for them in expected for it in them),
        "plane is named": sum(it.tailnum is None for them in expected for it in them),
        "late": len(expected.late),
    }
    out, weather, years = tmp_path / "build/pipelines/flights/out", skies(), built()
    assert len(rows(out / "by_hour")) == len(found_sums(out / "by_hour", "carrier", "time"))
    assert found_sums(out / "by_hour", "carrier", "time", "hour") == sums(
        ((it.carrier, it.window, it.hour), it) for it in expected.complete
    )
    assert found_sums(out / "by_weather", "time", "origin", "sky") == sums(
        ((it.window, it.origin, weather.get((it.origin, it.window), "unknown")), it)
        for it in expected.complete
    )
    assert found_sums(out / "by_plane", "day", "age") == sums(
        ((it.scheduled.replace(hour=0, minute=0), age(it, years)), it) for it in expected.complete
    )
    page = Path(script(folder / "page.py")).read_text("utf-8")
    assert f">{len(expected.complete):,}</dd>" in page
    assert page.count("<svg") == 3
    assert "Pipeline flights" in page_of(report).html()


def test_latencies_come_to_what_plain_python_makes_of_the_histories(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = example("services", tmp_path, "--orders", ORDERS)
    expected: dict[tuple[int, str, str], list[int]] = defaultdict(list)
    slices: dict[tuple[str, int], list[int]] = defaultdict(list)
    found = list(histories(tmp_path / "build/pipelines/services/queues"))
    first = min(times[0] for _, _, times in found)
    for queue, hop, times in found:
        sent, written, read, answered = times[0], *times[-3:]
        assert len(times) == 2 * hop + 1
        expected[hop, queue, "waiting"].append(read - written)
        expected[hop, queue, "working"].append(answered - read)
        expected[hop, queue, "since sent"].append(answered - sent)
        slices[queue, (sent - first) // 20_000_000].append(answered - sent)

    report = quire.pipeline.run(quire.pipeline.load(folder / "pipeline.yaml"), spark=spark)

    assert (report.outcome, report.errors, report.quarantined) == ("succeeded", (), 0)
    out = tmp_path / "build/pipelines/services/out"
    by_place = {(it["hop"], it["queue"], it["part"]): it for it in rows(out / "latencies")}
    assert by_place.keys() == expected.keys()
    assert len(by_place) == 9
    for key, it in by_place.items():
        taken = np.array(expected[key])
        assert (it["messages"], it["slowest"]) == (len(taken), taken.max())
        percentiles = [it["p50"], it["p90"], it["p99"], it["p999"]]
        assert percentiles == pytest.approx(np.percentile(taken, [50, 90, 99, 99.9]), rel=1e-12)
    curves = {(it["queue"], it["slice"]): [it["p50"], it["p99"]] for it in rows(out / "over_time")}
    assert curves == {
        key: pytest.approx(np.percentile(it, [50, 99]), rel=1e-12) for key, it in slices.items()
    }
    page = Path(script(folder / "page.py")).read_text("utf-8")
    assert page.count("<svg") == 2
    assert "nan" not in page


def histories(folder: Path) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """Yield queue, hop and timings of each message that a service wrote."""
    for name in ("checked", "priced", "routed"):
        with quire.open(folder / name, read_only=True) as queue, queue.tailer() as tailer:
            for _ in tailer:
                history = tailer.history
                assert history is not None
                yield name, len(history.sources), history.timings
