"""Addresses as ``quire://HOST:PORT/QUEUE`` on the command line, and how they are reached."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click
from click.core import ParameterSource

from quire.errors import OptionsError
from quire.opening.settings import TOKEN_VARIABLE

if TYPE_CHECKING:
    from quire.remote.address import Tls
    from quire.remote.place import RemotePlace

Place: TypeAlias = "Path | RemotePlace"
"""A path of this machine, or a place at a server."""

_NAMES: Final = ("token", "token_file", "tls", "authority", "client_certificate")
_LONGEST_TOKEN: Final = 4096


def remote_options() -> list[click.Option]:
    """Return the options of a verb that takes ``quire://`` addresses: the same in each."""
    keep: dict[str, Any] = {"expose_value": False, "is_eager": True, "callback": _keep}
    file = click.Path(dir_okay=False, path_type=Path)
    return [
        click.Option(
            ["--token"],
            metavar="TOKEN",
            envvar=TOKEN_VARIABLE,
            help="The token for the server of a quire:// address. Everyone on this machine can see"
            f" it in the list of processes: prefer {TOKEN_VARIABLE} or --token-file.",
            **keep,
        ),
        click.Option(["--token-file"], type=file, help="A file with the token.", **keep),
        click.Option(
            ["--tls"],
            is_flag=True,
            help="Use TLS, and trust this system's certificate authorities.",
            **keep,
        ),
        click.Option(
            ["--authority"],
            type=file,
            help="Use TLS, and trust this certificate authority (PEM).",
            **keep,
        ),
        click.Option(
            ["--client-certificate"],
            type=file,
            help="A client certificate and its key (PEM), for servers that require one.",
            **keep,
        ),
    ]


def _keep(ctx: click.Context, option: click.Parameter, value: object) -> None:
    given = ctx.meta.setdefault(__name__, {})
    given[option.name] = value
    given[f"{option.name} source"] = ctx.get_parameter_source(option.name or "")


def place_of(value: str, ctx: click.Context | None) -> RemotePlace:
    """
    Return the place that an address names, with the options that were given.

    Raises:
        click.BadParameter: The address is not valid.
        click.UsageError: The options contradict one another, or hiredis is missing.

    """
    if find_spec("hiredis") is None:
        raise click.UsageError("quire:// addresses need hiredis: pip install 'quire[remote]'")
    from quire.remote.place import RemotePlace

    given: Mapping[str, Any] = {} if ctx is None else ctx.meta.get(__name__, {})
    try:
        return RemotePlace.of(value, token=_token(given), tls=_tls(given))
    except OptionsError as error:
        raise click.BadParameter(str(error)) from None


def _token(given: Mapping[str, Any]) -> str | None:
    file: Path | None = given.get("token_file")
    if file is None:
        return given.get("token")
    if given["token source"] is ParameterSource.COMMANDLINE:
        raise click.UsageError("--token and --token-file do not go together")
    try:
        with file.open("rb") as opened:
            token = opened.read(_LONGEST_TOKEN).decode("ascii").strip()
    except OSError as error:
        raise click.UsageError(f"{error.strerror}: --token-file={file}") from None
    except UnicodeDecodeError:
        token = ""
    if not token or len(token.split()) > 1:
        raise click.UsageError(f"not a file with a token: --token-file={file} (expected one line)")
    return token


def _tls(given: Mapping[str, Any]) -> Tls:
    authority: Path | None = given.get("authority")
    trusted: Path | bool = given.get("tls", False) if authority is None else authority
    certificate: Path | None = given.get("client_certificate")
    if certificate is None:
        return trusted or None
    if not trusted:
        raise click.UsageError("--client-certificate needs --tls or --authority")
    from ssl import SSLError

    from quire.remote.address import client_context

    context = client_context(trusted)
    assert context is not None  # noqa: S101 - it trusts something
    try:
        context.load_cert_chain(certificate)
    except (OSError, SSLError) as error:
        raise click.UsageError(f"not a certificate with its key: {certificate}: {error}") from None
    return context
