"""``quire repair``: damaged queues made whole, as far as no message is lost by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import quire
from quire._common.terminal import escape_line
from quire.cli.exit_codes import FAILED, OK
from quire.cli.output.row_formats import print_rows
from quire.cli.parameters import PATH, NumberRange
from quire.cli.shared_options import row_format_option
from quire.cli.verbs.verify import place_of

if TYPE_CHECKING:
    from quire.maintenance import Action, RepairReport

_COLUMNS: Final = ("kind", "file", "position", "done")


@click.command()
@click.argument("path", type=PATH)
@click.option(
    "--apply",
    "applies",
    is_flag=True,
    help="Repair the queue, instead of only showing what would be done.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=NumberRange(min=0),
    default=1.0,
    show_default=True,
    help="Seconds to wait while a living process holds the write lock.",
)
@row_format_option()
def repair(path: Path, *, applies: bool, timeout_s: float, style: str) -> int:
    """
    Repair what `quire verify` finds, without losing a message that can be read.

    A dry run by default. Bytes that are cut off are kept beside the file, as *.discard. The next
    repair completes an interrupted one. Refuses to run while a living process holds the write lock.
    The exit code is 1 if errors or warnings remain; in a dry run, if some cannot be repaired.

    \b
    Examples:
      quire repair orders
      quire repair orders --apply
    """  # noqa: D301 - click reads the backspace
    report = quire.repair(path, dry_run=not applies, timeout_s=timeout_s)
    if style == "text":
        for line in _lines(report):
            click.echo(line)
    else:
        rows = ({name: getattr(step, name) for name in _COLUMNS} for step in _steps(report))
        print_rows(style, _COLUMNS, rows)
    left = [finding for finding in report.after.findings if finding.severity != "note"]
    if report.dry_run:
        left = [finding for finding in left if finding not in report.planned]
    return FAILED if left else OK


def _steps(report: RepairReport) -> Iterator[Action]:
    """Yield what was done, or what would be."""
    if not report.dry_run:
        yield from report.actions
        return
    for finding in report.planned:
        yield quire.maintenance.Action(
            finding.kind, finding.file, finding.position, f"would {finding.remedy}"
        )


def _lines(report: RepairReport) -> Iterator[str]:
    for step in _steps(report):
        yield f"{step.kind}: {place_of(step.file, step.position)}"
        yield f"  {escape_line(step.done)}"
    planned = report.planned if report.dry_run else ()
    left = [it for it in report.after.findings if it not in planned]
    if left:
        yield "left alone:"
        yield from (f"  {it.kind}: {place_of(it.file, it.position)}" for it in left)
    yield _last_line(report)


def _last_line(report: RepairReport) -> str:
    if report.dry_run:
        count = len(report.planned)
        return "nothing to repair" if count == 0 else f"{count} to repair: run it with --apply"
    return f"{len(report.actions)} repaired" if report.actions else "nothing to repair"
