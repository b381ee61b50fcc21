"""The screen of ``quire top``: a table of queues, and the details of the selected one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from typing import ClassVar, Final

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, Input, Static

from quire.cli.live.arrivals import Messages
from quire.cli.live.sample import OK, Sample
from quire.cli.live.sampler import Sampler
from quire.cli.live.table import Table
from quire.cli.live.trail import SORTS, Trail, details, heading, line, ordered, summary
from quire.cli.reading.sources import Source

_DETAILS: Final = 11  # lines
_OF_TABLE: Final = {"sort", "filter", "pause", "details", "rescan", "clear"}


class Top(App[None]):
    """
    Shows queues, which a thread samples periodically.

    Args:
        sampler: Takes the samples.
        first: The first samples.
        interval: The seconds between samples.

    """

    TITLE = "quire top"
    ENABLE_COMMAND_PALETTE = False
    CSS = f"""
    #summary {{ height: 1; text-style: bold; }}
    #heading {{ height: 1; background: $panel; }}
    Table {{ height: 1fr; scrollbar-size: 1 1; }}
    #details {{ height: {_DETAILS}; border-top: solid $primary; }}
    #filter {{ display: none; height: 1; border: none; padding: 0; }}
    #filter.shown {{ display: block; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("s", "sort", "Sort"),
        Binding("slash", "filter", "Filter"),
        Binding("p,space", "pause", "Pause"),
        Binding("d", "details", "Details"),
        Binding("r", "rescan", "Rescan"),
        Binding("escape", "clear", "Clear", show=False),
    ]

    def __init__(self, sampler: Sampler, first: list[Sample], interval: float) -> None:
        """Show the first samples."""
        super().__init__()
        self._sampler = sampler
        self._samples = first
        self._interval = interval
        self._trails: dict[str, Trail] = {}
        self._sources: dict[str, Source] = {}
        self._sort = next(iter(SORTS))
        self._pattern = ""
        self._is_paused = False
        self._busy = asyncio.Lock()
        self._table = Table()
        self._texts: dict[str, str] = {}
        self._timer: Timer | None = None
        self._keep(first)

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static(id="summary", markup=False)
        yield Static(id="heading", markup=False)
        yield self._table
        yield Static(id="details", markup=False)
        yield Input(id="filter", placeholder="part of a name", compact=True)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Start taking samples; on SIGTERM, quit and restore the terminal."""
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGTERM, self.call_later, self.action_quit
        )
        self._show()
        self._table.focus()
        self._timer = self.set_interval(self._interval, self.take_sample)

    def on_resize(self, _event: events.Resize) -> None:
        """Fit the columns to the width."""
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys of the table while another screen covers it."""
        del parameters
        return action not in _OF_TABLE or len(self.screen_stack) == 1

    async def take_sample(self) -> None:
        """Take the next samples and show them, unless the last ones are still being taken."""
        if self._is_paused or self._busy.locked():
            return
        async with self._busy:
            self._samples = await asyncio.to_thread(self._sampler.sample)
            self._keep(self._samples)
        self._show()

    async def stop(self) -> None:
        """Stop sampling; return once no sample is being taken."""
        if self._timer is not None:
            self._timer.stop()
        async with self._busy:
            self._is_paused = True

    async def action_quit(self) -> None:
        """Quit."""
        await self.stop()
        self.exit()

    def action_sort(self) -> None:
        """Sort by the next column."""
        names = [*SORTS]
        self._sort = names[(names.index(self._sort) + 1) % len(names)]
        self._show()

    def action_filter(self) -> None:
        """Let the user enter a part of a name."""
        self._input().add_class("shown")
        self._input().focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the queues whose names contain what was typed."""
        self._pattern = event.value
        self._show()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Keep the filter."""
        self._input().remove_class("shown")
        self._table.focus()

    def action_clear(self) -> None:
        """Show all queues."""
        self._input().value = ""
        self._input().remove_class("shown")
        self._table.focus()

    def action_pause(self) -> None:
        """Pause or resume sampling."""
        self._is_paused = not self._is_paused
        self._show()

    def action_details(self) -> None:
        """Hide or show the details below the table."""
        panel = self._first().query_one("#details", Static)
        panel.display = not panel.display

    async def action_rescan(self) -> None:
        """Look for new queues."""
        async with self._busy:
            await asyncio.to_thread(self._sampler.rescan)
        await self.take_sample()

    def on_table_opened(self, event: Table.Opened) -> None:
        """Open the messages of a queue."""
        sample = next((it for it in self._samples if it.queue == event.name), None)
        if sample is not None and sample.state == OK:
            self.push_screen(Messages(self._sources[sample.queue], sample.queue))

    def on_table_selected(self, _event: Table.Selected) -> None:
        """Show the details of the selected queue."""
        self._show_details()

    def _keep(self, samples: list[Sample]) -> None:
        self._sources = self._sampler.sources()  # a queue that is shown may be forgotten
        self._trails = {it.queue: self._trails.get(it.queue, Trail()) for it in samples}
        for sample in samples:
            self._trails[sample.queue].add(sample)

    def _show(self) -> None:
        """Show the samples."""
        width = self.size.width - 1  # minus the scroll bar of the table
        chosen = ordered(self._samples, self._sort, self._pattern)
        self._table.show({it.queue: line(it, self._trails[it.queue], width) for it in chosen})
        pause = "PAUSED · " if self._is_paused else ""
        above = summary(self._samples, self._sort, self._pattern, self._interval)
        self._update("summary", pause + above)
        self._update("heading", heading(width))
        self._show_details()

    def _show_details(self) -> None:
        name = self._table.selected
        sample = next((it for it in self._samples if it.queue == name), None)
        lines: Iterable[str] = ()
        if sample is not None:
            lines = details(sample, self._trails[sample.queue], self.size.width)
        self._update("details", "\n".join([*lines][: _DETAILS - 1]))

    def _update(self, name: str, text: str) -> None:
        """Show a text in a place of fixed size if it has changed."""
        if self._texts.get(name) != text:
            self._texts[name] = text
            self._first().query_one(f"#{name}", Static).update(text, layout=False)

    def _first(self) -> Screen[object]:
        """Return the screen with the table, which another screen may cover."""
        return self.screen_stack[0]

    def _input(self) -> Input:
        return self._first().query_one("#filter", Input)


def run(sampler: Sampler, first: list[Sample], interval: float) -> None:
    """Show the screen until the user quits."""
    Top(sampler, first, interval).run()
