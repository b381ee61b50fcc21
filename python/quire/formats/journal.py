"""The format of Chronicle Queue 5, as the rest of the package uses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quire._common import replication_file
from quire._native import Appender, Excerpt, Queue, Tailer, repair_journal, verify_journal
from quire.errors import CorruptError, UnsafePathError
from quire.formats.adapter import Adapter, End, Explained, HeldLock, Piece, Repaired, Verified
from quire.formats.detection import CHRONICLE
from quire.formats.numbering import Numbering, Periods, start_options
from quire.sealed.key_file import options_for

if TYPE_CHECKING:
    from quire.formats.columns import Columns

WRITE_LOCK: Final = "chronicle.write.lock"
APPEND_LOCK: Final = "chronicle.append.lock"
_STALE: Final = "stale-lock"
_FIELDLESS: Final = "FIELDLESS_BINARY"
_SHORTEST_OVERLAP: Final = 65_536
_LONGEST: Final = 2**30 - 1


def _is_replica(path: str) -> bool:
    """Whether the queue in a directory is a replica, or has a role that cannot be read."""
    try:
        found = replication_file.read(path)
    except CorruptError:
        return True
    except (OSError, UnsafePathError):
        return False
    return found is not None and found.role == "sink"


def held_lock(queue: Queue, key: str) -> HeldLock | None:
    """Return the holder of a lock of the table; None while it is free."""
    holder = queue.lock_holder(key)
    if holder is None:
        return None
    # Holders of the other locks leave no record.
    since_ms = (
        queue._lock_held_since_ms(holder[0])  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        if key == WRITE_LOCK
        else None
    )
    return HeldLock(key, *holder, since_ms)


class JournalAdapter(Adapter[Queue]):
    """Chronicle Queue 5: a roll file for each cycle."""

    name = CHRONICLE
    title = "Chronicle Queue"
    handles = (Queue, Tailer, Appender)
    is_wire = has_calls = has_cycles = has_tailer_names = has_listed_end = True
    block_option = "block_bytes"
    roll_cycles = {  # noqa: RUF012 - never changed
        1_000: "TEST_SECONDLY",
        60_000: "MINUTELY",
        300_000: "FIVE_MINUTELY",
        600_000: "TEN_MINUTELY",
        1_200_000: "TWENTY_MINUTELY",
        1_800_000: "HALF_HOURLY",
        3_600_000: "FAST_HOURLY",
        7_200_000: "TWO_HOURLY",
        14_400_000: "FOUR_HOURLY",
        21_600_000: "SIX_HOURLY",
        86_400_000: "FAST_DAILY",
        604_800_000: "WEEKLY",
    }

    def open(self, path: str, *, read_only: bool = True) -> Queue:
        """Open a queue without options."""
        options: dict[str, Any] = options_for(path, may_write=not read_only)
        return Queue(path, read_only=read_only, create=not read_only, **options)

    def appender(self, queue: Queue) -> Appender:
        """Return a new appender."""
        return Appender(queue)

    def tailer(self, queue: Queue) -> Tailer:
        """Return a new tailer, at the first message."""
        return Tailer(queue)

    def numbering(self, queue: Queue) -> Numbering:
        """Return how messages are numbered: as the roll cycle has it."""
        return Numbering(queue.roll_cycle.to_index(1, 0).bit_length() - 1)

    def periods(self, queue: Queue) -> Periods:
        """Return when cycles start: at the epoch, or at a time of day of a time zone."""
        zoned = None if queue.roll_time_zone == "UTC" else queue
        return Periods(queue.epoch_ms, queue.roll_cycle.length_ms, queue.roll_cycle.name, zoned)

    def cycles(self, queue: Queue) -> list[int]:
        """Return the cycles that have a roll file."""
        return queue.cycles

    def count(self, queue: Queue, cycle: int) -> int:
        """Return the sequence after the last message; 0 where the file is missing or being made."""
        ended = queue.end_of_cycle(cycle)
        return 0 if ended is None else ended[1]

    def first_index(self, queue: Queue) -> int | None:
        """Return the index of the oldest message; `Queue.first_index` skips damage."""
        found = (cycle for cycle in queue.cycles if self.count(queue, cycle))
        return next((queue.roll_cycle.to_index(cycle, 0) for cycle in found), None)

    def place(self, queue: Queue, cycle: int) -> Path:
        """Return the roll file of a cycle."""
        return Path(queue.file_for_cycle(cycle))

    def named_tailers(self, queue: Queue) -> list[tuple[str, int]]:
        """Return the named tailers that the table has."""
        return queue.named_tailers()

    def locks(self, queue: Queue) -> list[HeldLock]:
        """Return who holds the locks of the table."""
        found = (held_lock(queue, key) for key in (WRITE_LOCK, APPEND_LOCK))
        return [lock for lock in found if lock is not None]

    def refresh(self, queue: Queue) -> None:
        """List the directory again."""
        queue.refresh()

    def check_end(self, queue: Queue, index: int) -> None:
        """Check that the index of the last file names no message after this one."""
        queue._check_end(index)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def pieces(self, queue: Queue) -> Iterator[Piece]:
        """Yield the roll files."""
        for cycle in queue.cycles:
            file = self.place(queue, cycle)
            yield Piece(file.name, [file], cycle)

    def found_end(self, queue: Queue, cycle: int) -> End | None:
        """Return where the messages of a roll file seem to end."""
        found = queue.end_of_cycle(cycle)
        return None if found is None else End(*found)

    def end(self, queue: Queue, cycle: int) -> End | None:
        """Return where the messages of a roll file end; an error if the last one is not there."""
        end = self.found_end(queue, cycle)
        last = queue._write_position(cycle)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        if end is None or last is None:
            return None
        if last >= end.position and end.past:
            raise CorruptError(
                "messages are missing in the middle of the file, or its end is cut off:"
                f" file={queue.file_for_cycle(cycle)} position={end.position:#x}"
                f" last={last:#x}"
            )
        return end

    def position(self, queue: Queue, index: int) -> int | None:
        """Return where a message begins in its roll file."""
        return queue._position_of(index)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def excerpt(self, queue: Queue, index: int, data: bytes) -> Excerpt:
        """Return a message as a tailer would."""
        return Excerpt(index, data, queue.wire_type == _FIELDLESS)

    def write(self, appender: Appender, columns: Columns, note: bytes | None = None) -> int | None:
        """Append messages as they are, after a metadata document; return the index of the last."""
        return appender._write_column(  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            columns.offsets,
            columns.data,
            count=len(columns),
            start=0,
            wide=False,
            text=False,
            note=note,
        )

    def longest(self, block_bytes: int) -> int:
        """Return the length of the longest message: a quarter of a block."""
        return min(max(block_bytes // 4, _SHORTEST_OVERLAP), _LONGEST)

    def block_for(self, length: int, block_bytes: int) -> int:
        """Return a block that holds a message of this length: a given one, or a larger one."""
        while self.longest(block_bytes) < min(length, _LONGEST):
            block_bytes *= 2
        return block_bytes

    def options_like(self, queue: Queue) -> dict[str, Any]:
        """Return the roll cycle and when it starts, the wire type and the source id."""
        return {
            "roll_cycle": queue.roll_cycle,
            **start_options(queue),
            "wire_type": queue.wire_type,
            "source_id": queue.source_id,
        }

    def identity(self, queue: Queue) -> dict[str, Any]:
        """Return the roll cycle and its epoch."""
        return {"roll_cycle": queue.roll_cycle.name, "epoch_ms": queue.epoch_ms}

    def properties(self, queue: Queue) -> dict[str, Any]:
        """Return its roll cycle, when that starts, and what its messages are."""
        return {
            "format": self.name,
            "roll_cycle": queue.roll_cycle.name,
            "roll_length_ms": queue.roll_cycle.length_ms,
            "epoch_ms": queue.epoch_ms,
            "time_zone": queue.roll_time_zone,
            "wire_type": queue.wire_type,
            "source_id": queue.source_id,
        }

    def verify(self, path: str) -> Verified:
        """Check a queue, one of its files, or copies of some."""
        rows, files, messages, size = verify_journal(str(Path(path).absolute()))
        if _is_replica(path):  # a sink that has ended, or was killed, keeps the append lock
            rows = [it for it in rows if it[0] != _STALE or not it[3].startswith(APPEND_LOCK)]
        return rows, files, messages, size

    def repair(self, path: str, *, timeout_ms: int, allow_network: bool) -> list[Repaired]:
        """Repair headers, words of the index, and the table."""
        return repair_journal(
            path,
            timeout_ms=timeout_ms,
            allow_network=allow_network,
            is_replica=_is_replica(path),
        )

    def explain(self, queue: Queue, index: int) -> Explained | None:
        """Return what each byte of a message means, and which words lead to it."""
        return queue._explain(index)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


JOURNAL = JournalAdapter()
