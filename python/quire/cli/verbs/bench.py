"""``quire bench``: what this machine and this disk do, in a minute."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from quire._common.units import size_text
from quire.cli.benchmarks import LEAST_SIZE, MOST_BYTES, Plan, parts
from quire.cli.exit_codes import TERMINATED
from quire.cli.output.progress import Progress
from quire.cli.output.row_formats import print_rows
from quire.cli.parameters import NumberRange, SizeRange, value_errors_as_usage
from quire.cli.shared_options import row_format_option
from quire.cli.signals import exit_on_sigterm

_COLUMNS: Final = (
    "part",
    "messages",
    "per_second",
    "mb_per_second",
    "p50_us",
    "p99_us",
    "p99.9_us",
    "worst_us",
)
_LARGEST: Final = 1 << 20  # bytes of a message
_NEEDED: Final = 5 * MOST_BYTES


@click.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--seconds",
    type=NumberRange(0.01, 3600),
    default=8.0,
    show_default=True,
    help="The longest that each part may take.",
)
@click.option(
    "--size",
    type=SizeRange(LEAST_SIZE, _LARGEST),
    default=64,
    show_default=True,
    metavar="SIZE",
    help="The length of a message.",
)
@click.option(
    "--rate",
    type=click.IntRange(1, 1_000_000),
    default=10_000,
    show_default=True,
    help="Messages a second while latency is measured.",
)
@click.option("--disk", is_flag=True, help="Measure the disk itself, too.")
@row_format_option()
def bench(  # noqa: PLR0913 - its options
    path: Path, *, seconds: float, size: int, rate: int, disk: bool, style: str
) -> None:
    """
    Measure rates and latency of queues in the directory PATH, in about a minute.

    Queues are made in a directory of their own below PATH, which is removed afterwards. Every part
    ends after --seconds or 256 MiB. The machine should be otherwise idle.

    For latency, one process reads what another appends at a fixed rate; the time counts from when a
    message was due. --disk also measures the disk without a queue: blocks of 1 MiB in sequence, and
    pages of 4 KiB, each synced.

    \b
    Examples:
      quire bench /data --disk
      quire bench /dev/shm --rate 100000 --format json
    """  # noqa: D301 - click reads the backspace
    free = shutil.disk_usage(path).free
    if free < _NEEDED:
        raise click.ClickException(
            f"not enough space for a benchmark: free={size_text(free)}"
            f" needed={size_text(_NEEDED)} path={path}"
        )
    folder = Path(tempfile.mkdtemp(prefix=".quire-bench-", dir=path))
    try:
        with exit_on_sigterm(TERMINATED), value_errors_as_usage(), Progress() as progress:
            rows = [*_rows(Plan(folder, seconds, size, rate, progress), disk=disk)]
        print_rows(style, _COLUMNS, rows)
    finally:
        shutil.rmtree(folder)


def _rows(plan: Plan, *, disk: bool) -> Iterator[dict[str, Any]]:
    for result in parts(plan, disk=disk):
        plan.progress.show(result.part)
        yield result.row()
