"""Checking what is sealed of a queue against the queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from quire._common.durable import SafeFolder
from quire.errors import CorruptError, QuireError, SealError, UnsafePathError
from quire.sealed.seal_chain import Chain, Checkpoint, SealedCycle, is_ahead, tree_of
from quire.sealed.seal_files import CHECKSUM_LEN, NONE_YET, SEALS, Checksums, read_chain
from quire.sealed.sealer import Step, steps_of
from quire.sealed.trees import root_of

if TYPE_CHECKING:
    from quire._native import Queue
    from quire.sealed.signing import Trust

Row = tuple[str, str, int | None, str, str]
"""Kind, file, position, found, expected."""


class Wanted(NamedTuple):
    """
    What seals have to show.

    Attributes:
        seals: There have to be some.
        trust: The key that has to have signed them.
        since: A checkpoint that has to be one of them.

    """

    seals: bool = False
    trust: Trust | None = None
    since: Checkpoint | None = None


def check(queue: Queue, folder: SafeFolder, wanted: Wanted) -> Iterator[Row]:
    """Yield what is wrong with the seals of a queue, or with what they say about it."""
    file = str(folder.path / SEALS)
    try:
        chain, problem = read_chain(folder)
    except (SealError, UnsafePathError, OSError) as error:
        yield "seals", file, None, str(error), "checkpoints"
        return
    if problem is not None:
        kind = "torn-seal" if problem.endswith("cut off") else "seals"
        yield kind, file, None, problem, "a checkpoint that follows the one before"
    if chain.newest is None:
        if wanted.seals:
            yield "no-seals", file, None, "no checkpoint", "one at least"
        return
    yield from _check_roots(chain, file)
    yield from _check_time(chain, file)
    yield from _check_wanted(chain, file, wanted)
    yield from _check_inserted(queue, chain, wanted)
    yield from _Messages(queue, folder, chain).check()


def _check_roots(chain: Chain, file: str) -> Iterator[Row]:
    """Yield whether the newest checkpoint is not the root of what is sealed."""
    newest = chain.newest
    if newest is not None and newest.root != root_of(tree_of(chain.cycles)):
        yield "seals", file, None, f"root={newest.root.hex()}", "the root of the cycles' roots"


def _check_time(chain: Chain, file: str) -> Iterator[Row]:
    """Yield whether the newest checkpoint says that it was made in the future."""
    newest = chain.newest
    if newest is not None and is_ahead(newest.time_ms):
        found = f"number={newest.number} time_ms={newest.time_ms}"
        yield "seal-time", file, None, found, "a time that is past"


def _check_inserted(queue: Queue, chain: Chain, wanted: Wanted) -> Iterator[Row]:
    """Yield unsigned cycles that lie between signed ones."""
    vouched = -1
    if wanted.since is not None and chain.has(wanted.since):
        vouched = wanted.since.number
    if wanted.trust is not None:
        with suppress(SealError):
            made = (it.checkpoint for it in chain.entries)
            signed = [it.number for it in made if wanted.trust.is_signed(it)]
            vouched = max([vouched, *signed])
    if vouched < 0:
        return
    for cycle, number in sorted(chain.inserted_after(vouched).items()):
        found = f"messages={chain.cycles[cycle].count} by checkpoint={number}"
        expected = f"a cycle without messages as of checkpoint={vouched}"
        yield "changed-message", _file_of(queue, cycle), None, found, expected


def _file_of(queue: Queue, cycle: int) -> str:
    """Return the file of a cycle, or the directory if its name cannot be known."""
    try:
        return queue.file_for_cycle(cycle)
    except (QuireError, ValueError):
        return queue.path


def _check_wanted(chain: Chain, file: str, wanted: Wanted) -> Iterator[Row]:
    since, trust = wanted.since, wanted.trust
    if since is not None and not chain.has(since):
        newest = chain.entries[-1].checkpoint
        found = f"checkpoints up to number={newest.number} queue={newest.queue.hex()}"
        expected = f"number={since.number} queue={since.queue.hex()} hash={since.hash().hex()}"
        yield "rolled-back", file, None, found, expected
    if trust is None:
        return
    key = trust.key_id.hex()
    try:
        signed = [it.checkpoint for it in chain.entries if trust.is_signed(it.checkpoint)]
        if since is not None and not trust.is_signed(since):
            yield "unsigned", file, None, "the checkpoint kept elsewhere is not", f"key={key}"
    except SealError as error:
        yield "forged", file, None, str(error), f"a signature by key={key}"
        return
    if not signed:
        yield "unsigned", file, None, "no checkpoint is signed by it", f"key={key}"
        return
    last = signed[-1]
    cycles = chain.cycles_at(last.number)
    if last.root != root_of(tree_of(cycles)):
        yield "forged", file, None, f"root={last.root.hex()}", "the root of the cycles' roots"
    later = len(chain.entries) - 1 - last.number
    if later:
        found = f"checkpoints={later} after number={last.number}"
        yield "unsigned-seals", file, None, found, f"a signature by key={key}"


class _Messages:
    """Compares messages with what is sealed of them."""

    def __init__(self, queue: Queue, folder: SafeFolder, chain: Chain) -> None:
        self._queue: Final = queue
        self._folder: Final = folder
        self._chain: Final = chain
        self._id: Final = chain.entries[-1].checkpoint.queue
        self._unsealed = 0
        self._first_unsealed: int | None = None

    def check(self) -> Iterator[Row]:
        there = self._queue.cycles
        sealed = self._chain.cycles
        yield from self._missing(there)
        newest = max(sealed, default=-1)
        for cycle in there:
            if cycle in sealed:
                yield from self._cycle(cycle)
            else:
                yield from self._without_seal(cycle, newest)
        if self._first_unsealed is not None:
            found = f"messages={self._unsealed} first={self._first_unsealed:#x}"
            yield "unsealed", self._queue.path, None, found, "a later seal"

    def _missing(self, there: list[int]) -> Iterator[Row]:
        oldest = min(there, default=None)
        gone = [cycle for cycle in self._chain.cycles if cycle not in set(there)]
        lost = sorted(cycle for cycle in gone if oldest is None or cycle > oldest)
        for cycle in lost:
            file = _file_of(self._queue, cycle)
            count = self._chain.cycles[cycle].count
            yield "sealed-cycle", file, None, "no file", f"cycle={cycle} messages={count}"
        if len(gone) > len(lost):
            found = f"cycles={len(gone) - len(lost)} before cycle={oldest}"
            yield "pruned-seals", self._queue.path, None, found, "removed by retention"

    def _without_seal(self, cycle: int, newest: int) -> Iterator[Row]:
        messages = self._count(cycle)
        if not messages:
            return
        if cycle < newest:
            file = self._queue.file_for_cycle(cycle)
            yield "changed-message", file, None, f"messages={messages}", "a cycle without messages"
        else:
            self._note_unsealed(cycle, 0, messages)

    def _count(self, cycle: int) -> int:
        last = 0
        for step in steps_of(self._queue, cycle, NONE_YET):
            last = step.count
        return last

    def _note_unsealed(self, cycle: int, number: int, messages: int) -> None:
        self._unsealed += messages
        if self._first_unsealed is None:
            self._first_unsealed = self._queue.roll_cycle.to_index(cycle, number)

    def _marks(self, cycle: int) -> list[SealedCycle]:
        """Return what the checkpoints say about a cycle, one after the other."""
        found = (entry.changed.get(cycle) for entry in self._chain.entries)
        return [it for it in found if it is not None]

    def _cycle(self, cycle: int) -> Iterator[Row]:
        path = Path(self._queue.file_for_cycle(cycle))
        marks = self._marks(cycle)
        sealed = marks[-1]
        checksums = Checksums(self._folder, path.name, self._id, cycle)
        compared = _Compared(checksums)
        roots, last = list[bytes](), None
        found = "no roll file"
        try:
            for step in steps_of(self._queue, cycle, NONE_YET, [it.count for it in marks]):
                compared.add(step, sealed.count)
                roots += step.roots
                last = step
        except CorruptError as error:
            found = str(error)
        if last is None:
            yield "sealed-cycle", str(path), None, found, f"messages={sealed.count}"
            return
        wrong = self._first_wrong(marks, roots, compared, last.count)
        if wrong is not None:
            index = self._queue.roll_cycle.to_index(cycle, wrong)
            damage = f" damage={last.damage}" if last.damage else ""
            found = f"index={index:#x} messages={last.count}{damage}"
            yield "changed-message", str(path), None, found, f"messages={sealed.count} as sealed"
            return
        yield from self._end(path, sealed, last)
        if compared.problem is not None and sealed.count:
            name = str(self._folder.path / checksums.name)
            yield "checksums", name, None, compared.problem, "the checksums of the messages"
        if last.count > sealed.count:
            self._note_unsealed(cycle, sealed.count, last.count - sealed.count)

    @staticmethod
    def _first_wrong(
        marks: list[SealedCycle], roots: list[bytes], compared: _Compared, count: int
    ) -> int | None:
        """Return the number of the first message that is not as sealed; None if all are."""
        right = 0
        for at, mark in enumerate(marks):
            if at < len(roots) and roots[at] == mark.root:
                right = mark.count
                continue
            differs_at = compared.first_wrong
            if differs_at is not None and right <= differs_at < mark.count:
                return differs_at
            is_cut = count < mark.count and compared.problem is None
            return count if is_cut else right  # without checksums: this one, or one after it
        return None

    def _end(self, path: Path, sealed: SealedCycle, last: Step) -> Iterator[Row]:
        if not sealed.is_ended:
            return
        if last.count > sealed.count or not last.is_ended:
            found = f"messages={last.count} ended={last.is_ended}"
            yield "changed-message", str(path), None, found, f"the end after {sealed.count}"
        elif last.metadata != sealed.metadata:
            yield "changed-message", str(path), None, "other metadata at the end", "as sealed"


class _Compared:
    """Compares new checksums with those in the file, and remembers the first that differs."""

    def __init__(self, checksums: Checksums) -> None:
        self._checksums: Final = checksums
        self.problem: str | None = _problem_of(checksums)
        self.first_wrong: int | None = None
        self._done = 0

    def add(self, step: Step, sealed: int) -> None:
        count = min(step.count, sealed) - self._done
        if self.problem is not None or self.first_wrong is not None or count <= 0:
            return
        expected = step.checksums[: count * CHECKSUM_LEN]
        found = self._checksums.read(self._done, count)
        if found != expected:
            at = _first_difference(found, expected) // CHECKSUM_LEN
            self.first_wrong = self._done + at
            self.problem = f"checksum={self.first_wrong} differs"
        self._done += count


def _problem_of(checksums: Checksums) -> str | None:
    try:
        return checksums.problem()
    except (UnsafePathError, OSError) as error:
        return str(error)


def _first_difference(left: bytes, right: bytes) -> int:
    """Return the position of the first byte that differs, or where the shorter one ends."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high) // 2
        if left[low : middle + 1] == right[low : middle + 1]:
            low = middle + 1
        else:
            high = middle
    return low
