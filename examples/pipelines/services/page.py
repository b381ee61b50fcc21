"""
The page of what the pipeline beside this file wrote: build/pipelines/services/latencies.html.

    python examples/pipelines/services/page.py
"""

import argparse
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from quire.pages import Chart, Lead, Page, Section, Table, charts
from quire.pages.charts import Labels
from quire.pages.palette import BLUE, GREEN, ORANGE

FOLDER = Path(__file__).parents[3] / "build" / "pipelines" / "services"
PARTS = ("waiting", "working", "since sent")
SLICE_S = 0.02


def page_of(folder: Path) -> Page:
    rows = sorted(rows_of(folder / "out" / "latencies"), key=lambda it: (it["hop"], it["part"]))
    over_time = sorted(rows_of(folder / "out" / "over_time"), key=lambda it: it["slice"])
    by_part = {(row["hop"], row["part"]): row for row in rows}
    hops = {row["hop"]: row["queue"] for row in rows}
    last = by_part[max(hops), "since sent"]
    return Page(
        "From service to service",
        f"{last['messages']:,} messages went through {len(hops)} services. Each queue keeps a"
        " message's history: when every service before read it and wrote it.",
        [
            Lead(us(last["p50"]), "from the first write to the last, at the median"),
            Lead(us(last["p99"]), "at the 99th percentile"),
            Lead(us(last["slowest"]), "the slowest message"),
        ],
        [
            Section("Hop by hop", [by_hop(by_part, hops), table(by_part, hops)]),
            Section("Over time", [curve(over_time, max(hops))]),
        ],
        "Times are of the machine's monotonic clock, which all its processes share.",
    )


def by_hop(by_part: dict[tuple[int, str], dict[str, Any]], hops: dict[int, str]) -> Chart:
    shown = [(hop, part) for hop in hops for part in PARTS]
    names = [f"{hops[hop]}: {part}" for hop, part in shown]
    kinds = {"median": "p50", "90th percentile": "p90", "99th percentile": "p99"}
    longest = max(shown[:-1], key=lambda it: by_part[it]["p50"] if it[1] != PARTS[-1] else 0)
    return Chart(
        charts.spans(
            names,
            {kind: [by_part[it][key] / 1e3 for it in shown] for kind, key in kinds.items()},
            Labels("microseconds, each step ten times the one before"),
            colours=(BLUE, GREEN, ORANGE),
            logarithmic=True,
        ),
        "Latency by hop, microseconds",
        "Waiting is from the write before a service to its read, working from there to its own"
        f" write. At the median most of the time goes into {hops[longest[0]]}, {longest[1]}:"
        f" {us(by_part[longest]['p50'])}.",
    )


def table(by_part: dict[tuple[int, str], dict[str, Any]], hops: dict[int, str]) -> Table:
    keys = ("p50", "p90", "p99", "p999", "slowest")
    rows = [by_part[hop, part] for hop in hops for part in PARTS]
    return Table(
        "Percentiles, microseconds",
        ["queue", "part", "messages", "50", "90", "99", "99.9", "slowest"],
        [
            [row["queue"], row["part"], row["messages"], *(row[key] / 1e3 for key in keys)]
            for row in rows
        ],
    )


def curve(over_time: list[dict[str, Any]], hop: int) -> Chart:
    found = [row for row in over_time if row["hop"] == hop]
    return Chart(
        charts.lines(
            [row["slice"] * SLICE_S for row in found],
            {
                "99th percentile": [row["p99"] / 1e3 for row in found],
                "median": [row["p50"] / 1e3 for row in found],
            },
            Labels("seconds since the first message was sent", "microseconds"),
            colours=(ORANGE, BLUE),
        ),
        "From the first write to the last, microseconds",
        "Messages are sent in bursts: the last ones of a burst wait for those in front of them.",
    )


def us(nanoseconds: float) -> str:
    milliseconds = nanoseconds / 1e6
    return f"{milliseconds * 1e3:,.0f} us" if milliseconds < 1 else f"{milliseconds:,.1f} ms"


def rows_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, default=FOLDER)
    chosen = parser.parse_args()
    page_of(chosen.dir).write(chosen.dir / "latencies.html")
    print(chosen.dir / "latencies.html")
