"""Commands of consumer groups: XGROUP, XREADGROUP, XACK, XPENDING, XCLAIM and XAUTOCLAIM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from quire.errors import RefusedError
from quire.server.answers import OK, Answer
from quire.server.client_session import Steps
from quire.server.client_shares import check_room
from quire.server.commands.command_table import Arguments, batched, command, whole
from quire.server.commands.ranging import (
    BATCH_BYTES,
    BATCH_COUNT,
    Reading,
    entry,
    streams,
)
from quire.server.commands.writing import writable
from quire.server.ids import LAST, after, first_of, id_of, messages_of, past_of
from quire.server.stream_groups import StreamGroup, check_group, group_name, now_ms
from quire.server.topic_names import topic_of

if TYPE_CHECKING:
    from quire.server.client_session import Outcome, Session

_DELIVERED: Final = 1000
_MOST_CLAIMED: Final = (2**63 - 1) // 16
_GROUP_HELP: Final = (
    b"XGROUP CREATE key group id|$ [MKSTREAM] | SETID key group id|$ | DESTROY key group"
    b" | CREATECONSUMER key group consumer | DELCONSUMER key group consumer"
)
_NO_KEY: Final = (
    "The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the"
    " MKSTREAM option to create an empty stream automatically."
)


@command("XGROUP", -2, "write", keys=(2, 2, 1))
def manage(session: Session, request: Sequence[bytes]) -> Outcome:
    """Create, move or remove a group, or one of its consumers."""
    what = request[1].upper()
    if what == b"HELP":
        return [_GROUP_HELP]
    if what not in {b"CREATE", b"SETID", b"DESTROY", b"CREATECONSUMER", b"DELCONSUMER"}:
        shown = request[1].decode("utf-8", "replace")
        raise RefusedError(f"unknown subcommand '{shown}'. Try XGROUP HELP.")
    if len(request) < 4 + (what != b"DESTROY"):
        raise RefusedError(
            f"wrong number of arguments for 'xgroup|{what.decode().lower()}' command"
        )
    topic, name = topic_of(request[2]), request[3]
    if what == b"CREATE":
        return _create(session, topic, name, Arguments(request, 4))
    session.check("read" if what == b"CREATECONSUMER" else "manage", topic)
    found, groups = session.context.queues.get(topic), session.context.groups
    if found is None:
        raise RefusedError(_NO_KEY)
    match what:
        case b"SETID":
            groups.move(found, name, _start(Arguments(request, 4)))
            return OK
        case b"DESTROY":
            is_gone = groups.destroy(found, name)
            session.context.created(topic)  # who waits for its messages is answered
            return int(is_gone)
        case b"CREATECONSUMER":
            group = groups.of(found, name)
            is_new = request[4] not in group.consumers
            group.see(request[4])
            return int(is_new)
        case _:
            return _dropped(groups.of(found, name), request[4])


def _dropped(group: StreamGroup, consumer: bytes) -> Outcome:
    """Remove a consumer, and return how many messages it had."""

    def acknowledged() -> Generator[None, None, Answer]:
        count = 0
        for part in batched([*group.of_consumer(consumer)]):
            mine = [it for it in part if group.owner_of(it) == consumer]
            count += group.acknowledge(mine)
            yield
        return count + group.drop(consumer)

    return Steps(acknowledged())


def _create(session: Session, topic: str, name: bytes, given: Arguments) -> Outcome:
    session.check("read", topic)
    at = given.next()
    makes = False
    while given:
        if given.takes("MKSTREAM"):
            makes = True
        elif given.takes("ENTRIESREAD"):
            given.whole(least=-1)
        else:
            raise RefusedError("syntax error")
    start = None if at == b"$" else after(at)
    check_group(group_name(name))
    found = session.context.queues.get(topic)
    if found is None and makes:
        found = writable(session, topic, creates=True)
    if found is None:
        raise RefusedError(_NO_KEY)
    groups, limit = session.context.groups, session.context.limits.kept_names
    check_room("groups", group_name(name), groups.names(found), limit)
    groups.create(found, name, start)
    return OK


def _start(given: Arguments) -> int | None:
    at = given.next()
    if given.takes("ENTRIESREAD"):
        given.whole(least=-1)
    given.end()
    return None if at == b"$" else after(at)


@command("XREADGROUP", -7, "write", "blocking", "movablekeys")
def read(session: Session, request: Sequence[bytes]) -> Outcome:
    """Return messages that no consumer of the group has yet, or those that this one has."""
    given = Arguments(request)
    if not given.takes("GROUP"):
        raise RefusedError("syntax error")
    group, consumer = given.next(), given.next()
    count, block, keeps = _DELIVERED, None, True
    while not given.takes("STREAMS"):
        if given.takes("COUNT"):
            count = given.whole(least=-(2**63))
        elif given.takes("BLOCK"):
            block = given.whole("timeout")
        elif given.takes("NOACK"):
            keeps = False
        else:
            raise RefusedError("syntax error")
    keys = streams(given, "xreadgroup")
    if any(at == b"$" for _, at in keys):
        raise RefusedError(
            "The $ ID is meaningless in the context of XREADGROUP: you want to read the history of"
            " this consumer by specifying a proper ID, or use the > ID to get new messages."
            " The $ ID would just return an empty result set."
        )
    session.context.queues.peers.check_together([topic for topic, _ in keys])
    count = min(count if count > 0 else _DELIVERED, BATCH_COUNT)
    has_history = any(at != b">" for _, at in keys)
    reading = _GroupReading(session, group, consumer, keys, count, keeps=keeps)
    return reading.outcome(None if has_history else block, is_long=has_history)


class _GroupReading(Reading):
    """A request of XREADGROUP."""

    def __init__(  # noqa: PLR0913 - its arguments
        self,
        session: Session,
        group: bytes,
        consumer: bytes,
        keys: list[tuple[str, bytes]],
        count: int,
        *,
        keeps: bool,
    ) -> None:
        super().__init__(session, [topic for topic, _ in keys])
        self._group, self._consumer = group, consumer
        self._keys, self._count, self._keeps = keys, count, keeps
        self._groups: dict[int, StreamGroup] = {}

    def _check(self, place: int) -> None:
        topic = self._keys[place][0]
        self._groups[place] = _group(
            self._session, topic, self._group, " in XREADGROUP with GROUP option"
        )

    def _read(self, place: int) -> Answer:
        found = self._groups[place].deliver(self._consumer, self._count, keeps=self._keeps)
        return [entry(index, data) for index, data in found] or None

    def _read_parts(self, place: int) -> Generator[None, None, Answer]:
        at = self._keys[place][1]
        if at == b">":
            return self._read(place)
        return (yield from self._history(self._groups[place], after(at)))

    def _history(self, group: StreamGroup, start: int) -> Generator[None, None, list[Answer]]:
        """Return the consumer's messages, which count as delivered once more."""
        group.see(self._consumer)
        answer: list[Answer] = []
        size = 0
        for part in batched([*group.of_consumer(self._consumer, start)][: self._count]):
            delivered: list[int] = []
            try:
                for index in part:
                    if group.owner_of(index) != self._consumer:
                        continue  # since the part before
                    data = group.data_of(index)
                    size += len(data or b"")
                    if answer and size > BATCH_BYTES:
                        return answer
                    answer.append([id_of(index), None] if data is None else entry(index, data))
                    if data is not None:
                        group.claim(index, self._consumer, count=group.pending[index].count + 1)
                        delivered.append(index)
            finally:
                group.save(delivered)
            yield
        return answer


def _group(session: Session, topic: str, name: bytes, where: str = "") -> StreamGroup:
    found = session.queue("read", topic)
    group = None if found is None else session.context.groups.find(found, name)
    if group is None:
        raise RefusedError(
            f"NOGROUP No such key '{topic}' or consumer group '{group_name(name)}'{where}"
        )
    return group


@command("XACK", -4, "write", "fast", keys=(1, 1, 1))
def acknowledge(session: Session, request: Sequence[bytes]) -> Outcome:
    """Acknowledge messages; return how many were pending."""
    found = session.queue("read", topic_of(request[1]))
    group = None if found is None else session.context.groups.find(found, request[2])
    if group is None:
        return 0

    def acknowledged() -> Generator[None, None, Answer]:
        indexes: list[int] = []
        for ids in batched(request[3:]):
            indexes += messages_of(ids)
            yield
        count = 0
        for part in batched(indexes):
            count += group.acknowledge(part)
            yield
        return count

    return Steps(acknowledged())


@command("XPENDING", -3, "readonly", keys=(1, 1, 1))
def pending(session: Session, request: Sequence[bytes]) -> Outcome:
    """Return the pending messages, as a summary or one by one."""
    group = _group(session, topic_of(request[1]), request[2])
    given = Arguments(request, 3)
    if not given:
        return _summary(group)
    idle = given.whole(least=-(2**63)) if given.takes("IDLE") else 0
    start, past, count = first_of(given.next()), past_of(given.next()), given.whole(least=-(2**63))
    consumer = given.next() if given else None
    given.end()

    def listed() -> Generator[None, None, Answer]:
        found: list[Answer] = []
        for part in batched([*group.of_consumer(consumer, start, past)]):
            for index in part:
                if len(found) >= count:
                    return found
                it = group.pending.get(index)
                if it is not None and consumer in {None, it.consumer} and it.idle_ms >= idle:
                    found.append([id_of(index), it.consumer, it.idle_ms, it.count])
            yield
        return found

    return Steps(listed())


def _summary(group: StreamGroup) -> Outcome:
    def counted() -> Generator[None, None, Answer]:
        counts, low, high = Counter[bytes](), LAST, 0
        for part in batched([*group.pending.items()]):
            counts.update(it.consumer for _, it in part)
            indexes = [index for index, _ in part]
            low, high = min(low, *indexes), max(high, *indexes)
            yield
        if not counts:
            return [0, None, None, None]
        each: list[Answer] = [[name, b"%d" % counts[name]] for name in sorted(counts)]
        return [counts.total(), id_of(low), id_of(high), each]

    return Steps(counted())


@command("XCLAIM", -6, "write", "fast", keys=(1, 1, 1))
def claim(session: Session, request: Sequence[bytes]) -> Outcome:
    """Give pending messages to a consumer, unless they were delivered recently."""
    group = _group(session, topic_of(request[1]), request[2])
    consumer, least = request[3], _least(request)
    past = next((at for at, it in enumerate(request[5:], 5) if not it[:1].isdigit()), len(request))
    idle, count, just_ids = _claim_options(Arguments(request, past))

    def claimed() -> Generator[None, None, Answer]:
        indexes: list[int] = []
        for ids in batched(request[5:past]):
            indexes += messages_of(ids)
            yield
        group.see(consumer)
        claiming = _Claiming(group, consumer, least, idle, count, just_ids=just_ids)
        for part in batched(indexes):
            claiming.claim(part)
            yield
        return claiming.found

    return Steps(claimed())


def _least(request: Sequence[bytes]) -> int:
    """Return the idle time from which on XCLAIM and XAUTOCLAIM take a message."""
    what = f"Invalid min-idle-time argument for {request[0].decode().upper()}: it"
    return max(0, whole(request[4], what, least=-(2**63)))


def _claim_options(given: Arguments) -> tuple[int, int | None, bool]:
    idle, count, just_ids = 0, None, False
    while given:
        if given.takes("IDLE"):
            idle = _in_the_past(given.whole(least=-(2**63)))
        elif given.takes("TIME"):
            idle = _in_the_past(now_ms() - given.whole(least=-(2**63)))
        elif given.takes("RETRYCOUNT"):
            wanted = given.whole(least=-(2**63))
            count = None if wanted < 0 else wanted
        elif given.takes("JUSTID"):
            just_ids = True
        elif given.takes("LASTID"):
            messages_of([given.next()])
        elif given.takes("FORCE"):
            raise RefusedError(
                "not supported: XCLAIM FORCE, as only delivered messages can be claimed"
            )
        else:
            raise RefusedError(
                f"Unrecognized XCLAIM option '{given.next().decode('utf-8', 'replace')}'"
            )
    return idle, count, just_ids


def _in_the_past(idle_ms: int) -> int:
    """Return an idle time; 0 for one that began in the future, or before 1970."""
    return idle_ms if 0 <= idle_ms <= now_ms() else 0


class _Claiming:
    """Claims pending messages of a group, for XCLAIM and XAUTOCLAIM."""

    def __init__(  # noqa: PLR0913 - options of XCLAIM
        self,
        group: StreamGroup,
        consumer: bytes,
        least: int,
        idle: int = 0,
        count: int | None = None,
        *,
        just_ids: bool,
    ) -> None:
        self._group, self._consumer, self._least = group, consumer, least
        self._idle, self._count, self._just_ids = idle, count, just_ids
        self._size = 0
        self.found: list[Answer] = []
        self.deleted: list[Answer] = []

    def claim(self, indexes: Sequence[int], most: int | None = None) -> int | None:
        """
        Claim the messages that were pending long enough, and save the new owner.

        Args:
            indexes: The messages.
            most: How many messages the answer may have; None: any number.

        Returns:
            The first message that was not looked at since the answer is full; None: all were.

        """
        claimed: list[int] = []
        try:
            for index in indexes:
                if len(self.found) == most or self._size >= BATCH_BYTES:
                    return index
                if self._claim_one(index):
                    claimed.append(index)
        finally:
            self._group.save(claimed)
        return None

    def _claim_one(self, index: int) -> bool:
        group, known = self._group, self._group.pending.get(index)
        if known is None or known.idle_ms < self._least:
            return False
        data = group.data_of(index)
        if data is None:  # deleted: it is no longer pending
            group.acknowledge([index])
            self.deleted.append(id_of(index))
            return False
        more = self._count if self._count is not None else known.count + (not self._just_ids)
        group.claim(index, self._consumer, idle_ms=self._idle, count=more)
        said = id_of(index) if self._just_ids else entry(index, data)
        self._size += len(said)
        self.found.append(said)
        return True


@command("XAUTOCLAIM", -6, "write", "fast", keys=(1, 1, 1))
def claim_next(session: Session, request: Sequence[bytes]) -> Outcome:
    """Give pending messages to a consumer, from an id on."""
    group = _group(session, topic_of(request[1]), request[2])
    consumer, least = request[3], _least(request)
    given = Arguments(request, 6)
    start, count, just_ids = first_of(request[5]), 100, False
    while given:
        if given.takes("COUNT"):
            count = given.whole("COUNT", least=-(2**63))
            if not 0 < count <= _MOST_CLAIMED:
                raise RefusedError("COUNT must be > 0")
        elif given.takes("JUSTID"):
            just_ids = True
        else:
            raise RefusedError("syntax error")

    def claimed() -> Generator[None, None, Answer]:
        group.see(consumer)
        claiming = _Claiming(group, consumer, least, just_ids=just_ids)
        looked = [*islice(group.of_consumer(None, start, LAST), count * 10 + 1)]
        for part in batched(looked[: count * 10]):
            if (following := claiming.claim(part, count)) is not None:
                return [id_of(following), claiming.found, claiming.deleted]
            yield
        following = looked[-1] if len(looked) > count * 10 else 0
        return [id_of(following), claiming.found, claiming.deleted]

    return Steps(claimed())
