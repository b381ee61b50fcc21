"""
Turns stored results into a page and its plots: ``python -m bench.report [DIRECTORY]``.

Without DIRECTORY they are those of runs at full volume, which bench/results keeps.

Only what lies between the two markers of docs/performance/measurements.md is replaced;
docs/performance.md sums it up by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

from bench import (
    claim_rows,
    claims,
    harness,
    idle,
    life_tables,
    live_tables,
    losses,
    parts,
    plots,
    replicated,
    scaling,
    sealed,
    served,
    spark_tables,
    summary,
    tables,
    targets,
    tools,
)
from bench.harness import Result

PLOTS = harness.ROOT / "docs" / "performance"
PAGE = PLOTS / "measurements.md"
RESULTS = harness.ROOT / "bench" / "results"
BEGIN = "<!-- begin: written by `python -m bench.report` -->"
END = "<!-- end -->"
_WIDTH = 120

_TITLES = {
    "append": "Appending, against Java",
    "tail": "Reading, against Java",
    "latency": "Latency between two processes",
    "contention": "Several writers at once",
    "buffering": "Double buffering",
    "growth": "Large and old queues",
    "scaling": "How it grows",
    "messages": "Objects and calls as messages",
    "older": "Vanilla Chronicle and Quick-Queue",
    "tools": "The command line",
    "life": "Groups, rolling, finding, logging, recording",
    "idle": "Readers that wait",
    "replication": "Replication",
    "sealed": "Encryption, compression and seals",
    "serve": "The server, beside Redis Streams",
    "claims": "Rates, sizes, writers, services, a broker",
    "spark": "On Spark",
    "peers": "Beside other Python libraries",
}


def text(results: dict[str, Result]) -> str:
    """Return all tables, for reading on a terminal."""
    return "\n\n".join(body for _, body in _sections(results))


def write(results: dict[str, Result]) -> None:
    """Write the generated part of docs/performance/measurements.md and its plots."""
    made = plots.draw(results, PLOTS)
    page = PAGE.read_text("utf-8")
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the markers are missing: file={PAGE} begin={BEGIN} end={END}")
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    body = "\n\n".join(_markdown(results, made))
    PAGE.write_text(f"{head}{BEGIN}\n\n{body}\n\n{END}{tail}", "utf-8")


def _markdown(results: dict[str, Result], made: dict[str, list[Path]]) -> list[str]:
    paragraphs = [_machine(results), *(fill(one, _WIDTH) for one in _warnings(results))]
    for title, body in _sections(results):
        paragraphs.append(f"## {title}")
        pictures = made.get(title, [])
        paragraphs += [f"![{title}]({path.relative_to(PAGE.parent)})" for path in pictures]
        paragraphs.append(_wrapped(body))
    return paragraphs


def _wrapped(body: str) -> str:
    """Break long lines, except those of tables."""
    lines = (it if it.startswith("|") else fill(it, _WIDTH) for it in body.splitlines())
    return "\n".join(lines)


def _sections(results: dict[str, Result]) -> list[tuple[str, str]]:
    """Return title and body of each section that was measured."""
    head: list[tuple[str, str]] = []
    if results.keys() != {"peers"}:
        head.append(("Targets", f"{tables.targets(results)}\n\n{_missed(results)}"))
    if results.keys() - {"peers", "spark"}:
        head.append(("Where Java is ahead", _losses(losses.losses(results))))
    if "spark" in results:
        head.append(("Where Spark itself is ahead", _losses(spark_tables.losses(results))))
    if claimed := claim_rows.text(results):
        head.append(("Beside what Chronicle Queue's documentation claims", _claimed(claimed)))
    bodies = [
        (title, f"{_measured(results[part])}\n\n{_body(results, part)}")
        for part, title in _TITLES.items()
        if part in results
    ]
    tail = ("Load on the machine", tables.surroundings(results))
    return [*head, *bodies, tail]


def _measured(result: Result) -> str:
    """Say when a part was measured, of which commit, and how often."""
    day, _, _ = str(result["date"]).partition("T")
    rounds = [len(summary.kept(one)) for one in result["scenarios"]]
    fewest, most = min(rounds), max(rounds)
    often = f"{most}" if fewest == most else f"{fewest} to {most}"
    quick = " of a quick run" if result["quick"] else ""
    return f"Measured on {day} at commit {result['commit']}, in {often} rounds{quick}."


def _body(results: dict[str, Result], part: str) -> str:
    match part:
        case "append" | "tail" | "messages" | "older":
            against = "Java or C" if part == "older" else "Java"
            return tables.rates(results, part, against)
        case "latency":
            return live_tables.latencies(results)
        case "contention" | "buffering":
            return live_tables.contention(results, part)
    if part in _BODIES:
        return _BODIES[part](results)
    append, stream = (tables.peers(results, kind) for kind in ("append", "stream"))
    return f"One message per call:\n\n{append}\n\nThe same, to another process:\n\n{stream}"


_BODIES = {
    "growth": live_tables.growth,
    "scaling": scaling.text,
    "tools": tools.text,
    "life": life_tables.text,
    "idle": idle.text,
    "replication": replicated.text,
    "sealed": sealed.text,
    "serve": served.text,
    "claims": claims.text,
    "spark": spark_tables.text,
}


def _claimed(table: str) -> str:
    return (
        "The claims are for Java on larger machines, and say little of how they were measured."
        f" Cells are\nmedians of the rounds; the sections below have the rest.\n\n{table}"
    )


def _losses(found: Iterable[str]) -> str:
    lines = [f"- {line}" for line in found]
    return "\n".join(lines) or "Nowhere in these measurements."


def _missed(results: dict[str, Result]) -> str:
    every = list(targets.verdicts(results))
    missed = [one for one in every if not one.is_met]
    if not missed:
        return f"All {len(every)} targets are reached."
    return f"{len(missed)} of {len(every)} targets are missed."


def _warnings(results: dict[str, Result]) -> list[str]:
    found: list[str] = []
    if any(result["quick"] for result in results.values()):
        found.append("**Rough figures**, from a quick run with few rounds and few messages.")
    every = [one for result in results.values() for one in result["scenarios"]]
    disturbed = sum(map(summary.is_disturbed, every))
    if disturbed:
        found.append(
            f"**The machine was not idle** during {disturbed} of {len(every)} scenarios, marked "
            "`*`: in those, wall time is unfair to Java, and CPU time is the fairer measure."
        )
    return found


def _machine(results: dict[str, Result]) -> str:
    newest = max(results.values(), key=lambda result: str(result["date"]))
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    for result in results.values():
        versions |= result["versions"]
        missing |= result["missing"]
    described = [f"{name}: {value}" for name, value in newest["machine"].items()]
    described += [f"{name} {value}" for name, value in sorted(versions.items())]
    described += [f"{name}: not measured: {why}" for name, why in sorted(missing.items())]
    return "\n".join(fill(f"- {line}", _WIDTH, subsequent_indent="  ") for line in described)


if __name__ == "__main__":
    write(parts.load(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS))
