"""The files of seals: ``seals.quire`` of a queue, and a file of checksums beside each cycle."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from quire._common.durable import SafeFolder, flush_and_sync
from quire._common.roll_file_names import seal_file
from quire.errors import SealError
from quire.sealed.seal_chain import LONGEST_LINE, Chain, Checkpoint, Entry, parse_chain
from quire.sealed.trees import HASH_LEN, root_of_peaks

SEALS: Final = "seals.quire"
"""The checkpoints of a queue, each on a line."""
LOCK: Final = "quire.seal.lock"
"""Held by whatever seals; Java ignores the file."""
CHECKSUM_LEN: Final = 8
HEADER_LEN: Final = 4096
_MAGIC: Final = b"QuireSl2"
_HEAD: Final = struct.Struct("<8sq16sQ")
_MOST_PEAKS: Final = 64
_LONGEST: Final = 1 << 30
_LONGEST_HEAD: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the checksums of a cycle go, and the peaks of its tree there."""

    count: int
    peaks: list[bytes]


NONE_YET: Final = Progress(0, [])


def read_chain(folder: SafeFolder) -> tuple[Chain, str | None]:
    """
    Return the checkpoints of a queue, and what is wrong with the first line that is none.

    Raises:
        SealError: The file is too long.

    """
    file = str(folder.path / SEALS)
    found = folder.stat(SEALS)
    if found is None:
        return Chain(), None
    if found.st_size > _LONGEST:
        raise SealError(f"too long for checkpoints: file={file} limit={_LONGEST}")
    with folder.open(SEALS) as opened:
        return parse_chain(iter(lambda: opened.readline(LONGEST_LINE + 1), b""), file)


def append_entry(folder: SafeFolder, chain: Chain, entry: Entry) -> None:
    """Append a checkpoint; what a killed run left of one is cut off."""
    if not folder.has(SEALS):
        folder.replace(SEALS, entry.line())
    else:
        with folder.update(SEALS) as file:
            file.seek(sum(len(it.line()) for it in chain.entries))
            file.truncate()
            file.write(entry.line())
            flush_and_sync(file)
    chain.add(entry)


def parse_checkpoint(content: bytes, file: str) -> Checkpoint:
    """
    Return the checkpoint that was kept elsewhere.

    Raises:
        SealError: The file does not hold a checkpoint.

    """
    body, _, signature = content[:_LONGEST_HEAD].rstrip(b"\n").partition(b" ")
    try:
        return Checkpoint.parse(body, signature.decode("ascii", "replace"))
    except (ValueError, RecursionError) as error:
        raise SealError(f"not a checkpoint: file={file} reason={error}") from None


def _head_of(queue: bytes, cycle: int) -> bytes:
    return _HEAD.pack(_MAGIC, cycle, queue, 0)[:-8]


class Checksums:
    """
    The checksums of a cycle.

    The header also has the peaks of the cycle's tree, by which a seal goes on where the last one
    ended. It is a hint: what does not fit the sealed root is not used.
    """

    def __init__(self, folder: SafeFolder, roll_file: str, queue: bytes, cycle: int) -> None:
        """Name the file of a roll file's checksums."""
        self.name: Final = seal_file(roll_file)
        self._folder: Final = folder
        self._head: Final = _head_of(queue, cycle)

    def progress(self, count: int, root: bytes) -> Progress:
        """Return where to go on after *count* messages whose tree has a root."""
        head = self._header()
        if head is None or not head.startswith(self._head):
            return NONE_YET
        (found,) = struct.unpack_from("<Q", head, len(self._head))
        start, number = _HEAD.size, found.bit_count()
        if found != count or number > _MOST_PEAKS:
            return NONE_YET
        peaks = [
            head[at : at + HASH_LEN] for at in range(start, start + number * HASH_LEN, HASH_LEN)
        ]
        return Progress(count, peaks) if root_of_peaks(peaks) == root else NONE_YET

    def problem(self) -> str | None:
        """Return why the file is not that of this cycle of this queue; None if it is."""
        head = self._header()
        if head is None:
            return "there is none, or not a plain one"
        return None if head.startswith(self._head) else "another cycle's, or another queue's"

    def _header(self) -> bytes | None:
        found = self._folder.stat(self.name)
        if found is None:
            return None
        with self._folder.open(self.name) as file:
            head = file.read(HEADER_LEN)
        return head if len(head) == HEADER_LEN else None

    def read(self, first: int, count: int) -> bytes:
        """Return the checksums of some messages, as many as there are."""
        with self._folder.open(self.name) as file:
            file.seek(HEADER_LEN + first * CHECKSUM_LEN)
            return file.read(count * CHECKSUM_LEN)

    def write(self, first: int, checksums: bytes) -> None:
        """Write the checksums of messages from a number on; the file is made if need be."""
        if self.problem() is not None:
            self._folder.replace(self.name, self._head.ljust(HEADER_LEN, b"\0"))
        with self._folder.update(self.name) as file:
            file.seek(HEADER_LEN + first * CHECKSUM_LEN)
            file.write(checksums)
            flush_and_sync(file)

    def finish(self, progress: Progress) -> None:
        """Note the peaks, once the checksums are on the medium."""
        known = struct.pack("<Q", progress.count) + b"".join(progress.peaks)
        with self._folder.update(self.name) as file:
            file.write((self._head + known).ljust(HEADER_LEN, b"\0"))
            flush_and_sync(file)
