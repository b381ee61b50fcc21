"""
A life of a consumer group in the build with fault points: three consumers, one after the other.

Says ``D number deliveries`` for each message that it gets, ``B number`` before it acknowledges it
and ``A number`` after. The life after it has no fault, and leaves nothing to be done.
"""

from __future__ import annotations

import math
from pathlib import Path

import quire
from life_server import say, serve

MESSAGES = 20
KEYS = 3
MAX_DELIVERIES = 3
TURNS = 2
AT_ONCE = 5
KEYED, DEAD = "keyed", "dead"
SMALL = 65_536


def is_poison(number: int) -> bool:
    """Return whether no consumer ever acknowledges a message, where there are dead letters."""
    return number % 10 == 3


def dead_letters(path: Path) -> Path:
    return path.with_name(f"{path.name}-dead")


def group_of(queue: quire.JournalQueue, path: Path, form: str) -> quire.Group:
    if form == DEAD:
        return queue.group(
            "life",
            ack_timeout_s=math.inf,
            dead_letter=dead_letters(path),
            max_deliveries=MAX_DELIVERIES,
        )
    return queue.group("life", ack_timeout_s=math.inf, key="key" if form == KEYED else None)


def live(path: Path, form: str, name: str) -> None:
    with quire.open(path, block_bytes=SMALL) as queue:
        if queue.last_index is None:
            with queue.appender() as appender:
                for number in range(MESSAGES):
                    appender.write_map({"key": f"k{number % KEYS}", "number": number})
        group = group_of(queue, path, form)
        with group.consumer("one") as one, group.consumer("two") as two:
            for _ in range(TURNS):
                work(one, form)
                work(two, form)
        with group.consumer(name) as last:
            for message in last:
                finish(message, delivered(message), form)
        other = queue.group("other")
        other.consumer().close()
        other.reset(queue.last_index)
        other.delete()


def work(consumer: quire.Consumer, form: str) -> None:
    """Acknowledge some messages, refuse one, and keep the last, which others get at the end."""
    batch = consumer.read_many(AT_ONCE)
    if len(batch):
        batch[0].extend()
    numbers = [delivered(message) for message in batch]
    for place, (message, number) in enumerate(zip(batch, numbers, strict=True)):
        if place == 1:
            message.nack()
        elif place < AT_ONCE - 1:
            finish(message, number, form)


def delivered(message: quire.GroupMessage) -> int:
    number: int = message.to_dict()["number"]
    say("D", number, message.delivery_count)
    return number


def finish(message: quire.GroupMessage, number: int, form: str) -> None:
    if form == DEAD and is_poison(number):
        assert message.nack()
        return
    say("B", number)
    assert message.ack()
    say("A", number)


if __name__ == "__main__":
    serve(live)
