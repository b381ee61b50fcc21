"""``quire serve``: serve the queues below a directory to clients on any machine."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from quire.cli.parameters import PATH, address_like, value_errors_as_usage
from quire.cli.until_signal import run_until_signal
from quire.errors import OptionsError
from quire.recording.addresses import Address, parse_address, show_address

_log = logging.getLogger("quire")
_EXAMPLE = "127.0.0.1:7000"


@click.command()
@click.argument("directory", type=PATH)
@click.option(
    "--listen",
    type=address_like(_EXAMPLE),
    metavar="ADDRESS",
    help="The address for clients: HOST:PORT or PORT; port 0 picks a free port."
    f"  [default: {_EXAMPLE}, unless another address is given]",
)
@click.option(
    "--flight",
    type=address_like("127.0.0.1:7001"),
    metavar="ADDRESS",
    help="The address for clients of Arrow Flight: HOST:PORT or PORT.",
)
@click.option(
    "--web",
    type=address_like("127.0.0.1:7080"),
    metavar="ADDRESS",
    help="The address of the page for browsers: HOST:PORT or PORT.",
)
@click.option(
    "--tokens",
    type=PATH,
    metavar="FILE",
    help="The file of quire token.  [default: $XDG_CONFIG_HOME/quire/tokens]",
)
@click.option("--certificate", type=PATH, help="The server's certificate, a PEM file.")
@click.option("--key", type=PATH, help="Its private key, a PEM file.")
@click.option(
    "--authority",
    type=PATH,
    help="Require client certificates signed by this authority, a PEM file.",
)
@click.option(
    "--insecure", is_flag=True, help="Serve beyond this machine without certificates or tokens."
)
@click.option(
    "--audit", type=PATH, metavar="QUEUE", help="Record in this queue which client did what."
)
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="PATTERN=ADDRESS",
    help="Redirect clients to another server for its queues, as 'orders/*=10.0.0.2:7000'."
    " Repeatable; the first pattern that matches applies.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="How many clients may be connected at once.",
)
def serve(  # noqa: PLR0913 - its options
    directory: Path,
    *,
    listen: Address | None,
    flight: Address | None,
    web: Address | None,
    tokens: Path | None,
    certificate: Path | None,
    key: Path | None,
    authority: Path | None,
    insecure: bool,
    audit: Path | None,
    peers: tuple[str, ...],
    max_connections: int,
) -> int:
    """
    Serve the queues below a directory to clients of Redis and Arrow Flight.

    Prints `listening ADDRESS` for each address, that of --listen first. A queue's name is its path
    below DIRECTORY. Any process on this machine may append to the queues and read them at the same
    time. Once the file of tokens exists, every client needs a token, as the password of any user or
    as a bearer token. Addresses beyond this machine require a certificate, and tokens or
    --authority. On SIGTERM the server answers the requests it has accepted, and exits with code 0.
    Sockets passed by systemd, named listen or web, replace the addresses.

    \b
    Examples:
      quire serve queues --listen 127.0.0.1:7000
      quire serve queues --listen 127.0.0.1:7000 --flight 127.0.0.1:7001
      quire serve queues --web 127.0.0.1:7080
      redis-cli -p 7000 XADD orders '*' symbol EURUSD price 1.1
      quire serve queues --listen 10.0.0.1:7000 --certificate node.pem --key node.key
      quire serve queues --listen 127.0.0.1:7000 --peer 'orders/*=127.0.0.1:7010'
    """  # noqa: D301 - click reads the backspace
    from quire.server import Certificates, Limits, Server, tls_context
    from quire.server.tokens import default_file

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # an error of ours says what its lines would
    sockets = _inherited({"listen": listen, "web": web})
    if listen is None and flight is None and web is None and not sockets:
        listen = parse_address(_EXAMPLE)
    host, port = listen or (None, 0)
    files = _certificates(certificate, key, authority)
    if tokens is not None and not tokens.exists():
        _log.warning(
            "the file of tokens does not exist, and until it does, no"
            " client needs a token: tokens=%s",
            tokens,
        )
    try:
        with value_errors_as_usage():
            server = Server(
                directory,
                host=host,
                port=port,
                flight=flight,
                web=web,
                tokens=tokens or default_file(),
                tls=None if files is None else tls_context(*files),
                certificates=None if files is None else Certificates(*files),
                insecure=insecure,
                audit=audit,
                limits=Limits(connections=max_connections),
                sockets=sockets,
                peers=peers,
            )
    except OptionsError as error:
        raise click.UsageError(str(error)) from None

    async def run() -> None:
        async with server:
            for address in server.addresses:
                click.echo(f"listening {show_address(address)}")
            sys.stdout.flush()
            await server.run_forever()

    try:
        return run_until_signal(run, _loop_factory())
    except OptionsError as error:  # a peer that is the server itself
        raise click.UsageError(str(error)) from None


def _inherited(addresses: dict[str, Address | None]) -> dict[str, socket.socket]:
    """Return the sockets that systemd hands over, which take the place of addresses."""
    from quire.server.inherited import inherited_sockets

    try:
        found = inherited_sockets()
    except OptionsError as error:
        raise click.UsageError(str(error)) from None
    for name in found:
        if addresses[name] is not None:
            raise click.UsageError(
                f"--{name} conflicts with a socket passed by systemd: omit --{name}"
            )
    return found


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's, if it is installed."""
    if find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    return factory


def _certificates(
    certificate: Path | None, key: Path | None, authority: Path | None
) -> tuple[Path, Path, Path | None] | None:
    if certificate is None and key is None and authority is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError("--certificate and --key go together")
    return certificate, key, authority
