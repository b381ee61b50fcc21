"""Commands that change queues as Redis changes streams: XADD, XTRIM, and what cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from quire.errors import QuireError, RefusedError
from quire.server.answers import Answer, Encoded, bulk, encoded
from quire.server.client_session import Later
from quire.server.commands.command_table import Arguments, command
from quire.server.commands.ranging import existing
from quire.server.entry_fields import message_of
from quire.server.ids import index_of
from quire.server.served_queue import ServedQueue
from quire.server.topic_names import topic_of

if TYPE_CHECKING:
    from quire.server.client_session import Outcome, Session

_TOGETHER: Final = 512
_SHORTEST: Final = 5
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
        raise RefusedError(
            "not supported: an id of one's own, as an id is a message's index (give *)"
        )
    fields = given.rest()
    if not fields or len(fields) % 2:
        raise RefusedError("wrong number of arguments for 'xadd' command")
    found = writable(session, topic, creates=creates)
    if found is None:
        return None
    messages = [checked(found, message_of(fields))]
    if found.takes_many:
        messages += _more(session, found, request[1])
    return _append(session, found, messages)


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
    """Return a queue that the client may append to; make it if it may, and there is none."""
    found = session.queue("append", topic)
    if found is None and creates:
        session.check("create", topic)
        found = session.context.queues.create(topic, {})
        session.context.created(topic)
    return found


def _more(session: Session, queue: ServedQueue, key: bytes) -> list[bytes]:
    """Take the commands that follow as far as they append to the same queue, too."""
    found: list[bytes] = []
    commands = session.commands
    while commands and len(found) < _TOGETHER:
        request = commands[0]
        is_alike = (
            len(request) >= _SHORTEST
            and len(request) % 2 == 1
            and request[1] == key
            and request[2] == b"*"
            and request[0].upper() == b"XADD"
        )
        if not is_alike:
            break
        try:
            found.append(checked(queue, message_of(request[3:])))
        except RefusedError:  # its turn comes
            break
        commands.popleft()
        session.context.commands += 1
    return found


def _append(session: Session, found: ServedQueue, messages: list[bytes]) -> Outcome:
    answer = _answered(session, found, messages, may_wait=False)
    if answer is not None:
        return answer
    return Later(lambda: _answered(session, found, messages, may_wait=True))


def _answered(
    session: Session, found: ServedQueue, messages: list[bytes], *, may_wait: bool
) -> Answer:
    """Append messages together; None: it would have to wait, and may not."""
    try:
        indexes = found.append(messages, may_wait=may_wait)
    except (QuireError, OSError) as error:
        session.context.queues.check(found, error)
        return _for_each(error, len(messages))
    return None if indexes is None else _ids(indexes)


def _for_each(error: QuireError | OSError, count: int) -> Answer:
    """Return an error as the answer of several commands."""
    return Encoded(encoded(RefusedError(f"ERR {error}"), 2) * count)


def _ids(indexes: list[int]) -> Answer:
    """Return the answers of several commands as one."""
    return Encoded(b"".join([bulk(b"%d-0" % it) for it in indexes]))


@command("XTRIM", -4, "write", keys=(1, 1, 1))
def trim(session: Session, request: Sequence[bytes]) -> Outcome:
    """Remove whole cycles that no reader needs, as retention does; return how many messages."""
    topic = topic_of(request[1])
    found = existing(session, topic)
    session.check("manage", topic)
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
    return Later(partial(_trimmed, found, limit, by_length=by_length))


def _trimmed(found: ServedQueue, limit: int, *, by_length: bool) -> Answer:
    from quire.retaining.pruning import prune

    before = found.queue.entry_count
    keeps = found.cycles_to_keep(limit) if by_length else found.cycles_from(limit)
    prune(found.queue.path, max_cycles=max(1, keeps))
    found.refresh()
    return max(0, before - found.queue.entry_count)


@command("XDEL", -3, "write", keys=(1, 1, 1))
def delete_one(session: Session, request: Sequence[bytes]) -> Outcome:
    """Refuse: a message of a queue cannot be removed."""
    session.check("manage", topic_of(request[1]))
    raise RefusedError(
        "not supported: removing one message, as a queue is only appended to (XTRIM removes whole"
        " cycles)"
    )


@command("XSETID", -3, "write", keys=(1, 1, 1))
def set_last(session: Session, request: Sequence[bytes]) -> Outcome:
    """Refuse: an id is the index of a message."""
    session.check("manage", topic_of(request[1]))
    raise RefusedError("not supported: setting the last id, as an id is the index of a message")


@command("DEL", -2, "write", keys=(1, -1, 1))
@command("UNLINK", -2, "write", keys=(1, -1, 1))
def delete(session: Session, request: Sequence[bytes]) -> Outcome:
    """Refuse: a queue is removed on its own machine."""
    for name in request[1:]:
        session.check("manage", topic_of(name))
    raise RefusedError(
        "not supported: removing a queue (remove its directory where the server runs)"
    )
