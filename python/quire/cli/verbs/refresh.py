"""``quire refresh``: the listing of files in the table, made to agree with the directory."""

from __future__ import annotations

from pathlib import Path

import click

import quire
from quire._formats import CHRONICLE, format_of
from quire.cli.parameters import PATH, value_errors_as_usage


@click.command()
@click.argument("path", type=PATH)
def refresh(path: Path) -> None:
    """
    Update the listing of a queue's files after some were added or removed by hand.

    Running processes, those of Java too, notice the change. `quire repair` does this among other
    things.

    \b
    Examples:
      quire refresh orders
    """  # noqa: D301 - click reads the backspace
    with value_errors_as_usage():
        found = format_of(str(path))
        if found not in {None, CHRONICLE}:
            raise quire.errors.UnsupportedError(
                f"only a Chronicle Queue has a listing of its files: format={found} path={path}"
            )
        with quire.open(path, create=False, force_unlock="never", buffer_mode="none") as queue:
            queue.refresh()
            names = [Path(queue.file_for_cycle(cycle)).name for cycle in queue.cycles]
    ends = f" first={names[0]} last={names[-1]}" if names else ""
    click.echo(f"files={len(names)}{ends}")
