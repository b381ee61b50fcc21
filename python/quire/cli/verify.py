"""``quire verify``: whether the files of queues keep the rules of their formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import quire
from quire._terminal import escape_line
from quire.cli.arguments import PATH
from quire.cli.color import styled
from quire.cli.errors import FAILED, OK
from quire.cli.options import row_format_option
from quire.cli.rows import print_rows
from quire.maintenance.kinds import Severity

if TYPE_CHECKING:
    from quire import Finding, VerifyReport

_COLUMNS: Final = (
    "kind",
    "severity",
    "file",
    "position",
    "found",
    "expected",
    "meaning",
    "remedy",
)
_COLORS: Final[dict[Severity, str]] = {"error": "red", "warning": "yellow", "note": "cyan"}
_MIB: Final = 1 << 20


@click.command()
@click.argument("path", type=PATH)
@row_format_option()
def verify(path: Path, *, style: str) -> int:
    """
    Check queues and their files against every rule of the format.

    PATH is a queue of any format, one roll file, a directory with copies of some files of a queue,
    or a directory of queues. Changes nothing and waits for no lock: the queue may be in use. Says
    what is wrong where, what that means, and what `quire repair` would do. The exit code is 1 if
    there are errors or warnings.

    \b
    Examples:
      quire verify orders
      quire verify /var/queues --format jsonl | jq 'select(.severity == "error")'
    """  # noqa: D301 - click reads the backspace
    report = quire.verify(path)
    if style == "text":
        for line in lines(report):
            click.echo(line)
    else:
        print_rows(style, _COLUMNS, (finding.to_dict() for finding in report.findings))
    return OK if report.ok else FAILED


def lines(report: VerifyReport) -> Iterator[str]:
    """Yield what was found, for people."""
    for finding in report.findings:
        yield from _paragraph(finding)
        yield ""
    files = f"{report.files:,} {'file' if report.files == 1 else 'files'}"
    yield f"{files}, {report.messages:,} messages, {report.bytes / _MIB:,.1f} MiB: {_sum(report)}"


def place_of(file: str, position: int | None) -> str:
    """Return a place in a file, safe to print."""
    at = "" if position is None else f" at {position:#x}"
    return f"{escape_line(file)}{at}"


def _paragraph(finding: Finding) -> Iterator[str]:
    severity = styled(finding.severity, fg=_COLORS[finding.severity])
    yield f"{severity}: {finding.kind}: {place_of(finding.file, finding.position)}"
    yield f"  found     {escape_line(finding.found)}"
    yield f"  expected  {escape_line(finding.expected)}"
    yield f"  meaning   {finding.meaning}"
    yield f"  repair    {finding.remedy or 'leaves it alone'}"


def _sum(report: VerifyReport) -> str:
    counts = Counter(finding.severity for finding in report.findings)
    if not counts:
        return "nothing wrong"
    parts = ((counts[name], name) for name in _COLORS if counts[name])
    return ", ".join(f"{count:,} {name}{'s' if count > 1 else ''}" for count, name in parts)
