"""``quire token``: manage who may use the queues of `quire serve`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire._common.units import duration_us
from quire.cli.exit_codes import OK
from quire.cli.output.row_formats import print_rows
from quire.cli.parameters import PATH
from quire.cli.shared_options import row_format_option
from quire.cli.verb_group import WholeSummaries
from quire.errors import OptionsError

if TYPE_CHECKING:
    from quire.server.tokens import Token, TokenFile


@click.group(cls=WholeSummaries)
def token() -> None:
    """Create, list and revoke the tokens that clients of quire serve need."""


def _tokens_option(command: Callable[..., int]) -> Callable[..., int]:
    return click.option(
        "--tokens",
        type=PATH,
        metavar="FILE",
        help="The file of tokens.  [default: $XDG_CONFIG_HOME/quire/tokens]",
    )(command)


def _rights_option(right: str, what: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option(f"--{right}", multiple=True, metavar="PATTERN", help=what)


@token.command()
@click.argument("name")
@_tokens_option
@_rights_option("read", "Queues that it may read, as 'prices/*'. Repeatable.")
@_rights_option("append", "Queues that it may append to.")
@_rights_option("create", "Queues that it may create.")
@_rights_option("manage", "Queues that it may trim, and whose groups it may reset or delete.")
@click.option("--expires", metavar="DURATION", help="How long the token is valid, as 30d or 12h.")
def add(  # noqa: PLR0913 - its options
    name: str,
    *,
    tokens: Path | None,
    read: tuple[str, ...],
    append: tuple[str, ...],
    create: tuple[str, ...],
    manage: tuple[str, ...],
    expires: str | None,
) -> int:
    """
    Create a token, and print it once: the file stores only its hash.

    \b
    Examples:
      quire token add reader --read 'prices/*' --expires 30d
      quire token add writer --append '*' --create '*' --read '*'
    """  # noqa: D301 - click reads the backspace
    try:
        seconds = None if expires is None else duration_us(expires) / 1e6
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--expires") from None
    with _options_as_usage():
        rights = {"read": read, "append": append, "create": create, "manage": manage}
        click.echo(_file(tokens).add(name, rights, seconds))  # type: ignore[arg-type]
    return OK


@token.command("list")
@_tokens_option
@row_format_option()
def list_tokens(*, tokens: Path | None, style: str) -> int:
    """List the tokens: their names, expiry dates and rights."""
    with _options_as_usage():
        found = _file(tokens).tokens()
    if style != "text":
        rows = (_facts(each, is_flat=style == "csv") for each in found)
        print_rows(style, ["name", "expires", "valid", "rights"], rows)
        return OK
    for each in found:
        expires = "never" if each.expires_s is None else _date(each.expires_s)
        state = "" if _is_valid(each) else " (expired)"
        click.echo(f"{each.name}  expires={expires}{state}  {_rights_text(each)}")
    return OK


@token.command()
@click.argument("name")
@_tokens_option
def revoke(name: str, *, tokens: Path | None) -> int:
    """Revoke a token: connections that use it are refused from now on."""
    with _options_as_usage():
        _file(tokens).revoke(name)
    return OK


def _file(given: Path | None) -> TokenFile:
    from quire.server.tokens import TokenFile, default_file

    return TokenFile(given or default_file())


def _facts(each: Token, *, is_flat: bool) -> dict[str, object]:
    rights = {right: [*patterns] for right, patterns in each.rights.items() if patterns}
    return {
        "name": each.name,
        "expires": None if each.expires_s is None else _date(each.expires_s),
        "valid": _is_valid(each),
        "rights": _rights_text(each) if is_flat else rights,
    }


def _rights_text(each: Token) -> str:
    return " ".join(
        f"{right}={','.join(patterns)}" for right, patterns in each.rights.items() if patterns
    )


def _is_valid(each: Token) -> bool:
    return each.is_valid(datetime.now(UTC).timestamp())


def _date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


@contextmanager
def _options_as_usage() -> Generator[None]:
    try:
        yield
    except OptionsError as error:
        raise click.UsageError(str(error)) from None
