"""Sealing: hashing the messages appended since the last seal, and the checkpoint over them."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quire._common.durable import SafeFolder
from quire._common.roll_file_names import SEAL, checksums_file
from quire._native import hash_cycle
from quire.errors import SealError
from quire.formats.adapters import count_of
from quire.sealed.seal_chain import (
    QUEUE_ID_LEN,
    Chain,
    Checkpoint,
    Entry,
    SealedCycle,
    is_ahead,
)
from quire.sealed.seal_files import (
    LOCK,
    NONE_YET,
    SEALS,
    Checksums,
    Progress,
    append_entry,
    read_chain,
)
from quire.sealed.trees import root_of_peaks

if TYPE_CHECKING:
    from quire._native import Queue
    from quire.sealed.signing import Signer

PIECE: Final = 1 << 22
"""How many messages are hashed in one call of the kernel."""
NO_MORE: Final = 2**63 - 1
_log: Final = logging.getLogger("quire")


@dataclass(frozen=True, slots=True)
class Step:
    """
    What one call of the kernel hashed.

    Attributes:
        count: How many messages are in the tree.
        peaks: The roots of its perfect subtrees.
        root: Its root.
        checksums: The first bytes of each new leaf.
        roots: The roots at the marks that were reached.
        is_ended: Whether the end-of-file marker was reached.
        metadata: The hash of metadata after the last message.
        damage: Why the walk ended before the end.
        proven: The message to prove, the hash of metadata before it and the path to the root.
        appended: What the checksums that appenders left say: of how many messages there is one, the
            first that is not what was appended and whether a page of it was never written, whether
            messages after the last one are gone, and why there are none to be trusted.

    """

    count: int
    peaks: list[bytes]
    root: bytes
    checksums: bytes
    roots: list[bytes]
    is_ended: bool
    metadata: bytes | None
    damage: str | None
    proven: tuple[bytes, bytes | None, list[bytes]] | None
    appended: tuple[int, tuple[int, bool] | None, bool, str | None]


def steps_of(
    queue: Queue, cycle: int, start: Progress, marks: list[int] | None = None
) -> Iterator[Step]:
    """Hash the messages of a cycle from somewhere to its end, in pieces."""
    at = start
    while True:
        left = [mark for mark in marks or () if mark > at.count or at is start]
        until = at.count + PIECE
        found = hash_cycle(queue, cycle, count=at.count, peaks=at.peaks, marks=left, until=until)
        if found is None:
            return
        step = Step(*found)
        yield step
        if step.count < until:
            return
        at = Progress(step.count, step.peaks)


def seal_queue(
    queue: Queue,
    folder: SafeFolder,
    signer: Signer | None = None,
    *,
    older: bool = False,
    wait_s: float = 0.0,
) -> Checkpoint | None:
    """
    Seal the messages of a queue; return the newest checkpoint, or None if there is nothing to seal.

    Args:
        queue: The queue.
        folder: Its directory.
        signer: What signs the checkpoint.
        older: Also seal cycles that appeared between sealed ones.
        wait_s: How long to wait for another process that seals it.

    Raises:
        LockHeldError: Another process seals the queue.
        SealError: The existing seals are damaged, a message changed since it was sealed, or
            something to be signed was not signed before and may be wrong.

    """
    with folder.locked(LOCK, wait_s):
        folder.sweep(SEALS, SEAL)
        chain, problem = read_chain(folder)
        if problem is not None and not problem.endswith("cut off"):
            raise SealError(
                f"the seals are damaged: file={folder.path / SEALS} {problem}"
                " (quire verify says what is left of them)"
            )
        if signer is not None:
            _check_before_signing(chain, signer, folder, older=older)
        return _Sealing(queue, folder, chain, older=older).run(signer)


def _check_before_signing(chain: Chain, signer: Signer, folder: SafeFolder, *, older: bool) -> None:
    """Refuse to sign what others may have made of the seals since they were signed last."""
    newest, file = chain.newest, folder.path / SEALS
    if newest is not None and is_ahead(newest.time_ms):
        raise SealError(
            f"the newest checkpoint is dated in the future: file={file} time_ms={newest.time_ms}"
            " (set the clock right; or move seals.quire and *.seal.quire away, and seal again)"
        )
    signed = [it.checkpoint.number for it in chain.entries if signer.is_signed(it.checkpoint)]
    inserted = chain.inserted_after(signed[-1]) if signed and not older else {}
    if inserted:
        cycle, number = next(iter(inserted.items()))
        raise SealError(
            "a cycle was inserted between those that were signed:"
            f" file={file} checkpoint={number} cycle={cycle} (quire verify --trust says which;"
            " quire seal --older signs it, if it is right)"
        )


class _Sealing:
    """One run, under the lock."""

    def __init__(self, queue: Queue, folder: SafeFolder, chain: Chain, *, older: bool) -> None:
        newest = chain.newest
        self._first: Final = -1 if older else max(chain.cycles, default=-1)
        self._queue: Final = queue
        self._folder: Final = folder
        self._chain: Final = chain
        self._id: Final = secrets.token_bytes(QUEUE_ID_LEN) if newest is None else newest.queue

    def run(self, signer: Signer | None) -> Checkpoint | None:
        changed = dict[int, SealedCycle]()
        for cycle in self._queue.cycles:
            known = self._chain.cycles.get(cycle)
            if known is None and cycle < self._first:
                self._leave_out(cycle)
            elif known is None or not known.is_ended:
                found = self._seal(cycle, known)
                if found is not None and found != known:
                    changed[cycle] = found
        newest = self._chain.newest
        if not changed and (newest is None or signer is None or _has_signed(signer, newest)):
            return newest
        made = self._chain.next(self._id, time.time_ns() // 1_000_000, changed)
        if signer is not None:
            made = signer.sign(made)
        append_entry(self._folder, self._chain, Entry(made, changed))
        return made

    def _leave_out(self, cycle: int) -> None:
        """Say that a cycle is not sealed: it appeared between those that are."""
        if count := count_of(self._queue, cycle):
            _log.warning(
                "a cycle that appeared between sealed ones is not sealed: file=%s messages=%d"
                " (quire seal --older seals it, if it is right)",
                self._queue.file_for_cycle(cycle),
                count,
            )

    def _seal(self, cycle: int, known: SealedCycle | None) -> SealedCycle | None:
        """
        Hash the messages of a cycle that are not sealed yet.

        Raises:
            SealError: A message cannot be read, or changed since it was sealed.

        """
        file = self._queue.file_for_cycle(cycle).rpartition("/")[2]
        checksums = Checksums(self._folder, file, self._id, cycle)
        start, marks = Progress(0, []), list[int]()
        if known is not None:
            start = checksums.progress(known.count, known.root)
            marks = [] if start.count else [known.count]
        last: Step | None = None
        at, as_appended = start.count, True
        for step in steps_of(self._queue, cycle, start, marks):
            if step.damage is not None:
                raise SealError(f"the file is damaged: file={file} reason={step.damage}")
            if known is not None and step.roots and step.roots[0] != known.root:
                raise SealError(
                    f"messages changed since they were sealed: file={file}"
                    " (quire verify says which)"
                )
            if step.checksums:
                checksums.write(at, step.checksums)
            at, last = step.count, step
            as_appended = as_appended and step.appended[1] is None
        if last is None or (at == 0 and not last.is_ended):
            return known
        if known is not None and at < known.count:
            raise SealError(f"sealed messages are gone: file={file} (quire verify says which)")
        if at > start.count:
            self._folder.sync_file(file)  # what is sealed outlives a power cut
            # Else the next seal would not look again at the message that is not as appended.
            checksums.finish(Progress(at, last.peaks) if as_appended else NONE_YET)
        if last.is_ended and as_appended:
            self._folder.remove(checksums_file(file))  # the seal has more of each message
        metadata = last.metadata if last.is_ended else None
        return SealedCycle(at, last.is_ended, root_of_peaks(last.peaks), metadata)


def _has_signed(signer: Signer, checkpoint: Checkpoint) -> bool:
    signature = checkpoint.signature
    return signature is not None and signature.key == signer.key_id
