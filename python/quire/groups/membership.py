"""A member of a group: it claims messages, reads them, and acknowledges them."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from itertools import chain, repeat
from threading import RLock, get_ident
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from quire.errors import ClosedError, DataLossError, QuireError
from quire.formats.adapters import end_index_of, journal_of
from quire.groups.delivered import Chunk, Delivered, Part
from quire.groups.fitting import place_in
from quire.groups.letters import Letter
from quire.groups.message import GroupBatch, GroupMessage
from quire.groups.reader import Reader
from quire.groups.turns import Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quire._native import Claim, ClaimKey, Excerpt, GroupMember, Queue, QuickExcerpt
    from quire._waiting.sleeping import Sleeper
    from quire.formats.protocols import AnyQueue
    from quire.groups.delivered import Parts
    from quire.groups.keys import Keys
    from quire.groups.letters import DeadLetters

_LOOK_S: Final = 0.005
"""How often to look for messages to redeliver while there are new ones."""
_OFFERED_AT_ONCE: Final = 64
_NEAR: Final = 64
"""Claims whose messages are at most so far apart are read together."""
_NOTED: Final = 16
"""How many tail records to store for claims that are made together: as many as show the newest."""
_REASONS: Final[dict[str | None, str]] = {
    None: "lost at work: its consumer died or took too long",
    "refused": "refused",
    "timed out": "lost at work: it timed out",
    "consumer died": "lost at work: its consumer died",
    "consumer closed": "lost at work: its consumer was closed",
    "released": "lost at work: it was released",
}
"""What a dead letter says, by why its message was delivered again."""
_LETTER_DELAY_MS: Final = 30_000
"""How long until a dead letter that could not be written is tried again."""
_COUNTERS: Final[dict[str | None, str]] = {
    "refused": "redeliveries_refused",
    "timed out": "redeliveries_timed_out",
    "consumer died": "redeliveries_died",
    "consumer closed": "redeliveries_closed",
    "released": "redeliveries_released",
}
_log: Final = logging.getLogger("quire")

_T = TypeVar("_T")


class Rules(NamedTuple):
    """How a group delivers: name, timeout, keys, dead letters, what happens to lost messages."""

    group: str
    ack_timeout_ms: int
    keys: Keys | None
    dead_letters: DeadLetters | None
    on_missing: str


class Membership:
    """
    A member of a group and the messages delivered to it.

    Args:
        queue: The queue.
        name: The name that others see.
        member: Its place in the side file.
        rules: How the group delivers.

    """

    def __init__(self, queue: AnyQueue, name: str, member: GroupMember, rules: Rules) -> None:
        """Begin without messages."""
        self._name, self._member, self._rules = name, member, rules
        self._queue, self._reader = queue, Reader(queue, rules.on_missing)
        self._counted = _counted(queue)
        self._lock = RLock()
        self._turns: list[Turn] = []
        self._left: Parts = []
        self._delayed: dict[ClaimKey, Claim] = {}
        self._unwritten: dict[int, str] = {}  # the reasons of dead letters, by index
        self._looked_s = 0.0
        self._is_warned = self._is_placed = False
        self._raised_at: int | None = None
        self._fits: tuple[int, int] | None = None

    @property
    def _remote(self) -> None:
        return None

    @property
    def closed(self) -> bool:
        """Whether the member has left the group."""
        return self._member.closed

    @property
    def known(self) -> int:
        """Messages before this index may have been delivered by a state whose counts are lost."""
        return self._member.known

    def may_deliver(self) -> bool:
        """Return whether a read may return a message; only the read knows."""
        return True

    def sleepers(self) -> tuple[Sleeper, Sleeper]:
        """Return what is due once there is a message to claim, or one to take over."""
        return self._reader.sleeper, self._member

    def close(self) -> None:
        """Offer all messages that are not acknowledged to other members, and leave."""
        with self._lock:
            try:
                # Not before the time that was asked for, although others of their ranges wait, too.
                for claim in list(self._delayed.values()):
                    self._member.give_back(claim)
            except QuireError as error:
                _log.debug("delays of a group end with its consumer: error=%s", error)
            finally:
                self._member.close()
                self._reader.close()

    async def in_loop(self, call: Callable[[], _T]) -> _T:
        """Return the result of a call, which waits for no server."""
        return call()

    def read_one(self) -> GroupMessage | None:
        """Return the next message."""
        return self._read(1, self._one, is_one=True)

    def read_many(self, count: int) -> GroupBatch:
        """Return the next messages, about *count* at most."""
        return self._read(count, self._batch, is_one=False)

    def reader(self, count: int) -> Callable[[], GroupBatch]:
        """Return what reads up to *count* messages."""
        return lambda: self.read_many(count)

    def excerpt(self, index: int, data: bytes) -> Excerpt | QuickExcerpt:
        """Return a message as a tailer would."""
        return self._reader.excerpt(index, data)

    def acknowledge_all(self, delivered: Delivered) -> int:
        """Acknowledge messages; return how many were pending."""
        return self._acknowledge(delivered.claims())

    def acknowledge(self, claim: Claim, bits: int) -> bool:
        """Acknowledge messages of a claim; False if none of them was pending."""
        with self._lock:
            (done,) = self._member.acknowledge([(claim, bits)])
            if claim.refused:
                self._give_back_rest(claim)
        return done != 0

    def _acknowledge(self, messages: list[tuple[Claim, int]]) -> int:
        with self._lock:
            done = self._member.acknowledge(messages)
            for claim, _ in messages:
                if claim.refused:
                    self._give_back_rest(claim)
        return sum(map(int.bit_count, done))

    def refuse(self, claim: Claim, bit: int, delay_ms: int) -> bool:
        """Have a message delivered again after a delay; False if it is not pending."""
        with self._lock:
            if not claim.pending & bit:
                return False
            # The rest of the range may be worked on for long: it says now whether it was lost.
            is_held = self._member.extend(claim, 0) and self._put_off(claim, bit, delay_ms)
        if is_held:
            self._count("refusals")
        return is_held

    def _put_off(self, claim: Claim, bit: int, delay_ms: int) -> bool:
        """Have a message delivered again after a delay; False if it is another member's by now."""
        claim.refused |= bit
        if delay_ms:
            claim.available_ms = max(claim.available_ms, time_ns() // 10**6 + delay_ms)
            self._delayed[claim.key] = claim
        return self._give_back_rest(claim)

    def _give_back_rest(self, claim: Claim) -> bool:
        """Offer the rest of a claim to all members once all of it is refused."""
        if not claim.refused or claim.refused != claim.pending:
            return True
        self._delayed.pop(claim.key, None)
        return self._member.give_back(claim)

    def extend(self, claim: Claim, bit: int, timeout_ms: int | None) -> bool:
        """Have a message time out later; False if it is not pending."""
        timeout_ms = self._rules.ack_timeout_ms if timeout_ms is None else timeout_ms
        with self._lock:
            is_held = bool(claim.pending & bit) and self._member.extend(claim, timeout_ms)
        if is_held:
            self._count("extensions")
        return is_held

    def _read(self, count: int, make: Callable[[Parts], _T], *, is_one: bool) -> _T:
        """Convert a read's messages to its result without losing any to a signal."""
        turn = Turn(get_ident())
        try:
            while True:
                turn.is_stolen = False
                with self._lock:
                    self._begin(turn)
                    self._choose(turn, count, is_one=is_one)
                    found = make(turn.parts)
                # From here on nothing is called: a signal comes before, or when the caller has it.
                if not turn.is_stolen:
                    turn.is_done = True
                    return found
        except BaseException:
            turn.is_failed = True
            raise

    def _one(self, parts: Parts) -> GroupMessage | None:
        for claim, part in parts:
            return GroupMessage(self, claim, *part[0])
        return None

    def _batch(self, parts: Parts) -> GroupBatch:
        return GroupBatch(self, Delivered(parts))

    def _begin(self, turn: Turn) -> None:
        """Take the messages of reads that a signal ended, or interrupted in this thread."""
        if turn not in self._turns:
            self._turns.append(turn)
        for other in tuple(self._turns):
            if other is turn:
                continue
            if not other.is_done and (other.is_failed or other.thread == turn.thread):
                # One step: a signal comes before or after it.
                other.parts, self._left, other.is_stolen = [], other.parts + self._left, True
            # In one step: a signal's handler may have removed it.
            if (other.is_done or other.is_failed) and other in self._turns:
                self._turns.remove(other)
        for claim, _ in self._left:
            claim.is_new = False
        rows = self._member.unconfirmed()
        if rows:
            parts = [*self._left, *(part for it in self._turns for part in it.parts)]
            known = {claim.key for claim, _ in parts}
            for claim in rows:
                if claim.key not in known:
                    self._keep(turn, self._again(turn, [claim]), [claim])

    def _keep(self, turn: Turn, parts: Parts, claims: list[Claim]) -> None:
        """Keep the messages of new claims until they are delivered."""
        if turn.is_stolen:
            return
        self._left = self._left + parts  # at once, whatever a signal's handler does
        self._member.confirm(claims)

    def _choose(self, turn: Turn, count: int, *, is_one: bool) -> None:
        """Choose what a read returns: what was asked for, but single claims one by one."""
        while not turn.is_stolen and not turn.parts:
            if not self._left and not self._fill(turn, count):
                return
            while self._left and not turn.is_stolen:
                is_alone = is_one or self._left[0][0].singly
                if is_alone and turn.parts:
                    return
                chosen, left = _first(self._left) if is_alone else _together(self._left)
                parts = turn.parts + self._deliver(chosen)
                if turn.is_stolen:
                    return
                # One step: a signal comes before or after it.
                turn.parts, self._left = parts, left
                if is_alone and parts:
                    return

    def _deliver(self, parts: Parts) -> Parts:
        """Count messages as delivered; return those that no other member has taken meanwhile."""
        again: list[tuple[Claim, int]] = []
        for claim, part in parts:
            if not claim.is_new:
                again.append((claim, part.bits))
            claim.is_new = False
        if not again:
            return parts
        uncounted = [bits & ~claim.counted for claim, bits in again]
        held = self._member.deliver(again)
        lost = {claim.key for (claim, _), is_held in zip(again, held, strict=True) if not is_held}
        kept = [it for it in parts if it[0].key not in lost] if lost else parts
        if self._counted is not None:
            self._count_again(again, uncounted, lost)
        return kept

    def _count_again(
        self, again: list[tuple[Claim, int]], uncounted: list[int], lost: set[ClaimKey]
    ) -> None:
        """Count the messages that were not delivered for the first time."""
        for (claim, _), bits in zip(again, uncounted, strict=True):
            if bits and claim.count_of(bits & -bits) > 1 and claim.key not in lost:
                self._count("redeliveries", bits.bit_count())
                if claim.cause in _COUNTERS:
                    self._count(_COUNTERS[claim.cause], bits.bit_count())

    def _fill(self, turn: Turn, count: int) -> bool:
        """Claim or take over messages; False if there are none."""
        keys = self._rules.keys
        if not self._is_placed:
            self._place(turn)
        is_due = monotonic() - self._looked_s > _LOOK_S
        if is_due or keys is not None:
            self._take(turn, count)
        if not self._left and keys is None:
            self._claim(turn, count)
            if not self._left and not is_due:
                self._take(turn, count)
        while not self._left and keys is not None and self._offer(turn, keys, count):
            self._take(turn, count)
        return bool(self._left)

    def _claim(self, turn: Turn, count: int) -> None:
        """Claim new messages."""
        while (found := self._ahead(turn, count)) is not None:
            frontier, chunk, start = found
            claims = self._member.hold(frontier, chunk.indexes_from(start, count))
            parts: Parts = []
            for claim in claims:
                pending = claim.pending
                length = pending.bit_count()
                rows = range(start, start + length)
                parts.append((claim, Part(chunk, rows, range(length), pending)))
                start += length
                if (later := len(claims) - len(parts)) < _NOTED:
                    self._note(chunk, start - 1, later)
            self._keep(turn, parts, claims)
            if claims or self._is_full(frontier):
                return

    def _offer(self, turn: Turn, keys: Keys, count: int) -> bool:
        """Queue messages until their keys are free; False if there are none."""
        while (found := self._ahead(turn, max(count, _OFFERED_AT_ONCE))) is not None:
            frontier, chunk, _ = found
            hashes = keys.hashes_of(chunk, self._reader.excerpt)
            offered = self._member.offer(frontier, chunk.indexes_from(0), hashes)
            if offered:
                for row in range(max(0, offered - _NOTED), offered):
                    self._note(chunk, row, offered - 1 - row)
                return True
            if self._is_full(frontier):
                return False
        return False

    def _ahead(self, turn: Turn, count: int) -> tuple[tuple[int, int], Chunk, int] | None:
        """Return where the next claim starts, messages and its row there; None without any."""
        while not turn.is_stolen:
            frontier = self._member.frontier()
            chunk, row = self._reader.ahead(frontier[1], count)
            if turn.is_stolen:  # the handler's read moved the tailer
                return None
            if chunk.indexes:
                return frontier, chunk, row
            end = end_index_of(self._queue)
            if end == frontier[1] or self._fits == (frontier[1], end):
                return None
            if not self._place(turn):
                self._fits = (frontier[1], end)
                return None
        return None

    def _place(self, turn: Turn) -> bool:
        """Continue with the first message left if the position no longer fits the queue."""
        frontier = self._member.frontier()
        place = place_in(self._queue, self._reader, frontier[1], self._member.tails())
        if turn.is_stolen:
            return False
        if place is None:
            self._is_placed = True
            return False
        what = (
            f"messages of a group were lost: group={self._rules.group} expected={frontier[1]:#x}"
            f" first={place:#x} path={self._queue.path}"
            ' (on_missing="skip" continues with the first remaining message)'
        )
        if self._rules.on_missing == "raise" and self._raised_at != frontier[1]:
            self._raised_at = frontier[1]
            raise DataLossError(what)
        missing = self._member.move_to(frontier, place)
        if missing is None:
            return not self._is_full(frontier)
        self._raised_at = None
        if self._rules.on_missing == "warn":
            _log.warning(what)
        if missing:
            self._say_deleted(place, missing)
        return True

    def _note(self, chunk: Chunk, row: int, later: int) -> None:
        """Store the tail record of a claim, after which others were made."""
        index = chunk.indexes[row]
        self._member.note_tail(index, self._reader.stored(index, chunk.payload(row)), later)

    def _is_full(self, frontier: tuple[int, int]) -> bool:
        """Return whether nothing could be claimed although no other member was faster."""
        if self._member.frontier() != frontier:
            return False
        if not self._is_warned:
            self._is_warned = True
            _log.warning(
                "too many unacknowledged messages in a group, new ones wait: member=%s",
                self._name,
            )
        return True

    def _take(self, turn: Turn, count: int) -> None:
        """Take over messages that are to be redelivered, or that wait for their keys."""
        self._looked_s = monotonic()
        # Repeat if all messages taken became dead letters or were deleted.
        while not turn.is_stolen and not self._left:
            claims = self._member.take(count)
            if not claims:
                return
            try:
                parts = self._again(turn, claims)
            except BaseException:
                for claim in () if turn.is_stolen else claims:
                    self._member.give_back(claim)
                self._member.confirm(claims)
                raise
            self._keep(turn, parts, claims)

    def _again(self, turn: Turn, claims: list[Claim]) -> Parts:
        """Return the messages of claims that still exist and are not dead letters."""
        found: Parts = []
        keys, step = self._rules.keys, self._reader.step
        has_letters = self._rules.dead_letters is not None
        for claim, chunk in chain.from_iterable(self._chunks_of(turn, claims)):
            if turn.is_stolen:
                return []
            pending = claim.pending
            part = chunk.part_of(claim.first, pending, step)
            if missing := pending & ~part.bits:
                self._say_deleted(claim.first, missing.bit_count())
                self.acknowledge(claim, missing)
            if not part.bits:
                continue
            if has_letters or (keys is not None and keys.is_unknown(claim)):
                left = self._deliverable(claim, part)
                if not left:
                    continue
                part = part.without(~left)
            found.append((claim, part))
        return found

    def _chunks_of(
        self, turn: Turn, claims: list[Claim]
    ) -> Iterator[Iterable[tuple[Claim, Chunk]]]:
        """Yield neighbouring claims, each with messages among which its own are."""
        step = self._reader.step
        ends = [claim.first + claim.pending.bit_length() * step for claim in claims]
        start = 0
        while start < len(claims) and not turn.is_stolen:
            past = start + 1
            while past < len(claims) and 0 <= claims[past].first - ends[past - 1] <= _NEAR * step:
                past += 1
            first = claims[start].first
            chunk = Chunk(self._reader.between(first, ends[past - 1], is_bounded=past > start + 1))
            # Where that was too much at once, and where messages are gone: one by one.
            read = chunk.indexes[-1] + step if chunk.indexes else first
            within = start + bisect_right(ends[start:past], read) if past > start + 1 else past
            yield zip(claims[start:within], repeat(chunk))
            for claim, end in zip(claims[within:past], ends[within:past], strict=True):
                yield ((claim, Chunk(self._reader.between(claim.first, end))),)
            start = past

    def _say_deleted(self, first: int, count: int) -> None:
        _log.warning(
            "messages of a group were deleted before they were acknowledged:"
            " member=%s first=%#x count=%d",
            self._name,
            first,
            count,
        )

    def _deliverable(self, claim: Claim, part: Part) -> int:
        """Write the dead letters of a claim, and return its other messages."""
        failed, dead = self._key_error(claim, part), self._rules.dead_letters
        if dead is None:
            return claim.pending
        reason = failed or _REASONS[claim.cause]
        letters = [
            (bit, Letter(data, index, claim.count_of(bit), reason))
            for bit, index, data in part
            if claim.count_of(bit) >= dead.max_deliveries and not claim.counted & bit
        ]
        for bit, letter in letters:  # each is acknowledged before the next, which may fail
            if self._is_written(dead, letter):
                self.acknowledge(claim, bit)
                self._count("dead_letters", 1)
            else:
                self._put_off(claim, bit, _LETTER_DELAY_MS)
        if failed and not letters:
            self._member.deliver([(claim, claim.pending)])
            self._member.give_back(claim)
        return 0 if failed else claim.pending & ~claim.refused

    def _is_written(self, dead: DeadLetters, letter: Letter) -> bool:
        """Write a dead letter; a failure is logged once, and holds up no other message."""
        index = letter.source_index
        reason = self._unwritten.get(index, letter.reason)
        try:
            dead.write(self._rules.group, letter._replace(reason=reason))
        except ClosedError:
            raise  # the program closed the queue itself
        except (QuireError, OSError) as error:
            if index not in self._unwritten:
                _log.error(
                    "a dead letter cannot be written, and its message stays in the group: group=%s"
                    " index=%#x error=%s (tried again every %d s)",
                    self._rules.group,
                    index,
                    error,
                    _LETTER_DELAY_MS // 1000,
                )
            self._unwritten[index] = reason
            return False
        self._unwritten.pop(index, None)
        return True

    def _key_error(self, claim: Claim, part: Part) -> str:
        """Return why the key of a claim's message is unknown, or nothing."""
        keys = self._rules.keys
        if keys is None or not keys.is_unknown(claim):
            return ""
        _, index, data = part[0]
        error = keys.error_of(self._reader.excerpt(index, data))
        if error and self._rules.dead_letters is None:
            _log.warning(
                "a message of a group has no key, and is delivered in no order: group=%s"
                " index=%#x error=%s",
                self._rules.group,
                index,
                error,
            )
        return error

    def _count(self, counter: str, count: int = 1) -> None:
        """Count for the metrics of the queue, if it has any."""
        if self._counted is not None:
            self._counted._count_shared(counter, count)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def _counted(queue: AnyQueue) -> Queue | None:
    """Return a queue if anything is counted in it."""
    journal = journal_of(queue)
    has_metrics = journal is not None and journal._metrics() is not None  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return journal if has_metrics else None


def _first(parts: Parts) -> tuple[Parts, Parts]:
    """Return the first message, and the others."""
    claim, part = parts[0]
    if len(part.rows) == 1:
        return parts[:1], parts[1:]
    part, others = part.split()
    return [(claim, part)], [(claim, others), *parts[1:]]


def _together(parts: Parts) -> tuple[Parts, Parts]:
    """Return the messages before the first claim that is delivered singly, and the others."""
    count = next((place for place, (claim, _) in enumerate(parts) if claim.singly), len(parts))
    return parts[:count], parts[count:]
