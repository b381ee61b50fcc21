"""``quire record``: appends messages that arrive over the network or on stdin."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

import quire
from quire.cli.exit_codes import INTERRUPTED, print_error
from quire.cli.output.progress import Progress
from quire.cli.parameters import PATH, NumberRange, SizeRange, address_like, value_errors_as_usage
from quire.cli.verbs.write import open_target, roll_cycle_of
from quire.formats.adapters import adapter_at, adapter_named
from quire.formats.detection import FORMATS, Format
from quire.recording import StreamRecorder, TcpRecorder, UdpRecorder
from quire.recording.addresses import Address, parse_url, show_address, show_url
from quire.recording.framing import FRAMINGS
from quire.recording.recorder import MAX_BYTES, Recorder

_COUNT_S: Final = 0.1
_OPTIONS: Final[dict[str, dict[str, str]]] = {
    "udp": {"receive_buffer": "receive_buffer_bytes"},
    "tcp": {
        "framing": "framing",
        "max_clients": "max_clients",
        "idle_timeout": "idle_timeout_s",
        "append_unfinished": "append_unfinished",
    },
    "websocket": {
        "max_clients": "max_clients",
        "idle_timeout": "idle_timeout_s",
        "origin": "origins",
    },
    "stdin": {"framing": "framing"},
}
"""The options of each transport, and the recorder's arguments that they become."""

address_of: Final = address_like("127.0.0.1:9000")


def websocket_of(value: str) -> Address | str:
    """
    Return the address, or the URL of a WebSocket, that an option gives.

    Raises:
        click.BadParameter: The value is neither an address nor the URL of a WebSocket.

    """
    if "://" not in value:
        return address_of(value)
    try:
        return parse_url(value)
    except ValueError:
        shown = value.rpartition("@")[2]  # a password stays out of logs
        raise click.BadParameter(
            f"{shown!r} is not the URL of a WebSocket, ws://... or wss://..."
        ) from None


@click.command()
@click.argument("path", type=PATH, metavar="DEST")
@click.option("--udp", type=address_of, metavar="[HOST:]PORT", help="Record datagrams.")
@click.option(
    "--tcp",
    type=address_of,
    metavar="[HOST:]PORT",
    help="Record messages that clients of this port send.",
)
@click.option(
    "--websocket",
    type=websocket_of,
    metavar="[HOST:]PORT|URL",
    help="Record messages that WebSocket clients of this port, or the server at this URL, send.",
)
@click.option("--stdin", is_flag=True, help="Record stdin until it ends.")
@click.option(
    "--framing",
    type=click.Choice([*FRAMINGS]),
    help="How messages of --tcp and --stdin are delimited.  [default: lines]",
)
@click.option(
    "--max-bytes",
    type=SizeRange(min=1),
    default=MAX_BYTES,
    show_default=True,
    metavar="SIZE",
    help="The length of the longest message: 65536, 32MiB.",
)
@click.option(
    "--receive-buffer",
    type=SizeRange(min=1, max=2**30),
    metavar="SIZE",
    help="Size of the receive buffer of --udp.  [default: 4194304]",
)
@click.option(
    "--max-clients",
    type=click.IntRange(min=1),
    metavar="N",
    help="The most clients connected to a port at once.  [default: 100]",
)
@click.option(
    "--idle-timeout",
    type=NumberRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Disconnect clients that send nothing for this long.",
)
@click.option(
    "--append-unfinished",
    is_flag=True,
    default=None,
    help="Append the last line of a --tcp client even without a line end: it may be cut off.",
)
@click.option(
    "--origin",
    multiple=True,
    metavar="ORIGIN",
    help="Let web pages of this origin connect to --websocket. Repeatable.",
)
@click.option("--create", is_flag=True, help="Create the queue if it does not exist.")
@click.option(
    "--queue-format",
    type=click.Choice(FORMATS),
    help="The format of a new queue.  [default: chronicle]",
)
@click.option("--roll-cycle", type=roll_cycle_of, metavar="NAME", help="Roll cycle of a new queue.")
def record(path: Path, **options: Any) -> None:  # noqa: ANN401
    """
    Append messages that arrive over UDP, TCP, WebSocket or stdin to a queue.

    A message has exactly the bytes of a datagram, of a WebSocket message, or of a line without its
    line end; with --framing length, four big-endian bytes before each message hold its length.
    Messages that are empty or too long are refused and counted; datagrams that the system dropped
    are counted. A client that sends a message that is too long is disconnected; other clients are
    not affected.

    Without HOST it listens on 127.0.0.1; port 0 selects a free port. Anyone who can reach the port
    can write to the queue. --key-file encrypts messages: a new queue is created encrypted; a queue
    of plain messages is refused, unless --allow-plain leaves those as they are. Runs until stdin
    ends, the server at URL closes the connection, or SIGINT (Ctrl-C) or SIGTERM arrives. All
    messages received by then are written, and the counts are shown.

    \b
    Examples:
      quire record ticks --create --udp 0.0.0.0:9000
      quire record orders --tcp 9001 --framing length
      quire record trades --create --websocket wss://feed.example.com/trades
      tail -F access.log | quire record requests --create --stdin
    """  # noqa: D301 - click reads the backspace
    name, make = _recorder(options)
    kind: Format | None = options["queue_format"]
    if options["roll_cycle"] is not None and not adapter_named(kind).is_wire:
        raise click.UsageError(f"--roll-cycle does not go with --queue-format {kind}")
    adapter = adapter_at(path)
    if adapter is not None and not adapter.is_written:
        raise quire.errors.UnsupportedError(
            f"cannot write to an Indexed Chronicle, which Quire can only read: path={path}"
        )
    with (
        value_errors_as_usage(),
        open_target(path, options["roll_cycle"], kind, create=options["create"]) as queue,
        queue.appender() as appender,
        Progress() as progress,
    ):
        ended_by = asyncio.run(_run(name, make(appender), progress))
    if ended_by == signal.SIGINT:
        raise click.exceptions.Exit(INTERRUPTED)


def _recorder(options: dict[str, Any]) -> tuple[str, Callable[[quire.Appender], Recorder]]:
    """
    Return the requested transport, and a function that creates its recorder.

    Raises:
        click.UsageError: Not exactly one transport was given, or an option of another transport
            was given.

    """
    asked = [name for name in _OPTIONS if options[name]]
    if len(asked) != 1:
        raise click.UsageError("give exactly one of --udp, --tcp, --websocket and --stdin")
    (name,) = asked
    is_url = isinstance(options[name], str)
    known = {} if is_url else _OPTIONS[name]
    more = {"max_bytes": options["max_bytes"]}
    for option in {it for names in _OPTIONS.values() for it in names}:
        if options[option] in {None, ()}:
            continue
        if option not in known:
            what = f"--{name} URL" if is_url else f"--{name}"
            raise click.UsageError(f"--{option.replace('_', '-')} does not go with {what}")
        more[known[option]] = options[option]
    if name == "stdin":
        return name, lambda appender: StreamRecorder(appender, sys.stdin.fileno(), **more)
    where: Address | tuple[str] = (options[name],) if is_url else options[name]
    make = _class_of(name, is_url=is_url)
    return name, lambda appender: make(appender, *where, **more)


def _class_of(name: str, *, is_url: bool) -> Callable[..., Recorder]:
    if name == "udp":
        return UdpRecorder
    if name == "tcp":
        return TcpRecorder
    module = import_websocket("quire.recording.websocket")
    found: type[Recorder] = module.WebSocketFeedRecorder if is_url else module.WebSocketRecorder
    return found


def import_websocket(module: str) -> Any:  # noqa: ANN401 - a module
    """
    Import a module that needs websockets.

    Raises:
        click.ClickException: The package websockets is not installed.

    """
    try:
        return import_module(module)
    except ImportError as error:
        text = "WebSocket needs websockets: pip install 'quire[record]'"
        raise click.ClickException(text) from error


async def _run(name: str, recorder: Recorder, progress: Progress) -> int | None:
    """Record until the input ends or a signal arrives; return that signal."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    try:
        with _signals(stopped):
            running = asyncio.create_task(_record(name, recorder))
            ends: set[asyncio.Future[Any]] = {stopped, running}
            while not (stopped.done() or running.done()):
                await asyncio.wait(ends, timeout=_COUNT_S, return_when="FIRST_COMPLETED")
                progress.count(recorder.counts.written)
            if stopped.done():
                running.cancel()
            with suppress(asyncio.CancelledError):
                await running
    finally:
        progress.clear()
        print_error(str(recorder.counts))
    return stopped.result() if stopped.done() else None


async def _record(name: str, recorder: Recorder) -> None:
    """Record until the input ends; if cancelled, append everything received by then."""
    async with recorder:
        _say_where(name, recorder)
        await recorder.run()


def _say_where(name: str, recorder: Recorder) -> None:
    if isinstance(recorder, UdpRecorder):
        granted = recorder.receive_buffer_bytes
        print_error(f"listening: udp={show_address(recorder.address)} receive_buffer={granted}")
    elif (address := getattr(recorder, "address", None)) is not None:
        print_error(f"listening: {name}={show_address(address)}")
    elif (url := getattr(recorder, "url", None)) is not None:
        print_error(f"connected: {name}={show_url(url)}")


@contextmanager
def _signals(stopped: asyncio.Future[int]) -> Generator[None]:
    """Let the first SIGINT or SIGTERM end the recording; the second one acts as usual."""
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        if not stopped.done():
            stopped.set_result(number)
        remove()

    def remove() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, partial(stop, number))
    try:
        yield
    finally:
        remove()
