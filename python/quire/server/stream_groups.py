"""
The groups of queues, with the consumers of Redis Streams.

The server is one member of a group on behalf of all its clients, and never returns a message by
itself. A database below the server's directory records which consumer has a message, since when,
and how often it was delivered, as the group's own file knows members but not names.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from quire._common.durable import SafeFolder
from quire.errors import QuireError, RefusedError
from quire.groups.consumer import Consumer
from quire.groups.group import Group
from quire.groups.message import GroupMessage
from quire.groups.states import is_group_name, pending_of, side_file, side_files
from quire.server.answers import Answer
from quire.server.client_shares import check_length
from quire.server.ids import LAST, id_of
from quire.server.served_queue import ServedQueue

_log = logging.getLogger("quire")
FOLDER: Final = ".quire-server"
_MEMBER: Final = "quire-serve"
_FILE: Final = "groups.sqlite"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS consumer (
    topic TEXT, grp TEXT, name BLOB, seen_ms INTEGER, PRIMARY KEY (topic, grp, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pending (
    topic TEXT, grp TEXT, idx INTEGER, consumer BLOB, delivered_ms INTEGER, count INTEGER,
    PRIMARY KEY (topic, grp, idx)
) WITHOUT ROWID;
"""
_TAKEN: Final = 256
_CONSUMERS: Final = 10_000
_LONGEST_NAME: Final = 256


@dataclass(slots=True)
class Pending:
    """
    A message that was delivered to a consumer and is not acknowledged.

    Attributes:
        message: The delivery, without the bytes.
        consumer: The consumer that has it.
        delivered_ms: When it was last delivered, in milliseconds since 1970.
        count: How often it was delivered.

    """

    message: GroupMessage
    consumer: bytes
    delivered_ms: int
    count: int

    @property
    def idle_ms(self) -> int:
        """How long ago it was delivered."""
        return max(0, now_ms() - self.delivered_ms)


def now_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class StreamGroup:
    """
    A group of a queue, and its consumers.

    Args:
        queue: The queue.
        name: The group's name.
        database: Records which consumer has which message.

    """

    def __init__(self, queue: ServedQueue, name: str, database: sqlite3.Connection) -> None:
        self._queue, self.name, self._database = queue, name, database
        self.group: Group = queue.queue.group(name, ack_timeout_s=float("inf"), on_missing="skip")
        self._member: Consumer = self.group.consumer(_MEMBER)
        self._key = (queue.topic, name)
        self._taken: list[GroupMessage] = []
        self.pending: dict[int, Pending] = {}
        self.consumers: dict[bytes, int] = dict(
            database.execute(
                "SELECT name, seen_ms FROM consumer WHERE topic=? AND grp=?", self._key
            )
        )
        self._take_up()

    def _take_up(self) -> None:
        """Take over the messages of an earlier run, and assign them to their consumers."""
        rows = self._database.execute(
            "SELECT idx, consumer, delivered_ms, count FROM pending WHERE topic=? AND grp=?",
            self._key,
        )
        known = {row[0]: row[1:] for row in rows}
        file = side_file(self._queue.queue.path, self.name)
        waits = {it.index for it in pending_of(file) if it.consumer is None and not it.delay_s}
        wanted = waits & known.keys()  # others are those of Quire's own consumers, or of nobody
        while wanted:
            batch = self._member.read_many(min(_TAKEN, len(wanted)))
            if not batch:
                break
            for message in batch:
                wanted.discard(message.index)
                if (owner := known.pop(message.index, None)) is None:
                    self._taken.append(message)
                else:
                    self._hold(message, *owner)
        self._forget([*known])

    def _hold(self, message: GroupMessage, consumer: bytes, delivered_ms: int, count: int) -> None:
        message.data = b""
        self.pending[message.index] = Pending(message, consumer, delivered_ms, count)

    @property
    def has_pending(self) -> bool:
        """Whether the server has messages for consumers, which would go to other members."""
        return self.is_open and bool(self.pending or self._taken)

    @property
    def is_open(self) -> bool:
        """Whether the server is still a member."""
        return not self._member.closed and not self._queue.queue.closed

    def _check_open(self) -> None:
        """Refuse to use a group that was removed or moved: another group may have its name."""
        if not self.is_open:
            raise RefusedError(
                f"NOGROUP The consumer group '{self.name}' for key name '{self._queue.topic}' was"
                " removed or moved meanwhile"
            )

    def see(self, consumer: bytes) -> None:
        """
        Record that a consumer is active.

        Raises:
            RefusedError: The consumer is new, and its name is too long or the group has too many;
                or the group was removed.

        """
        self._check_open()
        is_new = consumer not in self.consumers
        if is_new:
            check_consumer(consumer)
        if is_new and len(self.consumers) >= _CONSUMERS:
            raise RefusedError(
                f"the group has too many consumers: limit={_CONSUMERS} (XGROUP DELCONSUMER)"
            )
        now = now_ms()
        if is_new:
            with _kept(self._database):
                row = (*self._key, consumer, now)
                self._database.execute("INSERT OR REPLACE INTO consumer VALUES (?, ?, ?, ?)", row)
        self.consumers[consumer] = now

    def deliver(self, consumer: bytes, count: int, *, keeps: bool) -> list[tuple[int, bytes]]:
        """
        Return the next messages of the group, as their index and bytes.

        Args:
            consumer: The consumer that gets them.
            count: How many at most.
            keeps: Whether they are pending until they are acknowledged; otherwise they are done.

        """
        self.see(consumer)
        messages, self._taken = self._taken[:count], self._taken[count:]
        if not messages:
            batch = self._member.read_many(count)
            messages = [*batch]
            if not keeps:
                self._member.ack_many(batch)
        elif not keeps:
            self._member.ack_many(messages)
        found = [(it.index, it.data) for it in messages]
        if keeps and messages:
            now = now_ms()
            for message in messages:  # some may have been those of Quire's own consumers
                self._hold(message, consumer, now, message.delivery_count)
            try:
                self._save([it.index for it in messages])
            except RefusedError:  # they reach no client now
                for message, (index, data) in zip(messages, found, strict=True):
                    del self.pending[index]
                    message.data = data
                self._taken = messages + self._taken
                raise
        return found

    def _save(self, indexes: Sequence[int]) -> None:
        rows = [(index, self.pending[index]) for index in indexes]
        with _kept(self._database):
            self._database.executemany(
                "INSERT OR REPLACE INTO pending VALUES (?, ?, ?, ?, ?, ?)",
                [(*self._key, i, it.consumer, it.delivered_ms, it.count) for i, it in rows],
            )

    def _forget(self, indexes: Sequence[int]) -> None:
        if not indexes:
            return
        try:
            with _kept(self._database):
                self._database.executemany(
                    "DELETE FROM pending WHERE topic=? AND grp=? AND idx=?",
                    [(*self._key, index) for index in indexes],
                )
        except RefusedError as refusal:  # what is kept of them is dropped at the next start
            _log.warning("%s", refusal)

    def acknowledge(self, indexes: Sequence[int]) -> int:
        """
        Acknowledge messages of any consumer; return how many were pending.

        Raises:
            RefusedError: The group was removed or moved.

        """
        self._check_open()
        found = [index for index in indexes if index in self.pending]
        done = sum(self.pending.pop(index).message.ack() for index in dict.fromkeys(found))
        self._forget(found)
        return done

    def claim(
        self, index: int, consumer: bytes, *, idle_ms: int = 0, count: int | None = None
    ) -> None:
        """Assign a pending message to another consumer; see :meth:`save`."""
        it = self.pending[index]
        it.consumer, it.delivered_ms = consumer, now_ms() - idle_ms
        if count is not None:
            it.count = min(count, 2**31)

    def save(self, indexes: Sequence[int]) -> None:
        """Save which consumer has these messages now."""
        if indexes:
            self._save(indexes)

    def of_consumer(
        self, consumer: bytes | None, start: int = 0, past: int = LAST
    ) -> Iterator[int]:
        """Yield the pending messages of a range, of one consumer or of all, in order."""
        for index in sorted(self.pending):
            if start <= index < past and consumer in {None, self.pending[index].consumer}:
                yield index

    def owner_of(self, index: int) -> bytes | None:
        """Return the consumer that has a message; None: it is not pending."""
        found = self.pending.get(index)
        return None if found is None else found.consumer

    def data_of(self, index: int) -> bytes | None:
        """Return the bytes of a message; None: it was deleted."""
        columns = self._queue.read(index, index + 1, 1, 1)
        return bytes(columns.payload(0)) if len(columns) else None

    def drop(self, consumer: bytes) -> int:
        """Remove a consumer; its messages count as acknowledged, as in Redis."""
        had = [*self.of_consumer(consumer)]
        self.acknowledge(had)
        if self.consumers.pop(consumer, None) is not None:
            with _kept(self._database):
                row = (*self._key, consumer)
                self._database.execute(
                    "DELETE FROM consumer WHERE topic=? AND grp=? AND name=?", row
                )
        return len(had)

    def consumers_described(self, had: Counter[bytes]) -> Iterator[Answer]:
        """Yield the ``XINFO CONSUMERS`` answer for each, given its number of messages."""
        for name in sorted(self.consumers):
            idle = max(0, now_ms() - self.consumers[name])
            yield {"name": name, "pending": had[name], "idle": idle}

    def leave(self) -> None:
        """End the server's membership: nothing is delivered to its clients any more."""
        self._member.close()
        self.pending = {}  # a long command that is under way finds nothing more


class StreamGroups:
    """
    The groups of all queues of a server.

    Args:
        root: The server's directory.

    """

    def __init__(self, root: Path) -> None:
        with SafeFolder.at(root) as folder, folder.private(FOLDER) as own:
            found = own.stat(_FILE)
            if found is None:
                own.create(_FILE).close()
            else:
                own.open(_FILE).close()  # refused unless it is a plain file
            place = own.path / _FILE
        self._database = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.executescript(_SCHEMA)
        self._open: dict[tuple[str, str], StreamGroup] = {}

    @staticmethod
    def names(queue: ServedQueue) -> list[str]:
        """Return the names of the groups of a queue."""
        return [file.stem for file in side_files(queue.queue.path)]

    def of(self, queue: ServedQueue, name: bytes) -> StreamGroup:
        """
        Return a group of a queue, which the server joins.

        Raises:
            RefusedError: There is no such group.

        """
        found = self.find(queue, name)
        if found is None:
            raise RefusedError(
                f"NOGROUP No such consumer group '{group_name(name)}' for key name '{queue.topic}'"
            )
        return found

    def find(self, queue: ServedQueue, name: bytes) -> StreamGroup | None:
        """Return a group of a queue, which the server joins; None: there is none."""
        text = group_name(name)
        if text not in self.names(queue):
            return None
        found = self._open.get((queue.topic, text))
        return found if found is not None and found.is_open else self._join(queue, text)

    def _join(self, queue: ServedQueue, name: str) -> StreamGroup:
        try:
            found = StreamGroup(queue, name, self._database)
        except (QuireError, ValueError) as error:
            raise RefusedError(f"cannot join the group: group={name} error={error}") from None
        self._open[queue.topic, name] = found
        return found

    def create(self, queue: ServedQueue, name: bytes, start: int | None) -> None:
        """
        Create a group that begins at an index, or at the end for None.

        Raises:
            RefusedError: The queue has a group of this name.

        """
        text = group_name(name)
        if text in self.names(queue):
            raise RefusedError("BUSYGROUP Consumer Group name already exists")
        self._place(queue, text, start)
        self._clear(queue.topic, text)
        self._join(queue, text)

    @staticmethod
    def _place(queue: ServedQueue, name: str, start: int | None) -> None:
        last = queue.queue.last_index
        if start is None or (last is not None and start > last):
            queue.queue.group(name).reset("end")
        elif not start or last is None:
            queue.queue.group(name).reset("start")
        else:
            queue.queue.group(name).reset(queue.index_from(start))

    def move(self, queue: ServedQueue, name: bytes, start: int | None) -> None:
        """
        Let a group continue at an index, or at the end for None.

        Raises:
            RefusedError: Messages of the group are pending.

        """
        found = self.of(queue, name)
        if found.pending:
            raise RefusedError(
                f"messages are pending: group={found.name} count={len(found.pending)}"
                " (acknowledge them first)"
            )
        found.leave()
        self._place(queue, found.name, start)
        self._join(queue, found.name)

    def destroy(self, queue: ServedQueue, name: bytes) -> bool:
        """Remove a group; return whether there was one."""
        text = group_name(name)
        if text not in self.names(queue):
            return False
        if (found := self._open.pop((queue.topic, text), None)) is not None:
            found.leave()
        queue.queue.group(text).delete()
        self._clear(queue.topic, text)
        return True

    def _clear(self, topic: str, name: str) -> None:
        with _kept(self._database):
            for table in ("consumer", "pending"):
                self._database.execute(
                    f"DELETE FROM {table} WHERE topic=? AND grp=?",  # noqa: S608 - two names
                    (topic, name),
                )

    def described(self, queue: ServedQueue) -> Iterator[Answer]:
        """Yield the ``XINFO GROUPS`` answer for each group, without joining any."""
        for state in queue.queue.groups():
            pending, following = self._count("pending", queue, state.name), state.next_index
            last = following - queue.numbering.step if following else 0
            yield {
                "name": state.name.encode(),
                "consumers": self._count("consumer", queue, state.name),
                "pending": pending,
                "last-delivered-id": id_of(last),
                "entries-read": None,
                "lag": max(0, state.lag - pending),
            }

    def _count(self, what: Literal["pending", "consumer"], queue: ServedQueue, name: str) -> int:
        found = self._open.get((queue.topic, name))
        if found is not None and found.is_open:
            return len(found.pending if what == "pending" else found.consumers)
        row = self._database.execute(
            f"SELECT count(*) FROM {what} WHERE topic=? AND grp=?",  # noqa: S608 - two names
            (queue.topic, name),
        )
        return int(row.fetchone()[0])

    def topics(self) -> set[str]:
        """Return the names of the queues that have a group which the server has joined."""
        return {topic for topic, _ in [*self._open]}  # threads forget some

    def forget(self, topic: str) -> None:
        """
        Leave the groups of a queue that is being closed, which may have been moved.

        Delivered messages stay with their consumers if the queue is opened again by this name.
        """
        for key in [*self._open]:
            found = self._open.pop(key, None) if key[0] == topic else None
            with suppress(QuireError, OSError):
                if found is not None:
                    found.leave()

    def topics_with_pending(self) -> Iterator[str]:
        """Yield the names of the queues that have a group with messages of consumers."""
        return (topic for (topic, _), it in [*self._open.items()] if it.has_pending)

    def close(self) -> None:
        """Leave all groups; delivered messages stay with their consumers."""
        for found in self._open.values():
            found.leave()
        self._database.close()


@contextmanager
def _kept(database: sqlite3.Connection) -> Generator[None]:
    """
    Make changes in one transaction.

    Raises:
        RefusedError: The changes cannot be saved, as on a full disk.

    """
    try:
        database.execute("BEGIN")
        yield
        database.execute("COMMIT")
    except sqlite3.Error as error:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise RefusedError(
            f"cannot record which consumer has which message: file={FOLDER}/{_FILE} error={error}"
        ) from None


def check_group(name: str) -> None:
    """
    Check that a name is valid for a group.

    Raises:
        RefusedError: The name is not valid for a group.

    """
    if not is_group_name(name):
        raise RefusedError(
            f"INVALID invalid name of a group: {name!r:.80} (1 to 64 letters, digits, '_', '-' and"
            " '.', the first a letter or digit)"
        )


def check_consumer(name: bytes) -> None:
    """
    Check that the name of a new consumer is not too long.

    Raises:
        RefusedError: The name is too long.

    """
    check_length("the name of a consumer", name, _LONGEST_NAME)


def group_name(name: bytes) -> str:
    """Return the name of a group as text; an invalid one is refused later."""
    return name.decode("utf-8", "replace")
