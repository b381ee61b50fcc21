"""The journal of a run, as a queue of any format; its messages are BinaryWire in each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import quire
from demo.events import DAY_MS
from quire.formats.adapters import adapter_named, adapter_of, numbering_of
from quire.formats.detection import CHRONICLE, Format
from quire.metrics import Metrics
from quire.vanilla import FileOptions

ROLL_CYCLE: Final = "FAST_DAILY"

# A day's events fit in one block; the default would make each of the sparse files look huge.
BLOCK_BYTES: Final = 1 << 20
_INDEX_BYTES: Final = 1 << 16
_PAGE_BYTES: Final = 1 << 24
_open: Callable[..., quire.Queue] = quire.open  # of the format that the options name
_MAKE: Final[dict[Format, Callable[..., quire.Queue]]] = {
    "chronicle": quire.open,
    "vanilla": quire.vanilla.open,
    "quick-queue": quire.quick_queue.open,
}
_OPTIONS: Final[dict[Format, dict[str, Any]]] = {
    "chronicle": {"roll_cycle": ROLL_CYCLE, "block_bytes": BLOCK_BYTES, "metrics": True},
    "vanilla": {"files": FileOptions(index_block_bytes=_INDEX_BYTES, data_block_bytes=BLOCK_BYTES)},
    "quick-queue": {"page_bytes": _PAGE_BYTES},
}


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
        adapter = adapter_named(self.kind)
        if not adapter.has_cycles:
            return None
        return "directory" if adapter.is_folder else "file"

    @property
    def stores_of_days(self) -> str:
        """As above, for more than one."""
        return {"file": "daily files", "directory": "daily directories", None: "days"}[
            self.store_of_day
        ]

    @property
    def has_life(self) -> bool:
        """Whether the format has metrics, consumer groups and retention."""
        return adapter_named(self.kind).is_wire

    def create(self, clock: quire.ManualClock) -> quire.Queue:
        """Make the queue; its directory does not exist or is empty."""
        options = _OPTIONS[self.kind]
        if adapter_named(self.kind).has_cycles:
            options = options | {"clock": clock}
        return _MAKE[self.kind](self.path, **options)

    def open(self, *, read_only: bool) -> quire.Queue:
        """Open the queue, which may have no message yet."""
        return _open(
            self.path,
            format=self.kind,
            create=False,
            read_only=read_only,
            metrics=self.has_life or None,
        )

    def metrics(self, queue: quire.Queue) -> Metrics:
        """Return what the processes of the queue counted so far."""
        return queue.metrics() if isinstance(queue, quire.JournalQueue) else Metrics()

    def count(self, queue: quire.Queue) -> int:
        """Return how many events there are, of a Chronicle Queue."""
        return queue.entry_count if isinstance(queue, quire.JournalQueue) else 0

    def acknowledged_index(self, queue: quire.Queue) -> int | None:
        """Return the index of the last event that a replica has; None before the first."""
        return queue.last_acknowledged_index if isinstance(queue, quire.JournalQueue) else None

    def tailer(self, queue: quire.Queue, name: str) -> quire.Tailer:
        """Return a tailer, by name where the format keeps positions."""
        return queue.tailer(name if adapter_of(queue).has_tailer_names else None)

    def write(self, appender: quire.Appender, event: Mapping[str, Any]) -> int:
        """Append an event, and return its index."""
        if isinstance(appender, quire.JournalAppender):
            return appender.write_map(event)
        return appender.write_bytes(quire.types.parse_json(json.dumps(event)))

    def read(self, tailer: quire.Tailer) -> Mapping[str, Any] | None:
        """Return the next event, or None when nothing is there yet."""
        if isinstance(tailer, quire.JournalTailer):
            return tailer.read_map()
        payload = tailer.read_bytes()
        return None if payload is None else json.loads(quire.types.to_json(payload))

    def day_of(self, queue: quire.Queue, tailer: quire.Tailer, event: Mapping[str, Any]) -> int:
        """Return the day since 1970 of the event that was read last: of its cycle, if any."""
        last: int | None = getattr(tailer, "last_read_index", None)
        if self.store_of_day is None or last is None:
            return int(event["actual"] or event["sched"]) // DAY_MS
        return numbering_of(queue).to_cycle(last)

    @property
    def place(self) -> tuple[str, dict[str, str]]:
        """What Spark reads it by: its path, and options."""
        return str(self.path), {}


@dataclass(frozen=True, slots=True)
class ServedJournal(Journal):
    """
    A queue of events that is used through a server alone, whose clock is the machine's.

    Attributes:
        address: The address of the queue.
        token: What the server asks for.

    """

    address: str = ""
    token: str = field(default="", repr=False)

    @property
    def store_of_day(self) -> str | None:
        """Nothing separates the days: all messages are appended today."""
        return None

    @property
    def has_life(self) -> bool:
        """No metrics, and no files that could be copied and pruned."""
        return False

    def create(self, clock: quire.ManualClock) -> quire.Queue:
        """Make the queue at the server."""
        del clock
        return _open(self.address, token=self.token)

    def open(self, *, read_only: bool) -> quire.Queue:
        """Open the queue, which may have no message yet."""
        return _open(self.address, token=self.token, read_only=read_only, create=False)

    @property
    def place(self) -> tuple[str, dict[str, str]]:
        """What Spark reads it by: its address, and the token."""
        return self.address, {"token": self.token}

    def write_all(self, appender: quire.Appender, events: Iterable[Mapping[str, Any]]) -> int:
        """Append at least one event, many in one command; return the index of the last."""
        payloads = (quire.types.parse_json(json.dumps(event)) for event in events)
        return appender.write_many(payloads) or 0
