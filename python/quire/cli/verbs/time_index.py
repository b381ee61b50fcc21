"""``quire time-index``: which cycles have an index of append times, and building missing ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

import quire
from quire.cli.exit_codes import INTERRUPTED, print_error
from quire.cli.output.progress import Progress
from quire.cli.output.row_formats import print_rows
from quire.cli.parameters import PATH, open_journal, value_errors_as_usage
from quire.cli.shared_options import row_format_option
from quire.formats.adapters import count_of, require_journal

_COLUMNS: Final = ("cycle", "file", "messages", "indexed", "built")
_NEVER_MS: Final = 2**47


@click.command("time-index")
@click.argument("path", type=PATH)
@click.option(
    "--time-field", metavar="NAME", help="Build missing indexes from this field of the messages."
)
@row_format_option()
def time_index(path: Path, time_field: str | None, style: str) -> None:
    """
    Show which cycles have an index of append times, and build missing ones.

    With an index, --from, --to and move_to_time find a time within a cycle without a field. Writers
    keep it up to date with time_index=True. --time-field builds it where it is missing or damaged;
    processes may read and write meanwhile, but messages they append are not in it. Repeat the
    command to resume one that was interrupted.

    Each row shows the messages of a cycle, and how many of them the index covers; - means none.

    \b
    Examples:
      quire time-index orders
      quire time-index orders --time-field time
    """  # noqa: D301 - click reads the backspace
    with value_errors_as_usage(), Progress() as progress:
        require_journal(
            path,
            "an index of append times",
            " (name a field of the messages by --time-field when reading)",
        )
        try:
            built = _build(path, time_field, progress)
        except KeyboardInterrupt:
            progress.clear()
            with suppress(OSError):
                print_error("interrupted: repeat the command to resume")
            raise click.exceptions.Exit(INTERRUPTED) from None
        with open_journal(path) as queue:
            print_rows(style, _COLUMNS, _rows(queue, built))


def _build(path: Path, time_field: str | None, progress: Progress) -> set[int]:
    if time_field is None:
        return set()
    return {
        *quire.maintenance.build_time_index(path, time_field=time_field, progress=progress.show)
    }


def _rows(queue: quire.JournalQueue, built: set[int]) -> Iterator[dict[str, Any]]:
    for cycle in queue.cycles:
        yield {
            "cycle": cycle,
            "file": Path(queue.file_for_cycle(cycle)).name,
            "messages": count_of(queue, cycle),
            "indexed": queue._messages_before(cycle, _NEVER_MS),  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            "built": cycle in built,
        }
