"""The report of a run as text, for a terminal."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich import markup
from rich.console import Console
from rich.table import Table

from quire._common.terminal import escape_line
from quire.pipeline.run_report.facts import Report


def shown(report: Report, *, width: int | None = None) -> str:
    """Return the report as text without colours."""
    text = StringIO()
    show(report, Console(file=text, width=width or 100, color_system=None, highlight=False))
    return text.getvalue()


def show(report: Report, console: Console) -> None:
    """Print the report."""
    title = f"{report.pipeline}: {report.outcome} in {report.duration_s:.1f} s"
    console.print(f"[bold]{escape(title)}[/bold]  (run {report.run}, {report.schedule})")
    console.print(_steps(report))
    if any(step.rules for step in report.steps):
        console.print(_rules(report))
    console.print(_sinks(report))
    for source in report.sources:
        if source.lag:
            console.print(f"{escape(source.name)} has a lag of {source.lag:,} messages")
    for error in report.errors:
        console.print(f"[red]{escape(error)}[/red]", soft_wrap=True)


def escape(text: str) -> str:
    """Return a text without rich's markup or terminal control characters."""
    return markup.escape(escape_line(text))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=False)
    for number, name in enumerate(columns):
        is_count = name in {"in", "out", "rows", "broken", "batches", "quarantined", "seconds"}
        table.add_column(name, justify="right" if is_count and number else "left", overflow="fold")
    return table


def _steps(report: Report) -> Table:
    table = _table("step", "kind", "in", "out", "quarantined", "dropped", "held", "seconds")
    for step in report.steps:
        table.add_row(
            escape(step.name),
            step.kind,
            _count(step.rows_in),
            _count(step.rows_out),
            _count(step.quarantined),
            _count(step.dropped),
            _count(step.held),
            f"{step.duration_s:.2f}",
        )
    return table


def _rules(report: Report) -> Table:
    table = _table("rule", "step", "broken", "action", "destination")
    for step in report.steps:
        for rule in step.rules:
            where = rule.destination or ("kept" if rule.action == "warn" else "-")
            table.add_row(
                escape(rule.name),
                escape(step.name),
                _count(rule.broken),
                rule.action,
                escape(where if rule.broken else "-"),
            )
    return table


def _sinks(report: Report) -> Table:
    table = _table("sink", "step", "rows", "batches", "seconds")
    for sink in report.sinks:
        repeated = f" ({sink.repeated} repeated)" if sink.repeated else ""
        table.add_row(
            escape(f"{sink.format} {sink.destination}"),
            escape(sink.step),
            _count(sink.rows),
            f"{sink.batches}{repeated}",
            f"{sink.duration_s:.2f}",
        )
    return table


def _count(value: Any) -> str:  # noqa: ANN401 - a count, or None
    return "-" if value is None else f"{value:,}"
