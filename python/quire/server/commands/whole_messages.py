"""Quire's own commands for messages: QUIRE.OPEN, QUIRE.APPEND, QUIRE.READ and others."""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, cast

from quire._native import VERSION
from quire.errors import QuireError, RefusedError
from quire.formats.adapters import adapter_of, end_index_of, periods_of
from quire.formats.columns import Columns
from quire.server.answers import Answer
from quire.server.client_session import Later, Waiting
from quire.server.commands.command_table import Arguments, command, whole
from quire.server.commands.writing import checked, writable
from quire.server.creation import creation_option
from quire.server.topic_names import topic_of

if TYPE_CHECKING:
    from concurrent.futures import Future

    from quire.handles.journal.acknowledgement import History
    from quire.handles.journal.acknowledging import Wait
    from quire.handles.journal.replicas import Replica
    from quire.server.append_ids import Appended
    from quire.server.client_session import Outcome, Session
    from quire.server.served_queue import ServedQueue
    from quire.server.tokens import Right

PROTOCOL: Final = 1
"""The version of Quire's own commands."""
BATCH_COUNT: Final = 65_536
BATCH_BYTES: Final = 8 << 20
_END: Final = 2**63 - 1
_TOGETHER: Final = 4096
_OFFSET: Final = 4
_WORDS: Final = 4096
"""The most bytes of a request to append beside the message."""
_MOST_REPLICAS: Final = 1024
_DESCRIBES: Final[tuple[Right, ...]] = ("read", "append")
"""The rights that allow a client to describe a queue: appenders need the description, too."""


@command("QUIRE.HELLO", 1, "fast")
def hello(session: Session, request: Sequence[bytes]) -> Outcome:
    """Return the version of Quire, and the server's other addresses."""
    del request
    found: dict[str, Answer] = {
        "quire": VERSION.encode(),
        "protocol": PROTOCOL,
        "run": session.context.run_id.encode(),
    }
    return found | {key: at.encode() for key, at in session.context.addresses.items()}


def known(session: Session, topic: str, *rights: Right) -> ServedQueue:
    """
    Return a queue to which the client has one of these rights; by default, the right to read.

    Raises:
        RefusedError: The client may not, or there is no such queue.

    """
    session.check_any(rights or ("read",), topic)
    found = session.context.queues.get(topic)
    if found is None:
        raise RefusedError(f"NOTAQUEUE no such queue: name={topic}")
    return found


@command("QUIRE.OPEN", -2, "write", keys=(1, 1, 1))
def opened(session: Session, request: Sequence[bytes]) -> Outcome:
    """Describe a queue; create it if it does not exist and CREATE is given."""
    topic, given = topic_of(request[1]), Arguments(request, 2)
    creates, options = given.takes("CREATE"), dict[str, Any]()
    while given:
        name = given.next().decode("utf-8", "replace")
        options[name] = creation_option(name, given.next().decode("utf-8", "replace"))
    session.check_any(_DESCRIBES, topic)
    if creates and session.context.queues.get(topic) is None:
        session.check("create", topic)
        session.context.create(topic, options)
    return described(session, known(session, topic, *_DESCRIBES))


@command("QUIRE.INFO", 2, "readonly", keys=(1, 1, 1))
def info(session: Session, request: Sequence[bytes]) -> Outcome:
    """Describe a queue, and where it begins and ends."""
    return described(session, known(session, topic_of(request[1]), *_DESCRIBES))


def described(session: Session, found: ServedQueue) -> Answer:
    """Return the QUIRE.INFO description of a queue."""
    queue: Any = found.queue
    adapter, numbering = adapter_of(queue), found.numbering
    facts: dict[str, Answer] = {
        "name": found.topic.encode(),
        "format": found.format.encode(),
        "first": queue.first_index,
        "last": queue.last_index,
        "end": end_index_of(queue),
        "count": queue.entry_count,
        "bits": numbering.bits,
        "step": numbering.step,
        "dense": int(numbering.is_dense),
        "wire": int(adapter.is_wire),
        "longest": min(found.longest, session.context.limits.request_bytes - _WORDS),
        "writable": int(adapter.is_written and not queue.read_only),
    }
    if adapter.has_cycles:
        periods = periods_of(queue)
        facts |= {
            "epoch_ms": periods.epoch_ms,
            "length_ms": periods.length_ms,
            "cycles": periods.name.encode(),
            "zoned": int(periods.zoned is not None),
        }
    if found.journal is not None:
        facts |= {
            "wire_type": found.journal.wire_type.encode(),
            "source_id": found.journal.source_id,
            "block_bytes": found.journal.block_bytes,
            "acknowledged": found.journal.last_acknowledged_index,
        }
    return facts


@command("QUIRE.CYCLES", 2, "readonly", keys=(1, 1, 1))
def cycles(session: Session, request: Sequence[bytes]) -> Outcome:
    """List the cycles of a queue, each with the sequence after its last message."""
    found = known(session, topic_of(request[1]))

    def answer() -> Answer:
        counts = found.cycle_counts()
        return [array("q", it).tobytes() for it in (counts.keys(), counts.values())]

    return Later(answer)


@command("QUIRE.SYNC", 2, "write", keys=(1, 1, 1))
def sync(session: Session, request: Sequence[bytes]) -> Outcome:
    """Answer once everything that was appended is on the medium."""
    found = writable(session, topic_of(request[1]), creates=False)
    if found is None:
        raise RefusedError("NOTAQUEUE no such queue")

    def answer() -> Answer:
        found.sync()
        return found.queue.last_index

    return Later(answer)


@dataclass(slots=True)
class _Batch:
    """Messages of one client: as a column, or one by one."""

    client: bytes
    number: int
    count: int
    column: tuple[bytes, bytes] | None
    values: list[bytes]

    def messages(self) -> list[bytes]:
        """Return the messages, one by one."""
        if self.column is None:
            return self.values
        offsets, data = memoryview(self.column[0]).cast("i"), self.column[1]
        return [data[offsets[it] : offsets[it + 1]] for it in range(self.count)]

    def without(self, done: int) -> _Batch:
        """Return it without its first messages."""
        return _Batch(
            self.client, self.number + done, self.count - done, None, self.messages()[done:]
        )

    def append(self, found: ServedQueue, *, may_wait: bool) -> int | None:
        """Append them; return the last index, or None if it would have to wait."""
        offsets, data = self.column or _packed(self.values)
        return found.append_columns(offsets, data, self.count, may_wait=may_wait)


def _packed(values: Sequence[bytes]) -> tuple[bytes, bytes]:
    return array("i", accumulate(map(len, values), initial=0)).tobytes(), b"".join(values)


@command("QUIRE.APPEND", -4, "write", "denyoom", keys=(1, 1, 1))
def append(session: Session, request: Sequence[bytes]) -> Outcome:
    """Append whole messages, and return the index of the last."""
    topic, given = topic_of(request[1]), Arguments(request, 2)
    creates = given.takes("CREATE")
    is_metadata = given.takes("METADATA")
    client, number = b"", 0
    if given.takes("ID"):
        client, number = given.next(), given.whole("number", least=1)
    wait = _replicas(given.next()) if given.takes("WAIT") else None
    if is_metadata and wait is not None:
        raise RefusedError("UNSUPPORTED METADATA with WAIT: replicas acknowledge messages by index")
    found = writable(session, topic, creates=creates)
    if found is None:
        raise RefusedError(f"NOTAQUEUE no such queue: name={topic}")
    batch = _batch(found, given, client, number)
    if is_metadata:
        return Later(lambda: found.append_metadata(batch.messages()), line=topic)
    appending = _Append(session, found, batch)
    return appending() if wait is None else _acknowledged(found, appending, wait)


def _replicas(word: bytes) -> Wait:
    """Return how many replicas to wait for: ANY, ALL or a number."""
    match word.upper():
        case b"ANY":
            return "any"
        case b"ALL":
            return "all"
        case other:
            return min(whole(other, "the number of replicas", least=1), _MOST_REPLICAS)


def _acknowledged(found: ServedQueue, appending: _Append, wait: Wait) -> Later:
    """Append, and answer once replicas have the messages."""
    history = found.check_wait(wait)  # before the append
    outcome = appending(history)

    def answer() -> Answer | Future[Answer]:
        last = outcome.call() if isinstance(outcome, Later) else outcome
        known = found.queue.last_index if last is None else last
        return found.when_acknowledged(cast("int", known), wait, appending.history or history)

    if isinstance(outcome, Later):
        return replace(outcome, call=answer)
    return Later(answer)


@command("QUIRE.WAIT", -3, "write", keys=(1, 1, 1))
def wait_for(session: Session, request: Sequence[bytes]) -> Outcome:
    """
    Answer once replicas have the message of an index; without one, with the longest wait.

    With HISTORY: with the last index that they have, and the two numbers of the history.
    """
    found = writable(session, topic_of(request[1]), creates=False)
    if found is None:
        raise RefusedError("NOTAQUEUE no such queue")
    given = Arguments(request, 2)
    wait = _replicas(given.next())
    asks_history = given.takes("HISTORY")
    index = given.whole("index") if given else None
    block_ms = given.whole("timeout") if given.takes("BLOCK") else None
    given.end()
    history = found.check_wait(wait)
    if asks_history:
        return Later(lambda: _flat(*found.reached(wait)))
    if index is None:
        return found.wait_ms
    if block_ms == 0:  # what there is now: nothing joins the line of those that wait
        return Later(lambda: found.reached(wait)[0])
    later = Later(lambda: found.when_acknowledged(index, wait, history))
    if block_ms is not None:
        later.limit_s = min(block_ms, found.wait_ms) / 1000
        later.ends_with = lambda: found.reached(wait)[0]
    return later


def _flat(up_to: int | None, history: History) -> Answer:
    return [up_to, *history]


@command("QUIRE.REPLICAS", 2, "readonly", keys=(1, 1, 1))
def replicas(session: Session, request: Sequence[bytes]) -> Outcome:
    """List the replicas, each with its last acknowledged index."""
    found = known(session, topic_of(request[1]))
    return Later(lambda: [_replica(it) for it in found.replicas()])


def _replica(one: Replica) -> Answer:
    return {
        "name": one.name.encode(),
        "address": one.address.encode(),
        "level": one.level.encode(),
        "lag_s": repr(one.lag_s).encode(),
        "in_sync": int(one.in_sync),
        "acknowledged_index": one.acknowledged_index,
        "lag_messages": one.lag_messages,
        "lag_bytes": one.lag_bytes,
        "connected": int(one.connected),
    }


def _batch(found: ServedQueue, given: Arguments, client: bytes, number: int) -> _Batch:
    """Take VALUES and messages, or PACKED, offsets and bytes."""
    if given.takes("VALUES"):
        values = given.rest()
        if not values:
            raise RefusedError("wrong number of arguments for 'quire.append' command")
        for value in values:
            checked(found, value)
        return _Batch(client, number, len(values), None, values)
    if not given.takes("PACKED"):
        raise RefusedError("syntax error")
    offsets, data = column(given)
    return _Batch(client, number, len(offsets) // _OFFSET - 1, (offsets, data), [])


def column(given: Arguments) -> tuple[bytes, bytes]:
    """
    Take offsets and bytes, the last arguments.

    Raises:
        RefusedError: The offsets do not fit the bytes.

    """
    offsets, data = given.next(), given.next()
    given.end()
    if len(offsets) % _OFFSET or len(offsets) < 2 * _OFFSET:
        raise RefusedError("INVALID the offsets are not numbers of 32 bits, one more than messages")
    if offsets[:4] != bytes(4) or int.from_bytes(offsets[-4:], "little") != len(data):
        raise RefusedError("INVALID the offsets do not begin with 0 and end with the bytes")
    return offsets, data


class _Append:
    """An append that may be a retry: only messages not yet in the queue are appended."""

    def __init__(self, session: Session, found: ServedQueue, batch: _Batch) -> None:
        self._session, self._found, self._batch = session, found, batch
        self._known: Appended | None = None
        self.history: History | None = None

    def __call__(self, history: History | None = None) -> Outcome:
        """
        Append now, in a history if that matters, or later if the append has to wait.

        Of a retry whose messages are in the queue, :attr:`history` is the one they were appended
        in, as far as that is known.
        """
        batch = self._batch
        if batch.client:
            appends = self._session.context.appends
            known = self._known = appends.of(batch.client, self._found.topic)
            if known.is_busy:
                raise RefusedError("TRYAGAIN an append of this client is in progress")
            if known.begun > known.past and batch.number <= known.past:
                appends.settle(self._found, known, batch.number, batch.messages())
            done = known.past - batch.number
            if done >= batch.count:
                self.history = known.history_of(batch.number)
                return known.answers.get(batch.number + batch.count)
            if known.past and done < 0:
                raise RefusedError(
                    f"GAP earlier messages of this client are missing: number={batch.number}"
                    f" expected={known.past}"
                )
            if done > 0 and known.past:
                batch = self._batch = batch.without(done)
            appends.begin(batch.client, self._found, known, batch.number, batch.count)
            if history is not None:
                known.note_history(batch.number, history)
        last = self._append(may_wait=False)
        if last is not None:
            return self._done(last)
        found = self._found
        return Later(self._wait, line=found.topic, together=found.together, gives_up=self._gives_up)

    def _gives_up(self, error: Exception) -> Exception:
        self._end()
        return error

    def _wait(self) -> Answer:
        last = self._append(may_wait=True)
        return None if last is None else self._done(last)

    def _append(self, *, may_wait: bool) -> int | None:
        try:
            return self._batch.append(self._found, may_wait=may_wait)
        except ValueError as error:
            self._end()
            if isinstance(error, QuireError):
                raise
            raise RefusedError(f"INVALID {error}") from None
        except (QuireError, OSError) as error:
            self._end()
            self._session.context.queues.check(self._found, error)
            raise
        except BaseException:
            self._end()
            raise

    def _done(self, last: int) -> int:
        batch = self._batch
        if self._known is not None:
            self._session.context.appends.end(batch.client, self._found, self._known, last)
        return last

    def _end(self) -> None:
        """Let a retry find out which messages were appended."""
        if self._known is not None:
            self._known.is_busy = False


@command("QUIRE.READ", -4, "readonly", "blocking", keys=(1, 1, 1))
def read(session: Session, request: Sequence[bytes]) -> Outcome:
    """Return whole messages from an index on, and wait for them if asked."""
    topic, given = topic_of(request[1]), Arguments(request, 2)
    if not given.takes("FROM"):
        raise RefusedError("syntax error")
    reading = _Reading(session, topic, given.whole("index"))
    block = reading.take(given)
    known(session, topic)
    answer = reading()
    if answer is not None:
        return answer
    if block is None:
        return reading.nothing
    until = None if block == 0 else time.monotonic() + block / 1000
    return Waiting((topic,), reading, until, reading.nothing, yields=True)


class _Reading:
    """A request of QUIRE.READ."""

    def __init__(self, session: Session, topic: str, start: int) -> None:
        self._session, self._topic, self._start = session, topic, start
        self.past, self.count, self.size = _END, BATCH_COUNT, BATCH_BYTES
        self.is_packed = self.has_metadata = self.is_last = False

    def take(self, given: Arguments) -> int | None:
        """Take the options; return how many milliseconds to wait, None if not at all."""
        block: int | None = None
        while given:
            if given.takes("TO"):
                self.past = given.whole("index")
            elif given.takes("COUNT"):
                self.count = min(given.whole("count", least=1), BATCH_COUNT)
            elif given.takes("BYTES"):
                self.size = min(given.whole("bytes", least=1), BATCH_BYTES)
            elif given.takes("BLOCK"):
                block = given.whole("timeout")
            elif given.takes("PACKED"):
                self.is_packed = True
            elif given.takes("METADATA"):
                self.has_metadata = True
            elif given.takes("LAST"):
                self.is_last = True
            else:
                raise RefusedError("syntax error")
        if self.is_last and (self.has_metadata or block is not None):
            raise RefusedError("syntax error")
        return block

    @property
    def nothing(self) -> Answer:
        """The answer if there are no messages."""
        return [self._start, b"", bytes(4), b""] if self.is_packed else [self._start, []]

    def __call__(self) -> Answer:
        """Return the existing messages; None if there are none."""
        found = known(self._session, self._topic)
        try:
            if self.has_metadata:
                return self._documents(found)
            read = found.read_last if self.is_last else found.read
            columns = read(self._start, self.past, self.count, self.size)
        except (QuireError, OSError) as error:
            self._session.context.queues.check(found, error)
            raise
        if not len(columns):
            return None
        form = (self.is_packed, self.is_last)
        return found.answer(columns, form, lambda: self._answer(columns))

    def _answer(self, columns: Columns) -> Answer:
        following = columns.indexes[0] if self.is_last else columns.indexes[-1] + 1
        if self.is_packed:
            return [following, *map(bytes, columns.buffers)]
        messages = enumerate(columns.indexes)
        return [following, [[it, 0, bytes(columns.payload(at))] for at, it in messages]]

    def _documents(self, found: ServedQueue) -> Answer:
        rows = found.read_documents(self._start, self.past, self.count, self.size)
        if not rows:
            return None
        last = max((index for index, is_metadata, _ in rows if not is_metadata), default=None)
        following = self._start if last is None else last + 1
        return [following, [[index, int(flag), data] for index, flag, data in rows]]


@command("QUIRE.SEEK", -4, "readonly", keys=(1, 1, 1))
def seek(session: Session, request: Sequence[bytes]) -> Outcome:
    """Return the index of the first message from an index or a time on, or the end."""
    found, given = known(session, topic_of(request[1])), Arguments(request, 2)
    if given.takes("INDEX"):
        start = given.whole("index")
        given.end()
        return Later(lambda: _first(found, start))
    if not given.takes("TIME"):
        raise RefusedError("syntax error")
    time_ns = whole(given.next(), "time", least=-(2**63))
    field = given.next().decode("utf-8", "replace") if given.takes("FIELD") else None
    given.end()
    return Later(lambda: _first_at(found, time_ns, field))


def _first(found: ServedQueue, start: int) -> int:
    return min(found.index_from(start), found.end_index)


def _first_at(found: ServedQueue, time_ns: int, field: str | None) -> Answer:
    from quire.ranges.seek import first_at

    try:
        return _first(found, first_at(found.queue, time_ns, field))
    except ValueError as error:
        if isinstance(error, QuireError):
            raise
        raise RefusedError(f"INVALID {error}") from None
