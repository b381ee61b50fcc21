"""The report of a run as a page: rows, failures and durations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from quire.pages import Chart, Lead, Page, Section, Table, charts
from quire.pages.blocks import Block
from quire.pages.palette import BLUE, GREY, ORANGE, RED
from quire.pipeline.run_report.facts import BatchReport, Report, StepReport

# Fewer batches make no curve.
_BATCHES_MIN: Final = 2

# Spark's name for the sum of the other phases.
_WHOLE: Final = "triggerExecution"

# Below this a bar cannot be seen.
_SECONDS_MIN: Final = 0.05

_PARTS: Final = {"passed on": BLUE, "quarantined": RED, "dropped": ORANGE, "held": GREY}


def page_of(report: Report) -> Page:
    """Return the page of a run; the same report gives the same page."""
    sections = [
        Section("What went wrong", list(_errors(report))),
        Section("Rows by step", list(_flow(report))),
        Section("Broken rules", list(_rules(report))),
        Section("Where the time went", list(_durations(report))),
        Section("Batch by batch", list(_batches(report.batches))),
        Section("Sources and sinks", list(_ends(report))),
    ]
    return Page(
        f"Pipeline {report.pipeline}",
        f"The run {report.outcome}: {_rows(report.rows_in)} read, {_rows(report.rows_out)} written"
        f" in {report.duration_s:,.1f} seconds.",
        list(_leads(report)),
        [section for section in sections if section.blocks],
        f"{report.file}, run {report.run}: schedule {report.schedule}, mode {report.mode},"
        f" from {_time(report.started)} to {_time(report.finished)}",
    )


def _leads(report: Report) -> Iterator[Lead]:
    yield Lead(f"{report.rows_in:,}", "rows read")
    yield Lead(f"{report.rows_out:,}", "rows written")
    yield Lead(f"{report.quarantined:,}", "rows in quarantine")
    lags = [source.lag for source in report.sources if source.lag is not None]
    if lags:
        yield Lead(f"{sum(lags):,}", "messages not read yet")
    yield Lead(f"{report.duration_s:,.1f} s", "from start to end")


def _errors(report: Report) -> Iterator[Block]:
    if report.errors:
        yield Table("Errors", ["error"], [[error] for error in report.errors])


def _flow(report: Report) -> Iterator[Block]:
    counted = [step for step in report.steps if step.rows_out is not None]
    if counted:
        parts = {
            "passed on": [float(step.rows_out or 0) for step in counted],
            "quarantined": [float(step.quarantined) for step in counted],
            "dropped": [float(step.dropped) for step in counted],
            "held": [float(step.held) for step in counted],
        }
        present = {name: rows for name, rows in parts.items() if name == "passed on" or any(rows)}
        figure = charts.bars(
            [step.name for step in counted],
            present,
            charts.Labels("rows"),
            colours=[_PARTS[name] for name in present],
        )
        yield Chart(figure, "Rows by step, in the order they are computed", _says_flow(counted))
    yield Table(
        "Sources and steps",
        ["step", "kind", "reads", "rows in", "rows out", "quarantined", "dropped", "held"],
        [
            [
                step.name,
                step.kind,
                ", ".join(step.inputs),
                step.rows_in,
                step.rows_out,
                step.quarantined,
                step.dropped,
                step.held,
            ]
            for step in report.steps
        ],
    )


def _says_flow(steps: Sequence[StepReport]) -> str:
    quarantined = sum(step.quarantined for step in steps)
    dropped = sum(step.dropped for step in steps)
    held = sum(step.held for step in steps)
    if not quarantined + dropped + held:
        return "Every step passed on all of its rows."
    waiting = f" {_rows(held)} wait until their window is complete." if held else ""
    return (
        f"{_rows(quarantined)} went to quarantine and {_rows(dropped)} were dropped on the way."
        + waiting
    )


def _rules(report: Report) -> Iterator[Block]:
    rules = [(step.name, rule) for step in report.steps for rule in step.rules]
    if not rules:
        return
    broken = [(name, rule) for name, rule in rules if rule.broken]
    if broken:
        worst, rule = max(broken, key=lambda it: it[1].broken)
        figure = charts.bars(
            [f"{name}: {rule.name}" for name, rule in broken],
            {"rows": [float(rule.broken) for _, rule in broken]},
            charts.Labels("rows that broke the rule"),
            colours=[RED],
        )
        yield Chart(
            figure,
            "Rows that broke a rule",
            f"{len(broken)} of {len(rules)} rules were broken, most often {worst}: {rule.name}"
            f" ({_rows(rule.broken)}). A row that breaks two rules counts for both.",
        )
    else:
        yield f"All {len(rules)} rules held for every row."
    yield Table(
        "Rules",
        ["step", "rule", "condition", "action", "rows", "destination"],
        [
            [name, rule.name, rule.condition, rule.action, rule.broken, rule.destination]
            for name, rule in rules
        ],
    )
    if report.quarantine is not None:
        yield f"Rows in quarantine are in {report.quarantine}."


def _durations(report: Report) -> Iterator[Block]:
    parts = [(step.name, step.duration_s) for step in report.steps]
    parts += [(f"sink {sink.destination}", sink.duration_s) for sink in report.sinks]
    parts = [(name, seconds) for name, seconds in parts if seconds >= _SECONDS_MIN]
    if not parts:
        return
    longest, seconds = max(parts, key=lambda it: it[1])
    figure = charts.bars(
        [_shortened(name) for name, _ in parts],
        {"seconds": [seconds for _, seconds in parts]},
        charts.Labels("seconds"),
    )
    yield Chart(
        figure,
        "Seconds by step and sink",
        f"{longest} took longest: {seconds:,.1f} of {report.duration_s:,.1f} seconds. What is"
        " computed while a sink writes counts as the sink's.",
    )


def _batches(batches: Sequence[BatchReport]) -> Iterator[Block]:
    if len(batches) < _BATCHES_MIN:
        return
    numbers = [batch.batch for batch in batches]
    rates = [batch.rows_per_s for batch in batches]
    yield Chart(
        charts.lines(
            numbers, {"rows a second": rates}, charts.Labels("batch", "rows a second"), marked=True
        ),
        "Rate by batch",
        f"{len(batches)} batches took in between {min(rates):,.0f} and {max(rates):,.0f} rows a"
        " second.",
    )
    lags = [(batch.batch, batch.lag) for batch in batches if batch.lag is not None]
    if len(lags) >= _BATCHES_MIN:
        yield Chart(
            charts.lines(
                [number for number, _ in lags],
                {"lag": [lag for _, lag in lags]},
                charts.Labels("batch", "messages not read when the batch was planned"),
                colours=[ORANGE],
                marked=True,
            ),
            "Lag by batch",
            f"The lag went from {lags[0][1]:,} to {lags[-1][1]:,} messages.",
        )
    yield _batch_durations(batches, numbers)


def _batch_durations(batches: Sequence[BatchReport], numbers: Sequence[int]) -> Chart:
    """Return a plot of the durations of batches, by phase if Spark reported them."""
    names = sorted({name for batch in batches for name in batch.durations} - {_WHOLE})
    parts = {name: [batch.durations.get(name, 0.0) for batch in batches] for name in names}
    parts = parts or {"whole": [batch.duration_s for batch in batches]}
    seconds, longest = max(zip(map(sum, zip(*parts.values(), strict=True)), numbers, strict=True))
    return Chart(
        charts.columns(numbers, parts, charts.Labels("batch", "seconds")),
        "Seconds by batch",
        f"Batch {longest} took longest, {seconds:,.1f} seconds.",
    )


def _ends(report: Report) -> Iterator[Block]:
    yield Table(
        "Sources",
        ["source", "format", "where", "rows", "from", "to", "not read"],
        [
            [it.name, it.format, it.path, it.rows, _offsets(it.start), _offsets(it.end), it.lag]
            for it in report.sources
        ],
    )
    yield Table(
        "Sinks",
        ["step", "format", "where", "rows", "batches", "repeated", "seconds"],
        [
            [it.step, it.format, it.destination, it.rows, it.batches, it.repeated, it.duration_s]
            for it in report.sinks
        ],
    )


def _offsets(offsets: Mapping[str, Any] | None) -> str | None:
    if offsets is None:
        return None
    return ", ".join(f"{topic} {_offset(place)}" for topic, place in offsets.items())


def _offset(place: Any) -> str:  # noqa: ANN401 - what a source counts in
    return f"{place:#x}" if isinstance(place, int) else str(place)


def _shortened(name: str, length: int = 34) -> str:
    return name if len(name) <= length else f"\N{HORIZONTAL ELLIPSIS}{name[1 - length :]}"


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
