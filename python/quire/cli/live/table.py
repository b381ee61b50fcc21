"""A list of lines with a cursor; a line is redrawn only if it changes."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

_ALARM = Style(color="red", bold=True)
_CURSOR = Style(reverse=True)


class Table(ScrollView):
    """Named lines, one of which is selected."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Messages"),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move(-1000000)", show=False),
        Binding("end", "move(1000000)", show=False),
    ]

    class Selected(Message):
        """Sent when another line is selected."""

    class Opened(Message):
        """
        Sent when a line is opened.

        Args:
            name: The name of the line.

        """

        def __init__(self, name: str) -> None:
            """Keep the name."""
            super().__init__()
            self.name = name

    def __init__(self) -> None:
        """Start without lines."""
        super().__init__()
        self._names: list[str] = []
        self._lines: list[tuple[str, bool]] = []
        self._row = 0

    @property
    def selected(self) -> str | None:
        """The name of the selected line; None if there are no lines."""
        return self._names[self._row] if self._names else None

    def show(self, lines: dict[str, tuple[str, bool]]) -> None:
        """Show lines: a text, and whether it is an alarm. The selection follows the name."""
        names, selected, before = [*lines], self.selected, self._lines
        self._lines = [*lines.values()]
        if names == self._names:
            for row, (new, old) in enumerate(zip(self._lines, before, strict=True)):
                if new != old:
                    self.refresh_line(row)
            return
        self._names = names
        self._row = names.index(selected) if selected in lines else min(self._row, len(names) - 1)
        self._row = max(0, self._row)
        self.virtual_size = Size(self.size.width, len(names))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen."""
        row = y + self.scroll_offset.y
        width, style = self.size.width, self.rich_style
        if row >= len(self._lines):
            return Strip.blank(width, style)
        text, is_alarm = self._lines[row]
        if is_alarm:
            style += _ALARM
        if row == self._row:
            style += _CURSOR
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)

    def action_open(self) -> None:
        """Open the selected line."""
        if self.selected is not None:
            self.post_message(self.Opened(self.selected))

    def action_move(self, lines: int) -> None:
        """Select another line."""
        self._select(self._row + lines)

    def action_page(self, pages: int) -> None:
        """Select a line on the next or previous page."""
        self._select(self._row + pages * max(1, self.size.height - 1))

    def on_click(self, event: events.Click) -> None:
        """Select the line under the mouse; open it if it was already selected."""
        row = event.y + self.scroll_offset.y
        if row == self._row:
            self.action_open()
        elif row < len(self._names):
            self._select(row)

    def _select(self, row: int) -> None:
        before, self._row = self._row, max(0, min(row, len(self._names) - 1))
        if self._row != before:
            self.refresh_line(before)
            self.refresh_line(self._row)
            self.scroll_to_region(Region(0, self._row, 1, 1), animate=False)
            self.post_message(self.Selected())
