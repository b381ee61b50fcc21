"""``quire record``: what arrives over the network or on stdin, as messages."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

import quire
from quire._formats import CHRONICLE, format_of
from quire.cli.arguments import PATH, value_errors_as_usage
from quire.cli.errors import INTERRUPTED, print_error
from quire.cli.progress import Progress
from quire.cli.write import open_target, roll_cycle_of
from quire.recording import StreamRecorder, TcpRecorder, UdpRecorder
from quire.recording.addresses import Address, parse_address, show_address
from quire.recording.framing import FRAMINGS
from quire.recording.recorder import MAX_BYTES, Recorder

_COUNT_S: Final = 0.1
_OPTIONS: Final[dict[str, dict[str, str]]] = {
    "udp": {"receive_buffer": "receive_buffer_bytes"},
    "tcp": {
        "framing": "framing",
        "max_clients": "max_clients",
        "idle_timeout": "idle_timeout_s",
    },
    "stdin": {"framing": "framing"},
}
"""Of each transport, its options and the arguments that they are."""


def address_of(value: str) -> Address:
    """
    Return the address that an option gives.

    Raises:
        click.BadParameter: It is none.

    """
    try:
        return parse_address(value)
    except ValueError:
        expected = "HOST:PORT, such as 127.0.0.1:9000, or a port alone"
        raise click.BadParameter(f"{value!r} is no {expected}") from None


@click.command()
@click.argument("path", type=PATH, metavar="DEST")
@click.option("--udp", type=address_of, metavar="[HOST:]PORT", help="Record datagrams.")
@click.option(
    "--tcp", type=address_of, metavar="[HOST:]PORT", help="Record what clients of this port send."
)
@click.option("--stdin", is_flag=True, help="Record stdin until it ends.")
@click.option(
    "--framing",
    type=click.Choice([*FRAMINGS]),
    help="Where messages of --tcp and --stdin begin.  [default: lines]",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    default=MAX_BYTES,
    show_default=True,
    metavar="BYTES",
    help="The longest message.",
)
@click.option(
    "--receive-buffer",
    type=click.IntRange(min=1, max=2**30),
    metavar="BYTES",
    help="Size of the receive buffer of --udp.  [default: 4194304]",
)
@click.option(
    "--max-clients",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many clients --tcp has at once.  [default: 100]",
)
@click.option(
    "--idle-timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Disconnect clients that send nothing for so long.",
)
@click.option("--create", is_flag=True, help="Create the queue if there is none.")
@click.option("--roll-cycle", type=roll_cycle_of, metavar="NAME", help="Roll cycle of a new queue.")
def record(path: Path, **options: Any) -> None:  # noqa: ANN401
    """
    Append what arrives over UDP, TCP or stdin to a queue.

    A message has exactly the bytes of a datagram, or of a line without its line end; with
    --framing length, four bytes, big-endian, precede each message and say how long it is. Empty
    and longer messages are refused and counted, datagrams that the system dropped are counted. A
    TCP client that sends a message that is too long is disconnected; the others do not notice.

    Without HOST it listens on 127.0.0.1; port 0 takes a free one. Anyone who reaches the port
    writes to the queue. Runs until stdin ends, or SIGINT (Ctrl-C) or SIGTERM: what was received up
    to then is written, and the counts are shown.

    \b
    Examples:
      quire record ticks --create --udp 0.0.0.0:9000
      quire record orders --tcp 9001 --framing length
      tail -F access.log | quire record requests --create --stdin
    """  # noqa: D301 - click reads the backspace
    make = _recorder(options)
    with (
        value_errors_as_usage(),
        open_target(path, options["roll_cycle"], create=options["create"]) as queue,
    ):
        if (found := format_of(str(path))) != CHRONICLE:
            text = "only a Chronicle Queue can be recorded to"
            raise quire.UnsupportedError(f"{text}: format={found} path={path}")
        with queue.appender() as appender, Progress() as progress:
            ended_by = asyncio.run(_run(make(appender), progress))
    if ended_by == signal.SIGINT:
        raise click.exceptions.Exit(INTERRUPTED)


def _recorder(options: dict[str, Any]) -> Callable[[quire.Appender], Recorder]:
    """
    Return what makes the recorder that was asked for.

    Raises:
        click.UsageError: None was, or several, or with an option of another.

    """
    asked = [name for name in _OPTIONS if options[name]]
    if len(asked) != 1:
        raise click.UsageError("give one of --udp, --tcp and --stdin")
    (name,) = asked
    more = {"max_bytes": options["max_bytes"]}
    for option in {it for names in _OPTIONS.values() for it in names}:
        if options[option] is None:
            continue
        if option not in _OPTIONS[name]:
            raise click.UsageError(f"--{option.replace('_', '-')} does not go with --{name}")
        more[_OPTIONS[name][option]] = options[option]
    if name == "stdin":
        return lambda appender: StreamRecorder(appender, sys.stdin.fileno(), **more)
    make = UdpRecorder if name == "udp" else TcpRecorder
    return lambda appender: make(appender, *options[name], **more)


async def _run(recorder: Recorder, progress: Progress) -> int | None:
    """Record until the input ends or a signal asks to end, which is returned."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    try:
        with _signals(stopped):
            async with recorder:
                _say_where(recorder)
                running = asyncio.create_task(recorder.run())
                ends: set[asyncio.Future[Any]] = {stopped, running}
                while not (stopped.done() or running.done()):
                    await asyncio.wait(ends, timeout=_COUNT_S, return_when="FIRST_COMPLETED")
                    progress.count(recorder.counts.written)
                if stopped.done():
                    running.cancel()
                else:
                    await running
    finally:
        progress.clear()
        print_error(str(recorder.counts))
    return stopped.result() if stopped.done() else None


def _say_where(recorder: Recorder) -> None:
    if isinstance(recorder, UdpRecorder):
        granted = recorder.receive_buffer_bytes
        print_error(f"listening: udp={show_address(recorder.address)} receive_buffer={granted}")
    elif isinstance(recorder, TcpRecorder):
        print_error(f"listening: tcp={show_address(recorder.address)}")


@contextmanager
def _signals(stopped: asyncio.Future[int]) -> Generator[None]:
    """Have the first SIGINT or SIGTERM ask to end; the second one acts as usual."""
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
