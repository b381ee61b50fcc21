"""Commands that change queues as Redis changes streams: XADD, XTRIM, and what cannot be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from quire._native import entry_ids
from quire.errors import QuireError, RefusedError
from quire.server.answers import Answer, Encoded, bulk, encoded
from quire.server.client_session import Later
from quire.server.commands.command_table import Arguments, command
from quire.server.entry_fields import message_of
from quire.server.ids import id_of, index_of
from quire.server.served_queue import ServedQueue
from quire.server.topic_names import topic_of

if TYPE_CHECKING:
    from quire._native import PackedEntries
    from quire.server.client_session import Outcome, Session

_TRIMMING: Final = (b"MAXLEN", b"MINID", b"NOMKSTREAM")


@command("XADD", -5, "write", "denyoom", "fast", keys=(1, 1, 1))
def add(session: Session, request: Sequence[bytes]) -> Outcome:
    """Append a message with these fields, and return its id."""
    topic = topic_of(request[1])
    given = Arguments(request, 2)
    creates = not given.takes("NOMKSTREAM")
    if given.word() in _TRIMMING:
        raise RefusedError("not supported: XADD that trims (use XTRIM: whole cycles are removed)")
    if (own := given.next()) != b"*":
        index_of(own)
        raise RefusedError("not supported: an explicit id, as an id is a message's index (give *)")
    fields = given.rest()
    if not fields or len(fields) % 2:
        raise RefusedError("wrong number of arguments for 'xadd' command")
    found = writable(session, topic, creates=creates)
    if found is None:
        return None
    message = checked(found, message_of(fields))
    answer = _answered(session, found, message, may_wait=False)
    if answer is not None:
        return answer
    return _in_line(found, lambda: _answered(session, found, message, may_wait=True))


def add_all(session: Session, entries: PackedEntries) -> Outcome:
    """
    Append the messages of ``XADD`` commands for one queue, and return their ids.

    Raises:
        RefusedError: The client may not append; this is the answer to each command.

    """
    session.check_admitted()
    session.check_transaction()
    key, count, longest, offsets, data = entries
    found = writable(session, topic_of(key), creates=True)
    if found is None:
        return None
    if not found.takes_many or longest > found.longest:
        return _one_by_one(session, found, memoryview(offsets).cast("i"), data)

    def appended(*, may_wait: bool) -> Answer:
        try:
            last = found.append_columns(offsets, data, count, may_wait=may_wait)
        except (QuireError, OSError) as error:
            session.context.queues.check(found, error)
            raise RefusedError(f"ERR {error}") from error
        return None if last is None else _ids(found, last, count)

    answer = appended(may_wait=False)
    return _in_line(found, lambda: appended(may_wait=True), count) if answer is None else answer


def _ids(found: ServedQueue, last: int, count: int) -> Answer:
    """Return the answers of commands whose messages were appended together."""
    if found.numbering.step == 1 and found.numbering.to_sequence(last) + 1 >= count:
        return Encoded(entry_ids(last - count + 1, count))
    return Encoded(b"".join([bulk(id_of(it)) for it in found.indexes(last, count)]))


def _one_by_one(
    session: Session, found: ServedQueue, offsets: memoryview[int], data: bytes
) -> Outcome:
    """Append messages of which some are too long, or that cannot be appended together."""
    errors = session.context.queues.errors

    def answer(place: int) -> Answer:
        message = data[offsets[place] : offsets[place + 1]]
        try:
            return _answered(session, found, checked(found, message), may_wait=True)
        except RefusedError as refusal:
            return errors.refusal(refusal)

    def answers() -> Answer:
        return Encoded(b"".join(encoded(answer(it), 2) for it in range(len(offsets) - 1)))

    return _in_line(found, answers, len(offsets) - 1) if found.takes_many else answers()


def _in_line(found: ServedQueue, call: Callable[[], Answer], count: int = 1) -> Later:
    """Return an append that waits in line for the queue's lock."""
    return Later(
        call,
        count,
        line=found.topic,
        together=found.together,
        gives_up=lambda error: RefusedError(f"ERR {error}"),
    )


def checked(found: ServedQueue, message: bytes) -> bytes:
    """
    Return a message that is not too long.

    Raises:
        RefusedError: The message is too long.

    """
    if len(message) > found.longest:
        raise RefusedError(f"the message is too long: length={len(message)} limit={found.longest}")
    return message


def writable(session: Session, topic: str, *, creates: bool) -> ServedQueue | None:
    """Return a queue to which the client may append; create it if allowed and necessary."""
    found = session.queue("append", topic)
    if found is None and creates:
        session.check("create", topic)
        found = session.context.create(topic, {})
    return found


def _answered(session: Session, found: ServedQueue, message: bytes, *, may_wait: bool) -> Answer:
    """Append a message; None if it would have to wait but may not."""
    try:
        index = found.append(message, may_wait=may_wait)
    except (QuireError, OSError) as error:
        session.context.queues.check(found, error)
        raise RefusedError(f"ERR {error}") from error
    return None if index is None else id_of(index)


@command("XTRIM", -4, "write", keys=(1, 1, 1))
def trim(session: Session, request: Sequence[bytes]) -> Outcome:
    """Remove whole cycles that no reader needs, as retention does; return how many messages."""
    found = session.queue("manage", topic_of(request[1]))
    given = Arguments(request, 2)
    by_length = given.takes("MAXLEN")
    if not by_length and not given.takes("MINID"):
        raise RefusedError("syntax error")
    if not given.takes("~"):
        raise RefusedError("not supported: exact trimming, as whole cycles are removed (give ~)")
    limit = given.whole("threshold") if by_length else index_of(given.next())
    if given.takes("LIMIT"):
        given.whole()
    given.end()
    if found is None:
        return 0
    return Later(partial(_trimmed, found, limit, by_length=by_length))


def _trimmed(found: ServedQueue, limit: int, *, by_length: bool) -> Answer:
    from quire.retaining.pruning import prune

    before = found.queue.entry_count
    keeps = found.cycles_to_keep(limit) if by_length else found.cycles_from(limit)
    found.forget_places()
    prune(found.queue.path, max_cycles=max(1, keeps))
    found.refresh()
    return max(0, before - found.queue.entry_count)


@command("XDEL", -3, "write", keys=(1, 1, 1))
def delete_one(session: Session, request: Sequence[bytes]) -> Outcome:
    """Refuse: a message of a queue cannot be removed."""
    session.check("manage", topic_of(request[1]))
    raise RefusedError(
        "not supported: removing one message, as a queue is append-only (XTRIM removes whole"
        " cycles)"
    )


@command("XSETID", -3, "write", keys=(1, 1, 1))
def set_last(session: Session, request: Sequence[bytes]) -> Outcome:
    """Refuse: an id is the index of a message."""
    session.check("manage", topic_of(request[1]))
    raise RefusedError("not supported: setting the last id, as ids are indexes of messages")


@command("DEL", -2, "write", keys=(1, -1, 1))
@command("UNLINK", -2, "write", keys=(1, -1, 1))
def delete(session: Session, request: Sequence[bytes]) -> Outcome:
    """Refuse: a queue is removed on its own machine."""
    for name in request[1:]:
        session.check("manage", topic_of(name))
    raise RefusedError(
        "not supported: removing a queue (remove its directory where the server runs)"
    )
