"""``quire unlock``: the write lock of a dead process freed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import quire
from quire._common.terminal import escape_line
from quire.cli.output.reports import print_report
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.shared_options import row_format_option
from quire.formats.adapters import require_journal

if TYPE_CHECKING:
    from quire import LockHolder


@click.command()
@click.argument("path", type=PATH)
@click.option("--force", is_flag=True, help="Take the lock even from a living process.")
@row_format_option()
def unlock(path: Path, *, force: bool, style: str) -> None:
    """
    Free the write lock of a dead process, and show its holder.

    Refuses while the holder is alive; before you use --force, stop that process. Quire takes over
    the lock of a dead process by itself; use this for locks held in other containers, and before
    Java appends.

    \b
    Examples:
      quire unlock orders
      quire unlock orders --force
    """  # noqa: D301 - click reads the backspace
    with value_errors_as_usage():
        hint = " (writers of the other formats leave nothing locked)"
        require_journal(path, "a write lock", hint)
    with quire.open(
        path, format="chronicle", create=False, force_unlock="never", buffer_mode="none"
    ) as queue:
        lock = queue.write_lock
        holder = lock.holder
        if holder is not None and holder.alive and not force:
            raise click.ClickException(
                f"the write lock is held by a live process: {_text(holder)}"
                " (stop that process, or take the lock from it with --force)"
            )
        freed = lock.force_unlock() if force else lock.unlock()
    if style == "text":
        click.echo("the write lock was free" if freed is None else f"unlocked: {_text(freed)}")
    else:
        print_report(style, {"unlocked": freed is not None, **_facts(freed)})


def _facts(holder: LockHolder | None) -> dict[str, object]:
    """Return the former holder of the lock; None for each field if it was free."""
    since = None if holder is None else holder.since
    return {
        "pid": None if holder is None else holder.pid,
        "alive": None if holder is None else holder.alive,
        "since": None if since is None else f"{since:%Y-%m-%dT%H:%M:%SZ}",
        "command": None if holder is None else holder.command,
    }


def _text(holder: LockHolder) -> str:
    since = "" if holder.since is None else f" since={holder.since:%Y-%m-%dT%H:%M:%SZ}"
    command = "" if holder.command is None else f" command={escape_line(holder.command)}"
    return f"pid={holder.pid} alive={'yes' if holder.alive else 'no'}{since}{command}"
