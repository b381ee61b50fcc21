"""
QUIRE.GROUP: members of consumer groups, as at home.

A member lives as long as its connection. What it has not acknowledged then goes to the others, as
that of a consumer whose process died.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from quire.errors import GroupError, QuireError, RefusedError
from quire.groups.states import GroupState, PendingMessage
from quire.server.answers import OK
from quire.server.client_session import Later, Waiting
from quire.server.client_shares import check_room
from quire.server.commands.command_table import Arguments, command
from quire.server.commands.whole_messages import BATCH_COUNT, known
from quire.server.stream_groups import check_consumer, check_group
from quire.server.topic_names import topic_of

if TYPE_CHECKING:
    from quire.groups.consumer import Consumer
    from quire.groups.message import GroupMessage
    from quire.server.answers import Answer
    from quire.server.client_session import Outcome, Session
    from quire.server.served_queue import ServedQueue

_LOOKS_S: Final = 0.25
"""A timeout wakes no member: a waiting one is answered at least this often."""
_MISSING: Final = {b"RAISE": "raise", b"WARN": "warn", b"SKIP": "skip"}
_ENDS: Final = {b"START": "start", b"END": "end"}


class _Member:
    """A consumer, and the messages that it has."""

    def __init__(self, topic: str, consumer: Consumer) -> None:
        self.topic, self.consumer = topic, consumer
        self.messages: dict[int, GroupMessage] = {}

    def read(self, count: int) -> Answer:
        """Return the next messages; None if there are none."""
        batch = self.consumer.read_many(count)
        if not batch:
            return None
        answer: list[Answer] = []
        for message in batch:
            cause = message.redelivery_cause
            answer.append(
                [
                    message.index,
                    message.delivery_count,
                    int(message.redelivered),
                    None if cause is None else cause.encode(),
                    message.data,
                ]
            )
            message.data = b""
            self.messages[message.index] = message
        return answer

    def acknowledge(self, indexes: Sequence[int]) -> list[Answer]:
        """Acknowledge messages; return for each whether the member still had it."""
        return [int(self._taken(it).ack()) if it in self.messages else 0 for it in indexes]

    def refuse(self, delay_ms: int, indexes: Sequence[int]) -> list[Answer]:
        """Return messages, to be delivered again."""
        delay_s = delay_ms / 1000
        found = [self._taken(it) if it in self.messages else None for it in indexes]
        return [0 if it is None else int(it.nack(delay_s=delay_s)) for it in found]

    def extend(self, timeout_ms: int, indexes: Sequence[int]) -> list[Answer]:
        """Give messages more time; 0 stands for the group's timeout."""
        timeout_s = timeout_ms / 1000 or None
        found = [self.messages.get(it) for it in indexes]
        return [0 if it is None else int(it.extend(timeout_s)) for it in found]

    def _taken(self, index: int) -> GroupMessage:
        return self.messages.pop(index)

    def close(self) -> None:
        """Leave the group."""
        self.consumer.close()


@command("QUIRE.GROUP", -3, "write", keys=(2, 2, 1))
def group(session: Session, request: Sequence[bytes]) -> Outcome:
    """Use a consumer group as a member, or manage it."""
    what, given = request[1].upper(), Arguments(request, 2)
    if what in _OF_MEMBERS:
        return _of_member(session, what, given)
    is_change = what in {b"RESET", b"DELETE"}
    found = known(session, topic_of(given.next()), "manage" if is_change else "read")
    if what == b"LIST":
        given.end()
        return Later(lambda: [_state(it) for it in found.queue.groups()])
    name = given.next().decode("utf-8", "replace")
    if what == b"JOIN":
        return _join(session, found, name, given)
    return Later(lambda: _of_group(found, name, what, given))


def _of_group(queue: ServedQueue, name: str, what: bytes, given: Arguments) -> Answer:
    try:
        found = queue.queue.group(name)
        match what:
            case b"STATE":
                return _state(found.state())
            case b"PENDING":
                return [_pending(it) for it in found.pending()]
            case b"RESET":
                found.reset(_place(given))
                return OK
            case b"DELETE":
                return int(found.delete())
            case b"RELEASE":
                return found.release(given.whole("index"), delay_s=given.whole("delay") / 1000)
            case b"EXTEND":
                return found.extend(given.whole("index"), given.whole("timeout") / 1000)
            case _:
                raise RefusedError("syntax error")
    except ValueError as error:
        raise invalid(error) from None


def invalid(error: ValueError) -> Exception:
    """Return the error for a value of the client that is wrong."""
    return error if isinstance(error, QuireError) else RefusedError(f"INVALID {error}")


def _place(given: Arguments) -> int | Literal["start", "end"]:
    if (word := _ENDS.get(given.word())) is not None:
        return cast("Literal['start', 'end']", word)
    return given.whole("index")


def _state(found: GroupState) -> Answer:
    members: list[Answer] = [[it.name.encode(), it.pid, it.messages] for it in found.members]
    return {
        "name": found.name.encode(),
        "lag": found.lag,
        "lowest": found.lowest_index,
        "next": found.next_index,
        "pending": found.pending,
        "oldest_ms": _ms(found.oldest_age_s),
        "members": members,
    }


def _pending(found: PendingMessage) -> Answer:
    return {
        "index": found.index,
        "consumer": None if found.consumer is None else found.consumer.encode(),
        "pid": found.pid,
        "count": found.delivery_count,
        "age_ms": _ms(found.age_s),
        "timeout_ms": _ms(found.timeout_s),
        "delay_ms": _ms(found.delay_s),
        "cause": None if found.cause is None else found.cause.encode(),
    }


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(min(seconds * 1000, 2**62))


def _join(session: Session, found: ServedQueue, name: str, given: Arguments) -> Outcome:
    session.check_held()
    check_group(name)
    check_consumer(wanted := given.next())
    consumer = wanted.decode("utf-8", "replace")
    options: dict[str, Any] = {}
    topics = [found.topic]
    while given:
        if given.takes("TIMEOUT"):
            options["ack_timeout_s"] = given.whole("timeout", least=1) / 1000
        elif given.takes("KEY"):
            options["key"] = given.next().decode("utf-8", "replace")
        elif given.takes("MISSING"):
            options["on_missing"] = _MISSING.get(given.next().upper(), "")
        elif given.takes("DEADLETTER"):
            topics.append(topic_of(given.next()))
            options["dead_letter"] = _letters(session, topics[-1])
            options["max_deliveries"] = given.whole("deliveries", least=1)
        else:
            raise RefusedError("syntax error")

    def answer() -> Answer:
        groups, limit = session.context.groups.names(found), session.context.limits.kept_names
        check_room("groups", name, groups, limit)
        try:
            joined = found.queue.group(name, **options).consumer(consumer)
        except ValueError as error:
            raise invalid(error) from None
        number = 1 + len(session.held)
        while ("member", number) in session.held:
            number += 1
        session.hold(("member", number), _Member(found.topic, joined), *topics)
        return number

    return Later(answer)


def _letters(session: Session, topic: str) -> Any:  # noqa: ANN401 - a queue of any format
    session.check("append", topic)
    found = session.context.queues.get(topic)
    if found is None:
        session.check("create", topic)
        found = session.context.create(topic, {})
    return found.queue


_OF_MEMBERS: Final = {b"READ", b"ACK", b"NACK", b"RENEW", b"LEAVE"}


def _of_member(session: Session, what: bytes, given: Arguments) -> Outcome:
    number = given.whole("member")
    member = session.held.get(("member", number))
    if not isinstance(member, _Member):
        raise GroupError(f"no such member of this connection: member={number}")
    session.check("read", member.topic)
    if what == b"READ":
        return _read(member, given)
    if what == b"LEAVE":
        del session.held["member", number]

        def left() -> Answer:
            member.close()
            return OK

        return Later(left)
    time_ms = given.whole("time") if what in {b"NACK", b"RENEW"} else 0
    calls: dict[bytes, Callable[[list[int]], list[Answer]]] = {
        b"ACK": member.acknowledge,
        b"NACK": lambda indexes: member.refuse(time_ms, indexes),
        b"RENEW": lambda indexes: member.extend(time_ms, indexes),
    }
    return Later(lambda: calls[what]([given.whole("index") for _ in range(given.left)]))


def _read(member: _Member, given: Arguments) -> Outcome:
    count, block = BATCH_COUNT, None
    while given:
        if given.takes("COUNT"):
            count = min(given.whole("count", least=1), BATCH_COUNT)
        elif given.takes("BLOCK"):
            block = given.whole("timeout")
        else:
            raise RefusedError("syntax error")
    answer = member.read(count)
    if answer is not None:
        return answer
    if block is None:
        return []
    wait_s = min(block / 1000 if block else _LOOKS_S, _LOOKS_S)
    until = time.monotonic() + wait_s
    return Waiting((member.topic,), lambda: member.read(count), until, [], yields=True)
