"""Progress of a verb on stderr: a bar on a terminal; plain lines, a minute apart, elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from quire._common.terminal import escape_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_COUNTS_BETWEEN: Final = 256
_BAR_AFTER_S: Final = 0.2
_LINES_EVERY_S: Final = 60.0


class Progress:
    """What a verb is doing, from the second moment on; a context manager clears it."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self._is_terminal = sys.stderr.isatty()
        self._counted = 0
        self._bar: Bar | None = None
        self._wait()

    def __enter__(self) -> Self:
        """Show nothing yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """Clear the line."""
        self.clear()

    def count(self, messages: int) -> None:
        """Show how many messages were processed; cheap enough to call for each of them."""
        if messages >= self._counted + _COUNTS_BETWEEN:
            self._counted = messages
            self.show(f"{messages:,} messages")

    def show(self, what: str, done: int = 0, total: int | None = None) -> None:
        """Show *what* is being done, and how far it is if there is a *total*."""
        is_due = time.monotonic() >= self._due_s
        if self._is_terminal and (is_due or self._bar is not None):
            if self._bar is None:
                self._bar = _started(has_total=total is not None)
            description = escape_line(what)
            self._bar.update(
                self._bar.task_ids[0], description=description, completed=done, total=total
            )
        elif is_due:
            share = f" {done:,} of {total:,}" if total is not None else ""
            sys.stderr.write(f"quire: {escape_line(what)}{share}\n")
            sys.stderr.flush()
            self._wait()

    def clear(self) -> None:
        """Remove the bar until there is more to show."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            self._wait()

    def _wait(self) -> None:
        self._due_s = time.monotonic() + (_BAR_AFTER_S if self._is_terminal else _LINES_EVERY_S)


def _started(*, has_total: bool) -> Bar:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns: list[ProgressColumn] = [TextColumn("{task.description}", markup=False)]
    if has_total:
        columns += [BarColumn(), TaskProgressColumn(), TimeRemainingColumn()]
    else:
        columns.insert(0, SpinnerColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("")
    bar.start()
    return bar
