"""Commands that read queues as Redis reads streams: XRANGE, XREAD, XINFO and the like."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from quire.errors import RefusedError
from quire.server.answers import NULL_ARRAY, Answer, ByName, Encoded, bulk, encoded
from quire.server.client_session import Later, Steps, Waiting
from quire.server.commands.command_table import Arguments, batched, command
from quire.server.entry_fields import fields_of
from quire.server.ids import LAST, after, first_of, id_of, past_of
from quire.server.topic_names import topic_of

if TYPE_CHECKING:
    from quire.formats.columns import Columns
    from quire.server.client_session import Outcome, Session
    from quire.server.served_queue import ServedQueue
    from quire.server.stream_groups import StreamGroup

BATCH_BYTES: Final = 8 << 20
BATCH_COUNT: Final = 10_000
_SHORT: Final = 1000


def entry(index: int, data: bytes) -> Encoded:
    """Return an entry: its id, and its fields' names and values, alternating."""
    fields = fields_of(index, data)
    parts = b"".join([b"$%d\r\n%b\r\n" % (len(it), it) for it in fields])
    return Encoded(b"*2\r\n%b*%d\r\n%b" % (bulk(id_of(index)), len(fields), parts))


def entries(columns: Columns) -> list[Answer]:
    """Return messages as entries."""
    data, offsets = bytes(columns.data), columns.offsets
    return [
        entry(index, data[offsets[row] : offsets[row + 1]])
        for row, index in enumerate(columns.indexes)
    ]


@command("XLEN", 2, "readonly", "fast", keys=(1, 1, 1))
def length(session: Session, request: Sequence[bytes]) -> Outcome:
    """Count the messages of a queue."""
    found = session.queue("read", topic_of(request[1]))
    return 0 if found is None else found.queue.entry_count


def _limit(session: Session, given: Arguments) -> int | None:
    count: int | None = None
    while given:
        if not given.takes("COUNT"):
            raise RefusedError("syntax error")
        count = max(0, given.whole(least=-(2**63)))
    del session
    return count


@command("XRANGE", -4, "readonly", keys=(1, 1, 1))
def forward(session: Session, request: Sequence[bytes]) -> Outcome:
    """Return the messages of a range, the oldest first."""
    start, past = first_of(request[2]), past_of(request[3])
    count = _limit(session, Arguments(request, 4))
    found = session.queue("read", topic_of(request[1]))
    if found is None or count == 0:
        return [] if found is None else NULL_ARRAY
    most = session.context.limits.answer_bytes
    if count is not None and count <= _SHORT:
        return _range(found, start, past, count, most)
    return Later(lambda: _range(found, start, past, count, most))


def _range(found: ServedQueue, start: int, past: int, count: int | None, most: int) -> Answer:
    answer: list[Answer] = []
    size = 0
    while count is None or len(answer) < count:
        wanted = BATCH_COUNT if count is None else min(count - len(answer), BATCH_COUNT)
        columns = found.read(start, past, wanted, BATCH_BYTES)
        if not len(columns):
            break
        added = entries(columns)
        answer += added
        size += sum(map(len, added))  # type: ignore[arg-type]
        start = columns.indexes[-1] + 1
        _check_size(size, most)
    return answer


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise RefusedError(f"the answer is too long: limit={most} bytes (give COUNT)")


@command("XREVRANGE", -4, "readonly", keys=(1, 1, 1))
def backward(session: Session, request: Sequence[bytes]) -> Outcome:
    """Return the messages of a range, the newest first."""
    past, start = past_of(request[2]), first_of(request[3])
    count = _limit(session, Arguments(request, 4))
    found = session.queue("read", topic_of(request[1]))
    if found is None or count == 0:
        return [] if found is None else NULL_ARRAY
    most = session.context.limits.answer_bytes
    return Later(lambda: _reversed(found, start, past, count, most))


def _reversed(found: ServedQueue, start: int, past: int, count: int | None, most: int) -> Answer:
    parts = found.read_backward(start, past, 2**31 if count is None else count, most)
    answer = [it for columns in parts for it in entries(columns)]
    _check_size(sum(map(len, answer)), most)  # type: ignore[arg-type]
    return answer[::-1]


@command("XREAD", -4, "readonly", "blocking", "movablekeys")
def read(session: Session, request: Sequence[bytes]) -> Outcome:
    """Return the messages after an id of each queue, and wait for them if asked."""
    given = Arguments(request)
    count, block, keys = _head(given)
    if any(it == b">" for _, it in keys):
        raise RefusedError(
            "The > ID can be specified only when calling XREADGROUP using the GROUP <group>"
            " <consumer> option."
        )
    session.context.queues.peers.check_together([topic for topic, _ in keys])
    places = [(topic, _after(session, topic, it)) for topic, it in keys]
    return _Reading(session, places, count).outcome(block)


def _head(given: Arguments) -> tuple[int, int | None, list[tuple[str, bytes]]]:
    """Take COUNT, BLOCK and STREAMS, as XREAD has them."""
    count, block = BATCH_COUNT, None
    while not given.takes("STREAMS"):
        if given.takes("COUNT"):
            count = given.whole(least=-(2**63))
            count = count if count > 0 else BATCH_COUNT
        elif given.takes("BLOCK"):
            block = given.whole("timeout", least=-1)
            if block < 0:
                raise RefusedError("timeout is negative")
        else:
            raise RefusedError("syntax error")
    return min(count, BATCH_COUNT), block, streams(given, "xread")


def streams(given: Arguments, name: str) -> list[tuple[str, bytes]]:
    """Take names of queues, and as many ids."""
    left = given.rest()
    half = len(left) // 2
    if not left or len(left) % 2:
        raise RefusedError(
            f"Unbalanced '{name}' list of streams: for each stream key an ID or '$' must be"
            " specified."
        )
    return [(topic_of(key), at) for key, at in zip(left[:half], left[half:], strict=True)]


def _after(session: Session, topic: str, at: bytes) -> int:
    session.check("read", topic)
    if at != b"$":
        return after(at)
    found = session.queue("read", topic)
    last = None if found is None else found.queue.last_index
    return 0 if last is None else last + 1


class Reading:
    """
    A request of XREAD or XREADGROUP: messages of each queue, until the answer is long.

    Args:
        session: Who asks.
        topics: The queues.

    """

    def __init__(self, session: Session, topics: Sequence[str]) -> None:
        self._session, self._topics = session, tuple(topics)

    def _check(self, place: int) -> None:
        """Check that the queue at a place of the command can be read."""

    def _read(self, place: int) -> Answer:
        """Return the messages of the queue at a place of the command; None if there are none."""
        raise NotImplementedError

    def _read_parts(self, place: int) -> Generator[None, None, Answer]:
        """Return the same, part by part if that takes long."""
        yield from ()
        return self._read(place)

    def outcome(self, block: int | None, *, is_long: bool = False) -> Outcome:
        """
        Return the answer, or a command that waits for it.

        Args:
            block: How many milliseconds it waits, 0 for ever; None: not at all.
            is_long: Whether one queue may take long, too.

        """
        if is_long or len(self._topics) > 1:
            return Steps(self._parts(block))
        answer = self._attempt()
        return self._none(block) if answer is None else answer

    def _none(self, block: int | None) -> Answer | Waiting:
        if block is None:
            return NULL_ARRAY
        until = None if block == 0 else time.monotonic() + block / 1000
        return Waiting(self._topics, self._attempt, until, NULL_ARRAY)

    def _attempt(self) -> Answer | Steps:
        """Check the queues up to the first that has messages; None if none has."""
        for place in range(len(self._topics)):
            self._check(place)
        for place, topic in enumerate(self._topics):
            if (found := self._read(place)) is not None:
                rest = self._rest([(topic, found)], place + 1)
                return ByName([(topic, found)]) if place + 1 == len(self._topics) else Steps(rest)
        return None

    def _parts(self, block: int | None) -> Generator[None, None, Answer | Waiting | Steps]:
        """Check the queues one by one, and before waiting all at once: then none has messages."""
        for place in range(len(self._topics)):
            self._check(place)
            yield
        answer = yield from self._rest([], 0)
        if answer.pairs:
            return answer
        found = None if block is None else self._attempt()
        return self._none(block) if found is None else found

    def _rest(self, first: list[tuple[str, Answer]], place: int) -> Generator[None, None, ByName]:
        """Add the messages of the queues from a place on, encoded, one queue per part."""
        pairs = [(topic, self._encoded(found)) for topic, found in first]
        size = sum(len(found) for _, found in pairs)
        while place < len(self._topics) and size < BATCH_BYTES:
            yield
            try:
                found = yield from self._read_parts(place)
            except RefusedError:
                if not pairs:
                    raise
                break  # what was delivered is answered: the next command says what is wrong
            if found is not None:
                data = self._encoded(found)
                pairs.append((self._topics[place], data))
                size += len(data)
            place += 1
        return ByName(pairs)

    def _encoded(self, found: Answer) -> Encoded:
        return Encoded(encoded(found, self._session.protocol))


class _Reading(Reading):
    """A request of XREAD."""

    def __init__(self, session: Session, places: list[tuple[str, int]], count: int) -> None:
        super().__init__(session, [topic for topic, _ in places])
        self._places, self._count = places, count

    def _read(self, place: int) -> Answer:
        topic, start = self._places[place]
        found = self._session.context.queues.get(topic)
        if found is None:
            return None
        columns = found.read(start, LAST, self._count, BATCH_BYTES)
        if not len(columns):
            return None
        return found.answer(columns, "entries", partial(entries, columns))


def existing(session: Session, topic: str) -> ServedQueue:
    """
    Return a queue that the client may read.

    Raises:
        RefusedError: The client may not read it, or there is no such queue.

    """
    found = session.queue("read", topic)
    if found is None:
        raise RefusedError("no such key")
    return found


@command("XINFO", -2, "readonly", keys=(2, 2, 1))
def describe(session: Session, request: Sequence[bytes]) -> Outcome:
    """Describe a queue, its groups, or the consumers of a group."""
    what = request[1].upper()
    if what == b"HELP" and len(request) == 2:  # noqa: PLR2004
        return [b"XINFO STREAM name | GROUPS name | CONSUMERS name group"]
    if len(request) < 3:  # noqa: PLR2004
        raise RefusedError("wrong number of arguments for 'xinfo' command")
    found = existing(session, topic_of(request[2]))
    groups = session.context.groups
    match what:
        case b"STREAM" if len(request) == 3:  # noqa: PLR2004
            return _stream(found, len(groups.names(found)))
        case b"STREAM":
            raise RefusedError("not supported: XINFO STREAM FULL (use XINFO GROUPS and XPENDING)")
        case b"GROUPS" if len(request) == 3:  # noqa: PLR2004
            return [*groups.described(found)]
        case b"CONSUMERS" if len(request) == 4:  # noqa: PLR2004
            return Steps(_consumers(groups.of(found, request[3])))
        case _:
            raise RefusedError(
                f"unknown subcommand or wrong number of arguments for"
                f" '{request[1].decode('utf-8', 'replace')}'. Try XINFO HELP."
            )


def _consumers(group: StreamGroup) -> Generator[None, None, Answer]:
    """Return the consumers of a group, each with how many messages it has."""
    had = Counter[bytes]()
    for part in batched([*group.pending.values()]):
        had.update(it.consumer for it in part)
        yield
    return [*group.consumers_described(had)]


def _stream(found: ServedQueue, groups: int) -> Answer:
    first, last, count = found.queue.first_index, found.queue.last_index, found.queue.entry_count
    return {
        "length": count,
        "radix-tree-keys": 0,
        "radix-tree-nodes": 0,
        "last-generated-id": id_of(last or 0),
        "max-deleted-entry-id": b"0-0",
        "entries-added": count,
        "recorded-first-entry-id": id_of(first or 0),
        "groups": groups,
        "first-entry": _one(found, first),
        "last-entry": _one(found, last),
        "format": found.format.encode(),
    }


def _one(found: ServedQueue, index: int | None) -> Answer:
    if index is None:
        return None
    columns = found.read(index, index + 1, 1, BATCH_BYTES)
    return next(iter(entries(columns)), None)
