"""What dead, slow and interrupted consumers leave: alone, in time, and to the next read."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import quire
from pause_points import Party
from quire.groups import dead_letters

HOUR_S = 3600.0

POISONED = """
import os, sys
import quire
path, letters = sys.argv[1:]
with quire.open(path) as queue:
    group = queue.group("billing", ack_timeout_s=3600.0, dead_letter=letters, max_deliveries=3)
    with group.consumer() as consumer:
        while batch := consumer.read_many(100):
            for message in batch:
                if message.data == b"5":
                    os._exit(1)
                message.ack()
"""


def test_a_message_that_kills_takes_no_other_to_the_dead_letters(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tmp_path: Path
) -> None:
    appender.write_many([b"%d" % number for number in range(64)])
    letters = tmp_path / "letters"
    command = [sys.executable, "-c", POISONED, queue.path, str(letters)]
    codes = [subprocess.run(command, check=False).returncode for _ in range(4)]
    assert codes == [1, 1, 1, 0]
    assert queue.group("billing").lag == 0
    with quire.open(letters) as dead:
        assert [letter.data for letter in dead.tailer()] == [b"5"]
        (letter,) = dead_letters(dead)
    first = queue.first_index
    assert first is not None
    assert (letter.data, letter.source, letter.source_index) == (b"5", queue.path, first + 5)
    assert (letter.group, letter.delivery_count) == ("billing", 3)
    assert letter.reason.startswith("lost at work")


def test_a_refused_message_says_why_it_is_a_dead_letter(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tmp_path: Path
) -> None:
    appender.write_many([b"good", b"bad"])
    with quire.open(tmp_path / "letters") as letters:
        group = queue.group("billing", dead_letter=letters, max_deliveries=2)
        with group.consumer() as consumer:
            for message in consumer:
                assert message.nack() if message.data == b"bad" else message.ack()
        with letters.appender() as other:
            other.write_text("of another program")
        found = [(it.data, it.delivery_count, it.reason) for it in dead_letters(letters)]
    assert found == [(b"bad", 2, "refused"), (found[1][0], 0, "")]


def test_a_message_whose_time_is_over_is_not_given_out(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b", b"c"])
    with queue.group("billing", ack_timeout_s=math.inf).consumer() as gone:
        assert len(gone.read_many(3)) == 3
    with (
        queue.group("billing", ack_timeout_s=0.05).consumer() as slow,
        queue.group("billing", ack_timeout_s=HOUR_S).consumer() as fast,
    ):
        first = slow.read()
        assert first is not None
        taken = next(fast.follow(timeout_s=120))
        assert taken.data == b"a"
        assert slow.read() is None, "what another member works on"
        assert not first.ack()
        assert taken.ack()
        assert [message.data for message in fast if message.ack()] == [b"b", b"c"]


def test_the_time_of_a_message_begins_when_it_is_given_out(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    with queue.group("billing", ack_timeout_s=HOUR_S).consumer() as gone:
        assert len(gone.read_many(2)) == 2
    with queue.group("billing", ack_timeout_s=HOUR_S).consumer() as consumer:
        file = Path(queue.path, "billing.qgroup")
        first = consumer.read()
        assert first is not None
        before = generation(file)
        second = consumer.read()
        assert second is not None
        assert generation(file) > before, "the time did not begin again"
        assert first.ack()
        assert second.ack()


def generation(file: Path) -> int:
    """The generation of the first claim that is held: it changes when its time begins again."""
    content = file.read_bytes()
    states = (content[at : at + 8] for at in range(69_632, len(content), 128))
    word = next(int.from_bytes(state, "little") for state in states if state[7] >> 5 == 3)
    return word >> 42 & (2**18 - 1)


class Interrupted(Exception):  # noqa: N818 - as KeyboardInterrupt
    pass


class Stopping:
    """A member whose call is interrupted right after it was made."""

    def __init__(self, member: Any, call: str, act: Any) -> None:  # noqa: ANN401
        self._member, self._call, self._act = member, call, act

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        found = getattr(self._member, name)
        if name != self._call:
            return found

        def call(*arguments: Any) -> Any:  # noqa: ANN401
            result = found(*arguments)
            self._call = ""
            self._act()
            return result

        return call


CALLS = ("frontier", "hold", "note_tail", "confirm", "tails", "unconfirmed")
AGAIN = ("take", "confirm", "deliver", "unconfirmed")


def interrupt() -> None:
    raise Interrupted


@pytest.mark.parametrize("call", CALLS)
def test_what_an_interrupted_read_claimed_comes_next(
    queue: quire.JournalQueue, appender: quire.JournalAppender, call: str
) -> None:
    appender.write_many([b"%d" % number for number in range(5)])
    with queue.group("billing", ack_timeout_s=math.inf).consumer() as consumer:
        membership: Any = vars(consumer)["_membership"]
        membership._member = Stopping(membership._member, call, interrupt)
        with pytest.raises(Interrupted):
            consumer.read_many(10)
        batch = consumer.read_many(10)
        assert batch.payloads() == [b"%d" % number for number in range(5)]
        assert [message.delivery_count for message in batch] == [1] * 5
        assert consumer.ack_many(batch) == 5
    assert queue.group("billing").lag == 0


@pytest.mark.parametrize("call", AGAIN)
def test_what_an_interrupted_read_took_over_comes_next(
    queue: quire.JournalQueue, appender: quire.JournalAppender, call: str
) -> None:
    appender.write_many([b"%d" % number for number in range(5)])
    with queue.group("billing", ack_timeout_s=math.inf).consumer() as gone:
        gone.read_many(5)
    with queue.group("billing", ack_timeout_s=math.inf).consumer() as consumer:
        membership: Any = vars(consumer)["_membership"]
        membership._member = Stopping(membership._member, call, interrupt)
        with pytest.raises(Interrupted):
            consumer.read()
        found = [message.data for message in consumer if message.ack()]
        assert found == [b"%d" % number for number in range(5)]
    assert queue.group("billing").lag == 0


@pytest.mark.parametrize("is_again", [False, True])
@pytest.mark.parametrize("call", sorted({*CALLS, *AGAIN}))
def test_a_handler_may_read_the_consumer_that_its_signal_interrupts(
    queue: quire.JournalQueue, appender: quire.JournalAppender, call: str, *, is_again: bool
) -> None:
    payloads = [b"%d" % number for number in range(5)]
    appender.write_many(payloads)
    if is_again:
        with queue.group("billing", ack_timeout_s=math.inf).consumer() as gone:
            gone.read_many(5)
    with queue.group("billing", ack_timeout_s=math.inf).consumer() as consumer:
        got: list[bytes] = []

        def read_some() -> None:
            got.extend(message.data for message in consumer.read_many(2) if message.ack())

        membership: Any = vars(consumer)["_membership"]
        membership._member = Stopping(membership._member, call, read_some)
        while batch := consumer.read_many(3):
            got += [message.data for message in batch if message.ack()]
        assert sorted(got) == payloads
    assert queue.group("billing").lag == 0


HANDLER = """
import math, signal, sys
with quire.open(sys.argv[1]) as queue:
    consumer = queue.group("billing", ack_timeout_s=math.inf).consumer()
    def stop(*_):
        raise KeyboardInterrupt
    signal.signal(signal.SIGUSR1, stop)
    arm()
    try:
        consumer.read_many(10)
    except KeyboardInterrupt:
        say("interrupted")
    say([message.data.decode() for message in consumer.read_many(10)])
"""


@pytest.mark.parametrize(
    ("point", "side"),
    [
        ("group.frontier.cas", "after"),
        ("group.complete.cas", "before"),
        ("group.tail.store", "after"),
    ],
)
def test_a_signal_between_claim_and_delivery_loses_nothing(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    point: str,
    side: Any,  # noqa: ANN401
) -> None:
    appender.write_many([b"a", b"b"])
    with Party(HANDLER, queue.path, point=point, side=side) as party:
        party.wait_until_stopped()
        os.kill(party.process.pid, signal.SIGUSR1)
        party.go_on()
        assert party.result() == ["interrupted", ["a", "b"]]


def test_a_cancelled_task_leaves_its_messages(queue: quire.JournalQueue) -> None:
    async def cancelled() -> list[bytes]:
        with queue.group("billing", ack_timeout_s=math.inf).consumer() as consumer:

            async def work() -> None:
                async for message in consumer:
                    assert message.ack()

            task = asyncio.create_task(work())
            await asyncio.sleep(0)
            with queue.appender() as appender:
                appender.write_many([b"a", b"b"])
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return [message.data for message in consumer.read_many(10)]

    assert asyncio.run(cancelled()) == [b"a", b"b"]
