"""``quire prune``: removes old cycles that are no longer needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

import quire
from quire.cli.exit_codes import print_error
from quire.cli.output.progress import Progress
from quire.cli.output.row_formats import print_rows
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.shared_options import row_format_option

if TYPE_CHECKING:
    from quire.retaining import PrunedCycle, PruneReport
    from quire.retaining.rule import Action

_COLUMNS: Final = ("cycle", "file", "on_disk", "done", "reason")
_LIMITS: Final = ("keep", "max_bytes", "max_cycles")
_DONE: Final = {
    "delete": "deleted",
    "move": "moved",
    "archive": "archived",
    "compress": "compressed",
}


@click.command()
@click.argument("path", type=PATH)
@click.option(
    "--keep", metavar="AGE", help="Keep cycles that ended less than this long ago: 7d, 12h."
)
@click.option("--max-bytes", metavar="SIZE", help="Keep at most this much on disk: 50GB, 500MiB.")
@click.option("--max-cycles", type=click.IntRange(min=1), help="Keep at most this many cycles.")
@click.option("--move", type=PATH, metavar="DIR", help="Move files there instead of deleting them.")
@click.option(
    "--archive", type=PATH, metavar="DIR", help="Archive to Parquet there before deleting."
)
@click.option("--compress", is_flag=True, help="Compress files in place instead of deleting them.")
@click.option(
    "--stale-after",
    metavar="AGE",
    help="Ignore tailers and groups whose next message is in a cycle that ended this long ago.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done.")
@row_format_option()
def prune(
    path: Path,
    *,
    dry_run: bool,
    style: str,
    **options: Any,  # noqa: ANN401 - the library checks them
) -> None:
    """
    Remove the oldest cycles of a queue that are no longer needed.

    A cycle is removed once it exceeds one of the limits. The newest cycle is kept. So is a cycle
    that a named tailer or consumer group has not left, that a process has open, or that Java could
    append to, and every cycle after it. Other processes may write and read during the run. Shows
    which cycles were removed or kept, and why.

    \b
    Examples:
      quire prune orders --keep 7d --dry-run
      quire prune orders --max-bytes 50GB --archive /archive/orders
      quire prune orders --keep 7d --compress
      quire prune orders --keep 7d --stale-after 30d --format jsonl
    """  # noqa: D301 - click reads the backspace
    if all(options[limit] is None for limit in _LIMITS):
        raise click.UsageError("give at least one of --keep, --max-bytes and --max-cycles")
    action, dest = _action(options)
    removed: list[PrunedCycle] = []
    try:
        with value_errors_as_usage(), Progress() as progress:
            report = quire.prune(
                path,
                dry_run=dry_run,
                action=action,
                dest=dest,
                on_removed=removed.append,
                progress=progress.show,
                **options,
            )
    except BaseException:
        if removed:  # by a run that failed later, or was interrupted
            print_rows(style, _COLUMNS, (_row(cycle, _DONE[action]) for cycle in removed))
        raise
    done = f"to be {_DONE[action]}" if dry_run else _DONE[action]
    print_rows(style, _COLUMNS, _rows(report, done))
    for name in report.overtaken:
        print_error(f"a stale reader loses messages: name={name}")


def _action(options: dict[str, Any]) -> tuple[Action, Path | None]:
    """Take the action and its directory from the options."""
    asked = {name: options.pop(name) for name in ("move", "archive", "compress")}
    given = [name for name, value in asked.items() if value]
    if len(given) > 1:
        raise click.UsageError("give at most one of --move, --archive and --compress")
    action = cast("Action", given[0] if given else "delete")
    return action, asked["move"] or asked["archive"]


def _rows(report: PruneReport, done: str) -> Iterator[dict[str, object]]:
    for cycle in report.removed:
        yield _row(cycle, done)
    for cycle in report.kept:
        yield _row(cycle, "kept")


def _row(cycle: PrunedCycle, done: str) -> dict[str, object]:
    return {
        "cycle": cycle.cycle,
        "file": str(cycle.file),
        "on_disk": cycle.bytes,
        "done": done,
        "reason": cycle.reason,
    }
