"""What a member of a group does: claims messages, reads them, and acknowledges them."""

from __future__ import annotations

import logging
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Final

from quire._native import Queue
from quire.groups.delivered import Claim, Delivered, Part
from quire.groups.reader import Reader

if TYPE_CHECKING:
    from quire._native import Excerpt, GroupMember, QuickExcerpt
    from quire.groups.dead_letters import DeadLetters
    from quire.groups.delivered import Row
    from quire.groups.keys import Keys
    from quire.groups.opening import GroupedQueue

_LOOK_S: Final = 0.005
"""While there are new messages, those to be delivered again are looked for this often."""
_OFFERED_AT_ONCE: Final = 64
_log: Final = logging.getLogger("quire")


class Membership:
    """
    A member of a group, and the messages that it was delivered.

    Args:
        queue: The queue.
        name: What others call it.
        member: Its place in the side file.
        keys: What orders messages.
        dead_letters: Where messages go that were delivered too often.

    """

    def __init__(
        self,
        queue: GroupedQueue,
        name: str,
        member: GroupMember,
        keys: Keys | None,
        dead_letters: DeadLetters | None,
    ) -> None:
        """Begin without messages."""
        self._name, self._member = name, member
        self._keys, self._dead_letters = keys, dead_letters
        self._reader = Reader(queue)
        self._counted = queue if isinstance(queue, Queue) else None
        self._lock = RLock()
        self._left = Delivered()
        self._looked_s = 0.0
        self._is_warned = False

    @property
    def closed(self) -> bool:
        """Whether it ended."""
        return self._member.closed

    def close(self) -> None:
        """Offer all messages that are not acknowledged to other members, and leave."""
        with self._lock:
            self._member.close()
            self._reader.close()

    def read_one(self) -> Row | None:
        """Return the next message."""
        with self._lock:
            # A claim that was taken over may have more messages than one.
            first, self._left = (self._left or self._read(1)).split()
        return first

    def read_many(self, count: int) -> Delivered:
        """Return the next messages, about *count* at most."""
        with self._lock:
            delivered, self._left = self._left or self._read(count), Delivered()
        return delivered

    def excerpt(self, index: int, data: bytes) -> Excerpt | QuickExcerpt:
        """Return a message as a tailer would."""
        return self._reader.excerpt(index, data)

    def acknowledge_all(self, delivered: Delivered) -> int:
        """Acknowledge messages; return how many were pending."""
        return sum(self.acknowledge(claim, bits).bit_count() for claim, bits in delivered.claims())

    def acknowledge(self, claim: Claim, bits: int) -> int:
        """Acknowledge messages of a claim; return those that were pending."""
        with self._lock:
            done = self._member.acknowledge(claim.key, bits)
            claim.pending &= ~bits
            claim.refused &= ~bits
            self._give_back_rest(claim)
        return done

    def refuse(self, claim: Claim, bit: int) -> bool:
        """Have a message delivered again; False if it is not pending."""
        with self._lock:
            if not claim.pending & bit:
                return False
            claim.refused |= bit
            return self._give_back_rest(claim)

    def _give_back_rest(self, claim: Claim) -> bool:
        """Offer what is left of a claim to all members once all of it is refused."""
        if not claim.refused or claim.refused != claim.pending:
            return True
        claim.pending = 0
        return self._member.give_back(claim.key)

    def _read(self, count: int) -> Delivered:
        batch = Delivered()
        is_due = monotonic() - self._looked_s > _LOOK_S
        if is_due or self._keys is not None:
            self._take(batch, count)
        if not batch and self._keys is None:
            self._claim(batch, count)
            if not batch and not is_due:
                self._take(batch, count)
        while not batch and self._keys is not None and self._offer(count):
            self._take(batch, count)
        return batch

    def _claim(self, batch: Delivered, count: int) -> None:
        """Claim messages that no member had."""
        while True:
            frontier = self._member.frontier()
            indexes, columns = self._reader.ahead(frontier[1], count)
            if not len(indexes):
                return
            rows = self._member.hold(frontier, indexes)
            start = 0
            for claim in map(Claim, rows):
                length = claim.pending.bit_count()
                batch.add(claim, Part(columns, range(start, start + length), range(length)))
                start += length
            if rows or self._is_full(frontier):
                return

    def _offer(self, count: int) -> bool:
        """Add messages to those that wait for their key to be free; False if there are none."""
        keys = self._keys
        while keys is not None:
            frontier = self._member.frontier()
            count = max(count, _OFFERED_AT_ONCE)
            indexes, columns = self._reader.ahead(frontier[1], count)
            if not len(indexes):
                return False
            part = Part(columns, range(len(columns[0])), range(len(columns[0])))
            hashes = [keys.of(self._reader.excerpt(index, data)) for _, index, data in part]
            if self._member.offer(frontier, indexes, hashes):
                return True
            if self._is_full(frontier):
                return False
        return False

    def _is_full(self, frontier: tuple[int, int]) -> bool:
        """Return whether nothing could be claimed although no other member was faster."""
        if self._member.frontier() != frontier:
            return False
        if not self._is_warned:
            self._is_warned = True
            _log.warning(
                "too many messages of a group are not acknowledged, new ones wait: member=%s",
                self._name,
            )
        return True

    def _take(self, batch: Delivered, count: int) -> None:
        """Take over messages that are to be delivered again, or that wait for their key."""
        self._looked_s = monotonic()
        # Again, where all that were taken went to the dead letters or were deleted.
        while not batch and (claims := [*map(Claim, self._member.take(count))]):
            try:
                for claim in claims:
                    self._add_again(batch, claim)
            except BaseException:
                for claim in claims:
                    self._member.give_back(claim.key)
                raise

    def _add_again(self, batch: Delivered, claim: Claim) -> None:
        step = self._reader.step
        end = claim.first + claim.pending.bit_length() * step
        columns = self._reader.between(claim.first, end)
        places = [(index - claim.first) // step for index in columns[0]]
        is_pending = [place >= 0 and claim.pending >> place & 1 for place in places]
        rows = [row for row, wanted in enumerate(is_pending) if wanted]
        part = Part(columns, rows, [places[row] for row in rows])
        lost = claim.pending & ~sum(1 << places[row] for row in rows)
        if lost:
            _log.warning(
                "messages of a group were deleted before they were acknowledged:"
                " member=%s first=%#x count=%d",
                self._name,
                claim.first,
                lost.bit_count(),
            )
            self.acknowledge(claim, lost)
        dead = self._dead_letters
        if dead is not None and claim.deliveries > dead.max_deliveries:
            dead.write([data for _, _, data in part])
            self.acknowledge(claim, claim.pending)
            self._count(dead_letters=len(part))
        elif len(part):
            batch.add(claim, part)
            if claim.deliveries > 1:
                self._count(redeliveries=len(part))

    def _count(self, *, redeliveries: int = 0, dead_letters: int = 0) -> None:
        """Count for the metrics of the queue, if it has any."""
        if self._counted is not None:
            self._counted._count_shared(redeliveries, dead_letters)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
