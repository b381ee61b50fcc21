"""The screen of ``quire top`` with the messages of one queue as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, RichLog, Static

from quire._common.terminal import escape_line
from quire._common.units import short_size_text
from quire.cli.exit_codes import error_text
from quire.cli.output.message_formats import json_of, yaml_of
from quire.cli.output.stat_text import hex_text
from quire.cli.reading.sources import Source
from quire.errors import QuireError
from quire.formats.adapters import numbering_of, tailer_of
from quire.formats.protocols import AnyQueue, AnyTailer

_KEPT: Final = 1_000  # messages
_AT_ONCE: Final = 100
_INTERVAL_S: Final = 0.5
_LONGEST: Final = 1 << 16  # bytes of a message that is still decoded
_WIDEST: Final = 2_000  # characters of a message that are shown
_STYLES: Final[dict[str, Callable[[bytes], str]]] = {
    "json": json_of,
    "yaml": lambda data: " ".join(yaml_of(data).split("\n")),
    "hex": lambda data: data.hex(),
}


@dataclass(frozen=True, slots=True)
class Found:
    """A message."""

    index: int
    data: bytes


class Newest:
    """
    The newest messages of a queue, a bounded number at a time.

    Args:
        source: The queue.

    """

    def __init__(self, source: Source) -> None:
        """Start a few messages before the end."""
        self._queue: AnyQueue = source.open()
        self._tailer: AnyTailer = tailer_of(self._queue)
        self._numbering = numbering_of(self._queue)
        self._go_back()

    def read(self) -> tuple[bool, list[Found]]:
        """Return the new messages, and whether older ones of them were left out."""
        found = self._some()
        if len(found) < _AT_ONCE:
            return False, found
        more = self._some()
        if len(more) < _AT_ONCE:
            return False, [*found, *more]
        self._go_back()
        return True, self._some()

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()

    def _some(self) -> list[Found]:
        found = list[Found]()
        while len(found) < _AT_ONCE and (excerpt := self._tailer.read()) is not None:
            found.append(Found(excerpt.index, excerpt.data))
        return found

    def _go_back(self) -> None:
        self._tailer.to_end()
        end, numbering = self._tailer.index, self._numbering
        oldest = numbering.to_index(numbering.to_cycle(end), 0)
        start = max(oldest, end - (_AT_ONCE - 1) * numbering.step)
        if not self._tailer.move_to_index(start):
            self._tailer.to_end()


class Messages(Screen[None]):
    """
    Shows messages, the newest at the bottom.

    Args:
        source: The queue.
        name: Its name.

    """

    CSS = """
    #title { height: 1; text-style: bold; }
    RichLog { height: 1fr; scrollbar-size: 1 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back"),
        Binding("f", "format", "Format"),
        Binding("p,space", "pause", "Pause"),
    ]

    def __init__(self, source: Source, name: str) -> None:
        """Create the screen without opening the queue."""
        super().__init__()
        self._source = source
        self._queue_name = name
        self._newest: Newest | None = None
        self._found: list[Found] = []
        self._style = next(iter(_STYLES))
        self._is_paused = False
        self._busy = asyncio.Lock()

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static(id="title", markup=False)
        yield RichLog(max_lines=_KEPT, wrap=False, markup=False, highlight=False)
        yield Footer(compact=True)

    async def on_mount(self) -> None:
        """Start reading."""
        self._show_title()
        await self.read()
        self.set_interval(_INTERVAL_S, self.read)

    async def read(self) -> None:
        """Show the messages that have arrived."""
        if self._is_paused or self._busy.locked():
            return
        async with self._busy:
            try:
                left_out, found = await asyncio.to_thread(self._read)
            except (QuireError, OSError) as error:
                self._is_paused = True
                self._log().write(Text(escape_line(error_text(error)), "bold red"))
                return
        if left_out:
            self._log().write(Text("… too many to show all", "italic"))
        self._found = [*self._found, *found][-_KEPT:]
        self._write(found)

    def _read(self) -> tuple[bool, list[Found]]:
        if self._newest is None:
            self._newest = Newest(self._source)
        return self._newest.read()

    async def action_leave(self) -> None:
        """Go back to the queues."""
        async with self._busy:
            self._is_paused = True
            if self._newest is not None:
                self._newest.close()
                self._newest = None
        self.dismiss()

    def action_format(self) -> None:
        """Show the messages in the next format."""
        names = [*_STYLES]
        self._style = names[(names.index(self._style) + 1) % len(names)]
        self._log().clear()
        self._show_title()
        self._write(self._found)

    def action_pause(self) -> None:
        """Pause or resume reading."""
        self._is_paused = not self._is_paused
        self._show_title()

    def _write(self, found: list[Found]) -> None:
        for it in found:
            self._log().write(Text(f"{hex_text(it.index)}: {shown(it.data, self._style)}"))

    def _show_title(self) -> None:
        pause = "PAUSED · " if self._is_paused else ""
        title = f"{pause}{escape_line(self._queue_name)} · {self._style}"
        self.query_one("#title", Static).update(title)

    def _log(self) -> RichLog:
        return self.query_one(RichLog)


def shown(data: bytes, style: str) -> str:
    """Return a message on one line that is safe for a terminal."""
    if len(data) > _LONGEST:
        return f"{data[:32].hex()}… {short_size_text(len(data))}, too long to show"
    text = escape_line(_STYLES[style](data))
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"
