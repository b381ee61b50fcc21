"""``quire publish``: the messages of a queue, sent out over the network or on stdout."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from quire.cli.exit_codes import INTERRUPTED, OK, print_error
from quire.cli.output.progress import Progress
from quire.cli.parameters import PATH, open_read_only, parse_point, value_errors_as_usage
from quire.cli.reading.presence import Presence
from quire.cli.signals import exit_on_sigterm
from quire.cli.streams import check_reader
from quire.cli.verbs.record import address_of, import_websocket, websocket_of
from quire.recording.addresses import show_address
from quire.recording.framing import FRAMINGS
from quire.recording.publishing import (
    Output,
    Rate,
    connection,
    datagrams,
    messages,
    stdout,
)
from quire.replaying.pacing import Pace, Replay

_LINES: Final = "lines"


class _Speed(NamedTuple):
    """When messages are sent; both None: as fast as possible."""

    pace: Pace | None = None
    rate: Rate | None = None


def speed_of(value: str) -> _Speed:
    """
    Return the speed of ``original``, ``10x``, ``5000`` (messages a second) and ``max``.

    Raises:
        click.BadParameter: The value is not a speed.

    """
    try:
        if value == "max":
            return _Speed()
        if value == "original":
            return _Speed(pace=Pace(1.0))
        if value.endswith("x"):
            return _Speed(pace=Pace(float(value[:-1])))
        return _Speed(rate=Rate(float(value)))
    except ValueError:
        expected = "pace, such as original, 10x, 5000 (messages a second) or max"
        raise click.BadParameter(f"{value!r} is not a {expected}") from None


class Publisher:
    """
    Sends messages, and counts them.

    Args:
        output: Where to.
        speed: When.
        skip: Whether to leave out messages that cannot be sent.

    """

    def __init__(self, output: Output, speed: _Speed, *, skip: bool) -> None:
        self._output, self._speed, self._skip = output, speed, skip
        self._progress = Progress()
        self._is_paced = speed != _Speed()
        self._collected = 0
        self._collected_last: int | None = None
        self._published = 0
        self._last: int | None = None
        self.skipped = 0

    def send_all(self, plan: Replay, *, follow: bool) -> None:
        """
        Send the messages of a range, and later ones if *follow*.

        Raises:
            click.ClickException: A message cannot be sent, the receiver closed the connection, or
                the queue was removed.

        """
        waits = partial(self._wait, Presence([Path(plan.source.path)]))
        for message in messages(plan, follow=follow, waits=waits):
            if (why := self._output.misfit(message.data)) is not None:
                self._refuse(f"cannot publish a message: index={message.index:#x} {why}")
                continue
            if self._speed.rate is not None:
                self._speed.rate.wait()
            self._send(message.index, message.data)
        self._flush()

    def end(self) -> str:
        """Return the counts as text."""
        self._progress.clear()
        last = "" if self._last is None else f" last={self._last:#x}"
        return f"published={self._published} skipped={self.skipped}{last}"

    def _send(self, index: int, payload: bytes) -> None:
        with _failures(self._output):
            is_sent = self._output.send(payload)
        self._collected += 1
        self._collected_last = index
        if is_sent:
            self._sent()
        elif self._is_paced:
            self._flush()

    def _wait(self, presence: Presence) -> None:
        self._flush()
        presence.check()
        if self._output.receiver is None:
            check_reader()

    def _flush(self) -> None:
        with _failures(self._output):
            self._output.flush()
        self._sent()

    def _sent(self) -> None:
        self._published, self._last = self._collected, self._collected_last
        self._progress.count(self._published)

    def _refuse(self, wrong: str) -> None:
        self._flush()
        if not self._skip:
            raise click.ClickException(wrong)
        self._progress.clear()
        print_error(wrong)
        self.skipped += 1


@contextmanager
def _failures(output: Output) -> Generator[None]:
    """Add the receiver to errors of its connection."""
    try:
        yield
    except OSError as error:
        if output.receiver is None:
            raise
        text = f"cannot send: {output.receiver} reason={error.strerror or error}"
        raise click.ClickException(text) from error


@click.command()
@click.argument("path", type=PATH, metavar="SRC")
@click.option(
    "--udp", type=address_of, metavar="[HOST:]PORT", help="Send each message as a datagram."
)
@click.option("--tcp", type=address_of, metavar="[HOST:]PORT", help="Connect, and send messages.")
@click.option(
    "--websocket",
    type=websocket_of,
    metavar="[HOST:]PORT|URL",
    help="Connect to a WebSocket server, and send messages.",
)
@click.option("--text", is_flag=True, help="Send WebSocket messages as text; default: binary.")
@click.option("--stdout", "to_stdout", is_flag=True, help="Write messages to stdout.")
@click.option(
    "--framing",
    type=click.Choice([*FRAMINGS]),
    help="How messages of --tcp and --stdout are delimited.  [default: lines]",
)
@click.option(
    "--from", "start", type=parse_point, metavar="POINT", help="Start at this index or time."
)
@click.option(
    "--to", "end", type=parse_point, metavar="POINT", help="Stop before this index or time."
)
@click.option("-f", "--follow", is_flag=True, help="Wait for new messages.")
@click.option(
    "--pace",
    "speed",
    type=speed_of,
    default="max",
    show_default=True,
    metavar="PACE",
    help="original, 10x ten times as fast, 5000 messages a second, or max.",
)
@click.option("--time-field", metavar="NAME", help="The field that holds the event time.")
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="What to do at a message that cannot be sent.",
)
def publish(
    path: Path,
    start: int | datetime | None,
    end: int | datetime | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """
    Send the messages of a queue over UDP, TCP or WebSocket, or to stdout.

    Each message's bytes are sent in the form that quire record reads: as a datagram, as a WebSocket
    message, as a line, or with --framing length after four big-endian bytes that hold its length. A
    message that cannot be sent, because it is too long for a datagram, contains a line end, or with
    --text is not UTF-8, is an error that names its index. A slow receiver over TCP or WebSocket
    slows the sender down; nothing is dropped.

    For POINT, --time-field and the original pace, see replay. SIGINT (Ctrl-C) and SIGTERM end it;
    stderr shows the index of the last message that was passed to the system.

    \b
    Examples:
      quire publish ticks --udp 127.0.0.1:9000 --pace original --time-field time
      quire publish orders --tcp backup:9001 --framing length --follow
      quire publish trades --websocket wss://example.com/trades --text
      quire publish requests --stdout --pace 100 | my-program
    """  # noqa: D301 - click reads the backspace
    if options["follow"] and end is not None:
        raise click.UsageError("--follow never ends: leave out --to")
    speed: _Speed = options["speed"]
    opening = _output(options)
    with open_read_only(path) as queue, value_errors_as_usage():
        plan = Replay(queue, start, end, pace=speed.pace, time_field=options["time_field"])
        with opening as output, exit_on_sigterm(OK):
            publisher = Publisher(output, speed, skip=options["on_error"] == "skip")
            try:
                publisher.send_all(plan, follow=options["follow"])
            except KeyboardInterrupt:
                raise click.exceptions.Exit(INTERRUPTED) from None
            finally:
                with suppress(OSError):
                    print_error(publisher.end())
    if publisher.skipped:
        raise click.exceptions.Exit(1)


def _output(options: dict[str, Any]) -> AbstractContextManager[Output]:
    """
    Return a context manager that opens the requested output.

    Raises:
        click.UsageError: Not exactly one transport was given, or an option of another transport
            was given.

    """
    given = {name: options[name] for name in ("udp", "tcp", "websocket", "to_stdout")}
    asked = [name for name, value in given.items() if value]
    if len(asked) != 1:
        raise click.UsageError("give exactly one of --udp, --tcp, --websocket and --stdout")
    (name,), where = asked, given[asked[0]]
    framing: str | None = options["framing"]
    if framing is not None and name in {"udp", "websocket"}:
        raise click.UsageError(f"--framing does not go with --{name}")
    if options["text"] and name != "websocket":
        raise click.UsageError("--text goes with --websocket")
    if name == "udp":
        return datagrams(where)
    if name == "tcp":
        return connection(where, framing or _LINES)
    if name == "websocket":
        module = import_websocket("quire.recording.websocket_output")
        url = where if isinstance(where, str) else f"ws://{show_address(where)}/"
        opening: AbstractContextManager[Output] = module.websocket(url, text=options["text"])
        return opening
    return stdout(framing or _LINES)
