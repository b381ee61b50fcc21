"""
Append ids: they let a retry after a lost connection append each message once.

A client numbers its messages for each queue. Before it appends, the server records in a small file
which numbers it is about to append and where the queue ends; afterwards, it records the last index.
The file outlives the server's process. If the process died between the two, the messages of a retry
are looked for after that end.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quire._common.durable import SafeFolder
from quire.errors import RefusedError
from quire.handles.journal.acknowledgement import History

if TYPE_CHECKING:
    from quire.server.served_queue import ServedQueue

CLIENT: Final = 16
"""The number of bytes of a client id."""
_FILE: Final = "appends"
_SLOTS: Final = 4096
_ANSWERS: Final = 1024
_HISTORIES: Final = 8
_LOOKED_AT: Final = 1 << 16
_LOOK_BYTES: Final = 64 << 20
_SLOT: Final = struct.Struct("<16s16sQQqqI")
_LENGTH: Final = 128

_log = logging.getLogger("quire")


@dataclass(slots=True)
class Appended:
    """
    What a client has appended to a queue.

    Attributes:
        place: The number of its slot in the file.
        past: The number after the last message that is in the queue.
        begun: The number after the last message that an interrupted append may have appended.
        searched_from: The index from which those messages are looked for.
        is_busy: Whether an append is in progress.
        answers: The index of the last message, by the number after it.
        histories: The histories in which messages that wait for replicas were appended, each with
            its first number.

    """

    place: int
    past: int = 0
    begun: int = 0
    searched_from: int = 0
    is_busy: bool = False
    answers: OrderedDict[int, int] = field(default_factory=OrderedDict[int, int])
    histories: list[tuple[int, History]] = field(default_factory=list[tuple[int, History]])

    def note_history(self, number: int, history: History) -> None:
        """Record the history in which messages from a number on are appended."""
        if not self.histories or self.histories[-1][1] != history:
            self.histories.append((number, history))
            del self.histories[:-_HISTORIES]

    def history_of(self, number: int) -> History | None:
        """Return the history in which a message was appended, or an earlier one; None: unknown."""
        return next((it for since, it in reversed(self.histories) if since <= number), None)

    def note(self, past: int, last: int) -> None:
        """Record the index of the message before a number."""
        self.answers[past] = last
        while len(self.answers) > _ANSWERS:
            self.answers.popitem(last=False)


class AppendIds:
    """
    The append ids of a server.

    Args:
        root: The served directory.
        folder: The server's own folder below it.

    """

    def __init__(self, root: Path, folder: str) -> None:
        self._known: OrderedDict[tuple[bytes, bytes], Appended] = OrderedDict()
        self._file = -1
        with SafeFolder.at(root) as top, top.below([folder], make=True) as own:
            path = own.path / _FILE
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path, flags, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            _log.warning(
                "append ids will not survive a restart, as another server uses their file: path=%s",
                path,
            )
            return
        self._file = handle
        self._load()

    def _load(self) -> None:
        content = os.pread(self._file, _SLOTS * _LENGTH, 0)
        for place in range(len(content) // _LENGTH):
            row = content[place * _LENGTH : place * _LENGTH + _SLOT.size]
            client, topic, number, past, before, last, check = _SLOT.unpack(row)
            if check != zlib.crc32(row[:-4]) or not any(client):
                continue
            found = Appended(place, past, past, before)
            if last < 0:  # it was not noted that they are in the queue
                found.past = number
            else:
                found.note(past, last)
            self._known[client, topic] = found

    def of(self, client: bytes, topic: str) -> Appended:
        """
        Return what a client has appended to a queue.

        Raises:
            RefusedError: The client id does not have 16 bytes, or has only zeros.

        """
        if len(client) != CLIENT or not any(client):
            raise RefusedError(
                f"invalid client id of an append: expected {CLIENT} bytes, not all 0"
            )
        key = (client, _digest(topic))
        found = self._known.get(key)
        if found is None:
            place = len(self._known)
            if place >= _SLOTS:
                _, oldest = self._known.popitem(last=False)
                place = oldest.place
            found = self._known[key] = Appended(place)
        else:
            self._known.move_to_end(key)
        return found

    def begin(
        self, client: bytes, queue: ServedQueue, found: Appended, number: int, count: int
    ) -> None:
        """
        Record that messages are about to be appended.

        Raises:
            RefusedError: The file cannot be written, as on a full disk.

        """
        end = queue.end_index
        try:
            self._store(client, queue.topic, found.place, (number, number + count, end, -1))
        except OSError as error:
            raise RefusedError(f"cannot record the append id: error={error.strerror}") from None
        found.is_busy, found.begun, found.searched_from = True, number + count, end

    def end(self, client: bytes, queue: ServedQueue, found: Appended, last: int) -> None:
        """Record that the messages were appended, and the index of the last."""
        found.is_busy, number, found.past = False, found.past, found.begun
        found.note(found.past, last)
        try:
            self._store(client, queue.topic, found.place, (number, found.past, 0, last))
        except OSError as error:  # after a kill, the messages are looked for
            _log.warning("cannot record that messages were appended: error=%s", error.strerror)

    def _store(self, client: bytes, topic: str, place: int, row: tuple[int, int, int, int]) -> None:
        if self._file < 0:
            return
        number, past, before, last = row
        data = _SLOT.pack(client, _digest(topic), number, past, before, last, 0)[:-4]
        data += zlib.crc32(data).to_bytes(4, "little")
        os.pwrite(self._file, data.ljust(_LENGTH, b"\0"), place * _LENGTH)

    @staticmethod
    def settle(queue: ServedQueue, found: Appended, number: int, messages: Sequence[bytes]) -> None:
        """Find out which messages of an interrupted append are in the queue."""
        place = found.past - number
        if found.begun <= found.past or not 0 <= place < len(messages):
            return
        wanted = messages[place : place + found.begun - found.past]
        columns = queue.read(found.searched_from, 2**63 - 1, _LOOKED_AT, _LOOK_BYTES)
        done = 0
        for at, index in enumerate(columns.indexes):
            if done < len(wanted) and bytes(columns.payload(at)) == wanted[done]:
                done += 1
                found.note(found.past + done, index)
                found.searched_from = index + 1
        found.past += done
        if done < len(wanted):  # nothing after it was written
            found.begun = found.past

    def close(self) -> None:
        """Close the file."""
        handle, self._file = self._file, -1
        if handle >= 0:
            os.close(handle)


@lru_cache(1024)
def _digest(topic: str) -> bytes:
    return blake2b(topic.encode(), digest_size=16).digest()
