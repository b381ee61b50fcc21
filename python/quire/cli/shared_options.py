"""Options that mean the same in every verb that has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import click

from quire.cli.exit_codes import FAILED, OK, print_error
from quire.cli.parameters import condition_of, names_of, parse_point, pattern_of

_Command = TypeVar("_Command", bound=Callable[..., Any])

ROW_FORMATS: Final = ("text", "yaml", "json", "jsonl", "csv", "arrow")
"""The formats of :mod:`quire.cli.output.row_formats`."""


def format_option(*styles: str, default: str) -> Callable[[_Command], _Command]:
    """Return ``--format``, passed on as *style*."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(styles),
        default=default,
        show_default=True,
        help="Output format.",
    )


def row_format_option(default: str = "text") -> Callable[[_Command], _Command]:
    """
    Return ``--format`` of a verb that prints rows.

    See :func:`quire.cli.output.row_formats.print_rows`.
    """
    return format_option(*ROW_FORMATS, default=default)


def on_damage_option() -> Callable[[_Command], _Command]:
    """Return ``--on-damage``."""
    return click.option(
        "--on-damage",
        type=click.Choice(["stop", "skip"]),
        default="stop",
        show_default=True,
        help="At a message that cannot be read: stop, or report it and go on.",
    )


def print_lost(lost: Iterable[object]) -> int:
    """Report skipped messages on stderr; return the exit code, which is 1 if there are any."""
    code = OK
    for part in lost:
        print_error(str(part))
        code = FAILED
    return code


def check_json(style: str, *, as_json: bool) -> None:
    """
    Refuse ``--json`` beside another ``--format``.

    Raises:
        click.UsageError: ``--json`` and another ``--format`` were given.

    """
    if as_json and style not in {"text", "json", "jsonl"}:
        raise click.UsageError(f"--json and --format {style} do not go together")


def range_options(command: _Command) -> _Command:
    """Add ``--from``, ``--to`` (exclusive) and ``--time-field``."""
    return _with(
        command,
        click.option(
            "--from", "from", type=parse_point, metavar="POINT", help="Start at this index or time."
        ),
        click.option(
            "--to", "to", type=parse_point, metavar="POINT", help="Stop before this index or time."
        ),
        click.option("--time-field", metavar="NAME", help="The field that holds the event time."),
    )


def columns_option() -> Callable[[_Command], _Command]:
    """Return ``--columns``."""
    return click.option(
        "--columns", type=names_of, metavar="NAMES", help="Only these fields, separated by commas."
    )


def filter_options(command: _Command) -> _Command:
    """Add ``--include``, ``--exclude``, ``--where`` and ``--columns``."""
    return _with(
        command,
        click.option(
            "-i",
            "--include",
            type=pattern_of,
            metavar="REGEX",
            multiple=True,
            help="Only messages that match. Repeatable: all patterns must match.",
        ),
        click.option(
            "-e",
            "--exclude",
            type=pattern_of,
            metavar="REGEX",
            multiple=True,
            help="Leave out messages that match. Repeatable.",
        ),
        click.option(
            "--where",
            type=condition_of,
            metavar="EXPRESSION",
            help="Only messages whose fields meet this condition.",
        ),
        columns_option(),
    )


def _with(command: _Command, *options: Callable[[_Command], _Command]) -> _Command:
    for option in reversed(options):
        command = option(command)
    return command
