"""The format of Vanilla Chronicles, as the rest of the package uses it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from quire._native import VanillaAppender, VanillaExcerpt, VanillaQueue, VanillaTailer
from quire.errors import UnsupportedError
from quire.formats.adapter import Adapter, Explained, Piece, Repaired, Snapshot, Verified
from quire.formats.detection import VANILLA as NAME
from quire.formats.numbering import Numbering, Periods

_DATA_FILE: Final = re.compile(r"data-(\d+)-\d+")
WHY_NO_GROUPS: Final = (
    "slow writers of a Vanilla Chronicle add to cycles that readers have left:"
    " consumption='queue' has a claim in each message, see VanillaTailer.claim"
)


class VanillaAdapter(Adapter[VanillaQueue]):
    """Vanilla Chronicle: a directory for each cycle, with data files of each writer."""

    name = NAME
    title = "Vanilla Chronicle"
    handles = (VanillaQueue, VanillaTailer, VanillaAppender)
    has_cycles = has_tailer_names = is_folder = has_late_appends = has_snapshots = True
    block_option = "data_block_bytes"
    # Not WEEKS: directories of weeks have the names of days, which readers would take them for.
    roll_cycles = {1_000: "SECONDS", 60_000: "MINUTES", 3_600_000: "HOURS", 86_400_000: "DAYS"}  # noqa: RUF012 - never changed
    shortest = 0
    why_no_groups = WHY_NO_GROUPS

    def open(self, path: str, *, read_only: bool = True) -> VanillaQueue:
        """Open a queue without options."""
        return VanillaQueue(path, read_only=read_only, create=not read_only)

    def appender(self, queue: VanillaQueue) -> VanillaAppender:
        """Return a new appender."""
        return VanillaAppender(queue)

    def tailer(self, queue: VanillaQueue) -> VanillaTailer:
        """Return a new tailer, at the first message."""
        return VanillaTailer(queue)

    def numbering(self, queue: VanillaQueue) -> Numbering:
        """Return how messages are numbered; a power cut leaves entries without a message."""
        return Numbering(queue.entries_per_cycle.bit_length() - 1, is_dense=False)

    def periods(self, queue: VanillaQueue) -> Periods:
        """Return when cycles start."""
        return Periods(0, queue.cycle_length_ms, queue.cycle_format)

    def cycles(self, queue: VanillaQueue) -> list[int]:
        """Return the cycles that have a directory."""
        return queue.cycles

    def count(self, queue: VanillaQueue, cycle: int) -> int:
        """Return the number of index entries of a cycle."""
        return queue._end_of_cycle(cycle)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def first_index(self, queue: VanillaQueue) -> int | None:
        """Return the index of the oldest message."""
        return queue.first_index

    def place(self, queue: VanillaQueue, cycle: int) -> Path:
        """Return the directory of a cycle."""
        return Path(queue.directory_for_cycle(cycle))

    def pieces(self, queue: VanillaQueue) -> Iterator[Piece]:
        """Yield the directory of each cycle, and how many threads have data files in it."""
        for cycle in queue.cycles:
            folder = self.place(queue, cycle)
            files = list[Path]()
            with suppress(FileNotFoundError, NotADirectoryError):  # removed a moment ago
                files = [file for file in folder.iterdir() if file.is_file()]
            threads = {found[1] for file in files if (found := _DATA_FILE.fullmatch(file.name))}
            name = folder.relative_to(queue.path).as_posix()
            yield Piece(name, files, cycle, {"threads": len(threads)})

    def named_tailers(self, queue: VanillaQueue) -> list[tuple[str, int]]:
        """Return the named tailers that have a file."""
        found = queue._named_positions()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return [(name, index or 0) for name, index in found]

    def excerpt(self, queue: VanillaQueue, index: int, data: bytes) -> VanillaExcerpt:
        """Return a message as a tailer would."""
        del queue
        return VanillaExcerpt(index, data)

    def longest(self, block_bytes: int) -> int:
        """Return the length of the longest message: a block without the word before it."""
        return min(block_bytes - 4, 2**30 - 1)

    def options_like(self, queue: VanillaQueue) -> dict[str, Any]:
        """Return the format, and what its cycles are like."""
        return self.identity(queue)

    def identity(self, queue: VanillaQueue) -> dict[str, Any]:
        """Return the format, and what its cycles are like."""
        return {
            "format": self.name,
            "cycle_format": queue.cycle_format,
            "cycle_length_ms": queue.cycle_length_ms,
            "entries_per_cycle": queue.entries_per_cycle,
        }

    def verify(self, path: str) -> Verified:
        """Compare the index of each cycle with its data files."""
        with self.open(path) as queue:
            return queue._verify()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def repair(self, path: str, *, timeout_ms: int, allow_network: bool) -> list[Repaired]:
        """Make lost or damaged index files again from the data files."""
        del timeout_ms
        with VanillaQueue(path, create=False, allow_network=allow_network) as queue:
            rebuilt = queue._rebuild_index()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            return [
                (
                    _mended(recovered, dropped),
                    queue.directory_for_cycle(cycle),
                    None,
                    f"index rebuilt: {recovered} messages recovered, {dropped} entries dropped"
                    + (", messages after free entries have other indexes" if moved else ""),
                )
                for cycle, _, recovered, dropped, moved in rebuilt
                if recovered or dropped or moved
            ]

    def snapshot(self, queue: VanillaQueue) -> Snapshot:
        """Return what a consistent copy of a queue holds."""
        found = Snapshot(*queue._snapshot())  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        if not found.files:
            raise UnsupportedError(
                "the names of the cycles' directories are of no known pattern:"
                f" path={Path(queue.path).absolute()} (stop the writers and copy the directory)"
            )
        return found

    def explain(self, queue: VanillaQueue, index: int) -> Explained | None:
        """Return what surrounds the bytes of a message."""
        return queue._explain(index)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def _mended(recovered: int, dropped: int) -> str:
    """Return the kind of finding that a rebuilt index had."""
    if recovered:
        return "record-without-entry"
    return "entry-without-record" if dropped else "free-entries"


VANILLA = VanillaAdapter()
