"""``quire verify``: whether the files of queues keep the rules of their formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import quire
from quire._common.terminal import escape_line
from quire._common.units import size_text
from quire.cli.exit_codes import FAILED, OK
from quire.cli.output.row_formats import counted, print_rows
from quire.cli.parameters import PATH
from quire.cli.shared_options import row_format_option
from quire.cli.streams import styled
from quire.maintenance.filesystem import FilesystemCheck, FilesystemReport
from quire.maintenance.kinds import Severity

if TYPE_CHECKING:
    from quire.maintenance import Finding, VerifyReport

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


@click.command()
@click.argument("path", type=PATH)
@click.option(
    "--filesystem", "tries_it", is_flag=True, help="Test the file system of the directory PATH."
)
@click.option("--seals", is_flag=True, help="Report an error if nothing is sealed.")
@click.option("--trust", type=PATH, help="A public key (PEM) that must have signed a seal.")
@click.option("--since", type=PATH, help="A checkpoint kept elsewhere, to detect a rollback.")
@row_format_option()
def verify(  # noqa: PLR0913 - each is an option
    path: Path,
    *,
    tries_it: bool,
    seals: bool,
    trust: Path | None,
    since: Path | None,
    style: str,
) -> int:
    """
    Check queues and their files against every rule of the format.

    PATH is a queue of any format, one roll file, a directory with copies of some files of a queue,
    or a directory of queues. Changes nothing and waits for no lock: the queue may be in use. For
    each finding, it says where it is, what it means, and what `quire repair` would do. The exit
    code is 1 if there are errors or warnings.

    A queue with seals (`quire seal`) is compared with them: for each cycle, the first message that
    was changed, inserted, moved or cut off is named. --trust checks a signature; --since checks
    that the queue continues from a checkpoint that `quire seal --checkpoint` wrote.

    --filesystem creates a temporary directory below PATH, tests whether locks, mappings and syncs
    work there between processes of this host, and says whether allow_network=True is safe for
    queues used by one host only. The exit code is 1 if it is not.

    \b
    Examples:
      quire verify orders
      quire verify /var/queues --format jsonl | jq 'select(.severity == "error")'
      quire verify orders --seals --trust key.pub --since orders.checkpoint
      quire verify --filesystem /mnt/share
    """  # noqa: D301 - click reads the backspace
    if tries_it:
        return _try_filesystem(path, style)
    report = quire.verify(path, seals=seals, trust=trust, since=since)
    if style == "text":
        for line in lines(report):
            click.echo(line)
    else:
        print_rows(style, _COLUMNS, (finding.to_dict() for finding in report.findings))
    return OK if report.ok else FAILED


def _try_filesystem(path: Path, style: str) -> int:
    report = quire.maintenance.verify_filesystem(path)
    rows = [check._asdict() for check in report.checks]
    print_rows(style, FilesystemCheck._fields, rows)
    if style == "text":
        click.echo(_verdict(report))
    return OK if report.ok else FAILED


def _verdict(report: FilesystemReport) -> str:
    if not report.ok:
        return "not safe: write no queue here"
    if report.network is None:
        return "safe"
    return (
        f"safe with allow_network=True while only this host uses the queues: {report.network} does"
        " not carry shared memory to other hosts"
    )


def lines(report: VerifyReport) -> Iterator[str]:
    """Yield what was found, for people."""
    for finding in report.findings:
        yield from _paragraph(finding)
        yield ""
    found = f"{counted(report.files, 'file')}, {counted(report.messages, 'message')}"
    yield f"{found}, {size_text(report.bytes)}: {_sum(report)}"


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
    return ", ".join(counted(count, name) for count, name in parts)
