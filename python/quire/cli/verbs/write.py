"""``quire write``: lines and files as messages."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol, cast, runtime_checkable

import click

import quire
from quire.cli.exit_codes import INTERRUPTED, error_text, print_error
from quire.cli.output.progress import Progress
from quire.cli.parameters import QUEUE, open_place, reference_of, value_errors_as_usage
from quire.cli.reading.inputs import INPUTS, Input, Item, Target
from quire.cli.reading.sent_batches import SentBatches
from quire.cli.remote_options import Place
from quire.errors import MalformedInputError
from quire.formats.adapters import adapter_of
from quire.formats.detection import Format, refuse_part
from quire.formats.remote import AnyRemoteAppender
from quire.sealed.key_ring import default_allows_plain, default_ring

_SHOWN: Final = 60
_FORMAT_OF: Final = {
    ".txt": "text",
    ".hex": "hex",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".yaml": "yaml",
    ".yml": "yaml",
}


def roll_cycle_of(value: str) -> quire.RollCycle:
    """
    Return the roll cycle of this name.

    Raises:
        click.BadParameter: No roll cycle has this name.

    """
    try:
        return quire.RollCycle(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@runtime_checkable
class Counted(Target, Protocol):
    """What messages are written to, and what is asked how far that is."""

    @property
    def last_index_appended(self) -> int | None:
        """The index of the last message; None if there is none yet."""
        ...


class _IndexOfWrites:
    """An appender of a format where a write returns the index, and nothing else does."""

    def __init__(self, appender: quire.Appender) -> None:
        self._appender = appender
        self.last_index_appended: int | None = None

    def write_bytes(self, data: bytes, /) -> None:
        self.last_index_appended = self._appender.write_bytes(data)

    def write_text(self, text: str, /) -> None:
        self.last_index_appended = self._appender.write_text(text)


class Writer:
    """Writes items as messages, and reports malformed ones."""

    def __init__(
        self,
        appender: Counted,
        method: str | None,
        target: Target | None = None,
        *,
        skip: bool,
    ) -> None:
        """Begin with nothing written."""
        self._target: Target = target or appender
        self.skipped = 0
        self._appender = appender
        self._counted: tuple[int, int | None] = (0, None)  # and the last index so far
        self._method = method
        self._skip = skip
        self._progress = Progress()

    @property
    def written(self) -> int:
        """How many items were appended, also the one after which an interrupt came."""
        if isinstance(self._appender, SentBatches):
            return self._appender.written
        count, last = self._counted
        return count + (self._appender.last_index_appended != last)

    def write_all(self, source: Input, path: str) -> None:
        """
        Write each item of a file, or of stdin where *path* is ``-``.

        Raises:
            click.ClickException: An item is not a message, or could not be appended.

        """
        with click.open_file(path, "rb") as stream:
            item = Item(0, b"")
            for item in source.items(stream):
                with self._placed(path, item):
                    self._put(source, path, item)
            with self._placed(path, item):
                self._settle()

    @contextmanager
    def _placed(self, path: str, item: Item) -> Generator[None]:
        """Have errors of appends say where the item comes from."""
        try:
            yield
        except (quire.QuireError, OSError) as error:
            place = self._place(path, item, error)
            raise click.ClickException(f"{error_text(error)} {place}") from error

    def _put(self, source: Input, path: str, item: Item) -> None:
        if isinstance(self._appender, SentBatches):
            self._appender.line = item.line
        try:
            source.put(self._target, self._method, item.data)
        except (ValueError, quire.errors.WireError) as error:
            self._settle()
            self._refuse(path, item, error)
        else:
            self._counted = self.written, self._appender.last_index_appended
            self._progress.count(self.written)

    def _settle(self) -> None:
        """Return when everything before is appended."""
        if isinstance(self._appender, SentBatches):
            self._appender.flush()

    def end(self) -> str:
        """Return what was done."""
        self._progress.clear()
        last = self._appender.last_index_appended
        skipped = f" skipped={self.skipped}" if self.skipped else ""
        return f"written={self.written}{skipped}" + ("" if last is None else f" last={last:#x}")

    def _place(self, path: str, item: Item, error: Exception) -> str:
        known = self._appender.failed_line if isinstance(self._appender, SentBatches) else None
        line = f"line={item.line if known is None else known}"
        if isinstance(error, MalformedInputError):
            line = f"line={item.line + error.line} column={error.column}"
        return f"file={path} {line} written={self.written}"

    def _refuse(self, path: str, item: Item, error: Exception) -> None:
        text = item.data[:_SHOWN].decode("utf-8", "backslashreplace")
        more = "…" if len(item.data) > _SHOWN else ""
        wrong = f"{error}: {self._place(path, item, error)} text={text + more!r}"
        if not self._skip:
            raise click.ClickException(wrong)
        self._progress.clear()
        print_error(wrong)
        self.skipped += 1


@click.command()
@click.argument("path", type=QUEUE, required=False)
@click.argument(
    "files",
    nargs=-1,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="[FILE]...",
)
@click.option(
    "--format",
    "style",
    type=click.Choice([*INPUTS]),
    help="Input format. Default: by the file's suffix, else yaml.",
)
@click.option("--text", "as_text", is_flag=True, help="The same as --format text.")
@click.option("--hex", "as_hex", is_flag=True, help="The same as --format hex.")
@click.option(
    "-d", "directory", type=QUEUE, metavar="PATH", help="The queue; every argument is a FILE."
)
@click.option("-m", "--method", metavar="NAME", help="Write each item as a call of this method.")
@click.option(
    "-i",
    "--interface",
    type=reference_of,
    metavar="MODULE:NAME",
    help="Declares the method and the types of its arguments.",
)
@click.option("--create", is_flag=True, help="Create the queue if it does not exist.")
@click.option(
    "--roll-cycle",
    type=roll_cycle_of,
    metavar="NAME",
    help="Roll cycle of a new queue.",
)
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="What to do at a malformed item.",
)
@click.option("--sync", is_flag=True, help="Sync before exiting, so that everything is durable.")
def write(path: Place | None, files: tuple[str, ...], style: str | None, **more: Any) -> None:  # noqa: ANN401
    """
    Append messages from files or stdin to a queue.

    Items before a malformed one stay written; the error says how many. -d, -m and -i work as in
    Java's ChronicleWriterMain: with -d, the queue is created, and messages have the same bytes.
    --key-file encrypts messages: a new queue is created encrypted; a queue of plain messages is
    refused, unless --allow-plain leaves those as they are.

    \b
    yaml   each document is a message; lines with --- separate them
    jsonl  each line is a message
    text   each line is a text value
    hex    each line is the bytes of a message
    raw    each file is the bytes of a message

    \b
    Examples:
      quire read orders --no-index | quire write copy --create
      echo '{"symbol": "EURUSD", "size": 3}' | quire write orders --format jsonl --method buy
      quire write quire://127.0.0.1:7000/orders order.yaml --token-file writer.token
      quire write orders --text --method say < lines.txt
      quire write -d orders -m buy order.yaml
      quire write orders --hex --on-error skip dump.hex
    """  # noqa: D301 - click reads the backspace
    method: str | None = more["method"]
    place, files = _place(path, more["directory"], files)
    style = _one_style(style, text=more["as_text"], hexadecimal=more["as_hex"])
    sources = [(file, INPUTS[style or _by_name(file)]) for file in files or ("-",)]
    for _, source in sources:
        if method is not None and not source.takes_method:
            raise click.UsageError(f"--method needs values, and {source.name} is bytes")
    if more["interface"] is not None and method is None:
        raise click.UsageError("--interface needs --method")
    create = more["create"] or more["directory"] is not None
    with (
        open_target(place, more["roll_cycle"], create=create, buffer_mode="none") as queue,
        queue.appender() as appender,
        ExitStack() as stack,
    ):
        counted = stack.enter_context(_counted(appender))
        caller = _caller(appender, counted)
        target = stack.enter_context(_target(caller, more["interface"], method))
        called = counted if target is caller else target
        writer = Writer(counted, method, called, skip=more["on_error"] == "skip")
        try:
            for file, source in sources:
                writer.write_all(source, file)
            if more["sync"]:
                adapter_of(appender).sync(appender)
        except KeyboardInterrupt:
            stack.close()
            with suppress(OSError):
                print_error(f"interrupted: {writer.end()}")
            raise click.exceptions.Exit(INTERRUPTED) from None
        ended = writer.end()
    click.echo(ended)
    if writer.skipped:
        raise click.exceptions.Exit(1)


def _place(
    path: Place | None, directory: Place | None, files: tuple[str, ...]
) -> tuple[Place, tuple[str, ...]]:
    """
    Return the queue, and the files to read.

    Raises:
        click.UsageError: No queue was given, or the file to read does not exist.

    """
    if directory is None:
        if path is None:
            raise click.UsageError("Missing argument 'PATH'.")
        return path, files
    given = () if path is None else (str(path),)
    for file in given:
        if file != "-" and not Path(file).is_file():
            raise click.UsageError(f"no such file: {file}")
    return directory, (*given, *files)


@contextmanager
def _counted(appender: quire.Appender) -> Generator[Counted]:
    """Yield what messages are written to."""
    if not isinstance(appender, AnyRemoteAppender):
        yield appender if isinstance(appender, Counted) else _IndexOfWrites(appender)
        return
    from quire.remote import RemoteAppender

    if not isinstance(appender, RemoteAppender) or not appender.is_wire:
        yield cast("Counted", appender)
        return
    sent = SentBatches(appender)
    try:
        yield sent
    finally:
        sent.close()


def _caller(appender: quire.Appender, counted: Counted) -> quire.Appender:
    """Return what calls of an interface are appended by: to a server, several at once."""
    if not isinstance(counted, SentBatches):
        return appender
    from quire.cli.reading.sent_calls import SentCalls
    from quire.remote import RemoteAppender

    return SentCalls(cast("RemoteAppender", appender), counted)


@contextmanager
def _target(
    appender: quire.Appender,
    interface: Any,  # noqa: ANN401 - a class of the caller
    method: str | None,
) -> Generator[Target]:
    """Yield what appends messages: the appender, or calls of an interface."""
    if interface is None or method is None:
        yield appender
        return
    from quire.cli.reading.typed import TypedCalls

    journal: Any = appender  # one of another format says why it has no calls
    with TypedCalls(journal, interface, method) as calls:
        yield calls


def _one_style(style: str | None, *, text: bool, hexadecimal: bool) -> str | None:
    """
    Return the one format that was asked for, if any.

    Raises:
        click.UsageError: More than one format was given.

    """
    asked = {} if style is None else {f"--format {style}": style}
    asked |= ({"--text": "text"} if text else {}) | ({"--hex": "hex"} if hexadecimal else {})
    if len({*asked.values()}) > 1:
        raise click.UsageError(f"{' and '.join(asked)} do not go together")
    return next(iter(asked.values()), None)


def _by_name(file: str) -> str:
    """
    Return the format by a file's suffix; YAML for stdin and names without a suffix.

    Raises:
        click.UsageError: The suffix is of an unknown format.

    """
    suffix = Path(file).suffix.lower()
    if suffix and suffix not in _FORMAT_OF:
        raise click.UsageError(
            f"no format is known by this file's name: file={file}"
            f" (give --format: {', '.join(INPUTS)}; text makes a message of each line)"
        )
    return _FORMAT_OF.get(suffix, "yaml")


def open_target(
    path: Place,
    roll_cycle: quire.RollCycle | None,
    kind: Format | None = None,
    *,
    create: bool,
    **options: Any,  # noqa: ANN401 - those of quire.open
) -> quire.Queue:
    """
    Open the queue; one that was not asked for is not made, as its path may be mistyped.

    Who gives a key gets no plain message written: the queue is made encrypted, or refused.
    """
    if isinstance(path, Path):
        refuse_part(str(path))
    may_create = create or roll_cycle is not None
    asked: dict[str, object] = {"roll_cycle": roll_cycle, "format": kind, "key": default_ring()}
    asked["allow_plain"] = default_allows_plain() or None
    options |= {name: value for name, value in asked.items() if value is not None}
    try:
        with value_errors_as_usage():
            queue = open_place(path, create=may_create, **options)
    except quire.errors.NotAQueueError as error:
        if may_create:
            raise
        raise click.ClickException(f"{error} (--create makes a queue)") from error
    return queue
