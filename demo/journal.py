"""The journal of a run, as a queue of any format; its messages are BinaryWire in each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import quire
from demo.events import DAY_MS
from quire._formats import CHRONICLE, QUICK_QUEUE, VANILLA, Format
from quire.metrics import Metrics
from quire.ranges.numbering import Numbering

ROLL_CYCLE: Final = "FAST_DAILY"

# A day's events fit in one block; the default would make each of the sparse files look huge.
BLOCK_BYTES: Final = 1 << 20
_INDEX_BYTES: Final = 1 << 16
_PAGE_BYTES: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Journal:
    """
    A queue of events.

    Attributes:
        path: Its directory.
        kind: Its format.

    """

    path: Path
    kind: Format = CHRONICLE

    @property
    def store_of_day(self) -> str | None:
        """What holds the messages of a day; None if nothing separates them."""
        return {CHRONICLE: "file", VANILLA: "directory"}.get(self.kind)

    @property
    def stores_of_days(self) -> str:
        """As above, for more than one."""
        return {CHRONICLE: "daily files", VANILLA: "daily directories"}.get(self.kind, "days")

    @property
    def has_life(self) -> bool:
        """Whether the format has metrics, consumer groups and retention."""
        return self.kind == CHRONICLE

    def create(self, clock: quire.ManualClock) -> quire.Queue:
        """Make the queue; its directory does not exist or is empty."""
        made: object
        if self.kind == VANILLA:
            made = quire.open(
                self.path,
                format="vanilla",
                clock=clock,
                index_block_bytes=_INDEX_BYTES,
                data_block_bytes=BLOCK_BYTES,
            )
        elif self.kind == QUICK_QUEUE:
            made = quire.open(self.path, format="quick-queue", page_bytes=_PAGE_BYTES)
        else:
            made = quire.open(
                self.path,
                roll_cycle=ROLL_CYCLE,
                block_bytes=BLOCK_BYTES,
                clock=clock,
                metrics=True,
            )
        return cast("quire.Queue", made)

    def open(self, *, read_only: bool) -> quire.Queue:
        """Open the queue, which may have no message yet."""
        opened: object = quire.open(  # pyright: ignore[reportUnknownVariableType]
            self.path,
            format=cast("Any", self.kind),
            create=False,
            read_only=read_only,
            metrics=self.has_life or None,
        )
        return cast("quire.Queue", opened)  # pyright: ignore[reportUnnecessaryCast]

    def metrics(self, queue: quire.Queue) -> Metrics:
        """Return what the processes of the queue counted so far."""
        return queue.metrics() if self.has_life else Metrics()

    def tailer(self, queue: quire.Queue, name: str) -> quire.Tailer:
        """Return a tailer, by name where the format keeps positions."""
        return queue.tailer() if self.kind == QUICK_QUEUE else queue.tailer(name)

    def write(self, appender: quire.Appender, event: Mapping[str, Any]) -> int:
        """Append an event, and return its index."""
        if self.kind == CHRONICLE:
            return appender.write_map(event)
        return appender.write_bytes(quire.types.parse_json(json.dumps(event)))

    def read(self, tailer: quire.Tailer) -> Mapping[str, Any] | None:
        """Return the next event, or None when nothing is there yet."""
        if self.kind == CHRONICLE:
            return tailer.read_map()
        payload = tailer.read_bytes()
        return None if payload is None else json.loads(quire.types.to_json(payload))

    def day_of(self, queue: quire.Queue, tailer: quire.Tailer, event: Mapping[str, Any]) -> int:
        """Return the day since 1970 of the event that was read last: of its cycle, if any."""
        if self.store_of_day is None:
            return int(event["actual"] or event["sched"]) // DAY_MS
        return Numbering.of(queue).to_cycle(tailer.last_read_index or 0)
