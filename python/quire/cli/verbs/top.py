"""``quire top``: a live view of queues in the terminal, or samples for programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

import click

from quire.cli.live.sample import GONE, OK, TABLE_COLUMNS, Sample
from quire.cli.live.sampler import Sampler
from quire.cli.output.row_formats import print_rows
from quire.cli.parameters import QUEUE, NumberRange
from quire.cli.remote_options import Place
from quire.cli.shared_options import row_format_option

_FLAT: Final = {"text", "csv", "arrow"}


@click.command()
@click.argument("paths", type=QUEUE, nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--interval",
    type=NumberRange(0.1, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="The time between samples.",
)
@click.option("--time-field", metavar="NAME", help="The field that holds the event time.")
@click.option(
    "--once", is_flag=True, help="Print the difference of two samples instead of showing a screen."
)
@row_format_option()
def top(
    paths: tuple[Place, ...], *, interval: float, time_field: str | None, once: bool, style: str
) -> None:
    """
    Watch queues live: rates, latency, lag of tailers, locks, files, disk space.

    PATH is a queue of any format, or a directory of queues; or quire://HOST:PORT/QUEUE, or
    quire://HOST:PORT for all queues of a server, which does not report locks and disks. The command
    only reads queues and waits for no lock. With --once or --format jsonl, it prints samples.

    Latency comes from the histories of the newest messages: the time from the append to the first
    queue to the append to this one. With --time-field, it is the time from the field's value to the
    sample that found the message, so it includes the wait for the sample.

    \b
    Examples:
      quire top /data/queues
      quire top orders fills --interval 0.5
      quire top quire://127.0.0.1:7000
      quire top orders --format jsonl | jq 'select(.lag > 1000)'
    """  # noqa: D301 - click reads the backspace
    is_screen = style == "text" and not once
    if is_screen and not (sys.stdout.isatty() and sys.stdin.isatty()):
        raise click.UsageError("a live view needs a terminal: give --once or --format jsonl")
    if not once and style not in {"text", "jsonl"}:
        raise click.UsageError(f"--format {style} needs --once: only jsonl repeats")
    run = _screen() if is_screen else None
    sampler = Sampler(paths, time_field=time_field)
    try:
        first = sampler.sample()
        _check(sampler, first)
        if run is not None:
            run(sampler, first, interval)
        elif once:
            time.sleep(interval)
            _print(style, sampler.sample())
        else:
            _stream(sampler, first, interval)
    finally:
        sampler.close()


def _screen() -> Callable[[Sampler, list[Sample], float], None]:
    """Return the function that shows the screen; only it imports textual."""
    try:
        from quire.cli.live.app import run
    except ImportError as error:
        raise click.ClickException("the screen needs textual: pip install 'quire[top]'") from error
    return run


def _check(sampler: Sampler, samples: list[Sample]) -> None:
    """Refuse paths without a queue; a damaged queue among others is shown as such."""
    wrong = [it for it in samples if it.state == GONE]
    if not wrong and not any(it.state == OK for it in samples):
        wrong = samples
    for it in wrong:
        sampler.source(it.queue).open().close()  # raises the reason


def _print(style: str, samples: list[Sample]) -> None:
    rows = [it.row() for it in samples]
    columns = TABLE_COLUMNS if style in _FLAT else tuple(Sample.__dataclass_fields__)
    print_rows(style, columns, rows)


def _stream(sampler: Sampler, samples: list[Sample], interval: float) -> None:
    """Print samples until the process is interrupted or nobody reads them."""
    due = time.monotonic()
    while True:
        _print("jsonl", samples)
        due = max(due + interval, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        samples = sampler.sample()
