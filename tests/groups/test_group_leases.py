"""How long a consumer has a message: delays, extensions, releases; and why it comes again."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from queues import exit_code, fork
from quire.errors import ClosedError, ForkedError, GroupError, ReadOnlyError

HOUR_S = 3600.0
SHORT_S = 0.05
CLAIMS = 69_632
CLAIM = 128

Events = list[tuple[bytes, int, str | None]]


def group(queue: quire.JournalQueue, ack_timeout_s: float = math.inf) -> quire.Group:
    return queue.group("billing", ack_timeout_s=ack_timeout_s)


def read(consumer: quire.Consumer) -> quire.GroupMessage:
    message = consumer.read()
    assert message is not None
    return message


def rest(consumer: quire.Consumer) -> Events:
    return [(it.data, it.delivery_count, it.redelivery_cause) for it in consumer if it.ack()]


def wait_for(consumer: quire.Consumer) -> quire.GroupMessage:
    return next(consumer.follow(timeout_s=HOUR_S))


def test_a_delayed_message_comes_again_not_before_its_time(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    with group(queue).consumer() as consumer, group(queue).consumer() as other:
        first = read(consumer)
        refused = time.time()
        assert first.nack(delay_s=0.2)
        assert rest(consumer) == [(b"b", 1, None)], "others go on"
        assert other.read() is None
        again = wait_for(other)
        assert time.time() - refused >= 0.199
        assert (again.data, again.delivery_count, again.redelivery_cause) == (b"a", 2, "refused")
        assert again.ack()
    assert group(queue).lag == 0


def test_a_delay_holds_back_what_follows_of_its_key_alone(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    for number in range(4):
        appender.write_map({"order": number, "account": "AB"[number % 2]})
    with queue.group("billing", key="account").consumer() as consumer:
        assert read(consumer).nack(delay_s=HOUR_S)
        assert [it.to_dict()["order"] for it in consumer if it.ack()] == [1, 3]
    (held,) = group(queue).pending()
    assert (held.index, held.consumer, held.cause) == (queue.first_index, None, "refused")
    assert HOUR_S - 60 < held.delay_s < HOUR_S + 60


def test_the_longest_delay_of_a_range_counts(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b", b"c"])
    with group(queue).consumer() as consumer:
        batch = consumer.read_many(3)
        assert batch[0].nack(delay_s=HOUR_S)
        assert batch[1].nack(delay_s=60)
        assert not any(it.delay_s for it in group(queue).pending()), "c is not settled"
        assert batch[2].ack()
    assert [it.delay_s > HOUR_S - 60 for it in group(queue).pending()] == [True, True]


def test_a_closed_consumer_keeps_the_delays_that_it_asked_for(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    with group(queue).consumer() as consumer:
        assert consumer.read_many(2)[0].nack(delay_s=HOUR_S)
    with group(queue).consumer() as consumer:
        assert consumer.read() is None


@pytest.mark.parametrize("delay", [-1.0, math.nan])
def test_a_delay_that_is_none_changes_nothing(
    queue: quire.JournalQueue, appender: quire.JournalAppender, delay: float
) -> None:
    appender.write_bytes(b"a")
    with group(queue).consumer() as consumer:
        message = read(consumer)
        with pytest.raises(ValueError, match="delay_s"):
            message.nack(delay_s=delay)
        with pytest.raises(ValueError, match="timeout_s"):
            message.extend(delay)
        assert message.ack()


def test_an_extended_message_does_not_time_out(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    slow, other = group(queue, SHORT_S).consumer(), group(queue, SHORT_S).consumer()
    with slow, other:
        batch = slow.read_many(2)
        assert batch[0].extend(HOUR_S)
        assert batch[1].extend(), "which shortens nothing"
        time.sleep(2 * SHORT_S)
        assert other.read() is None
        assert slow.ack_many(batch) == 2


def test_a_delivery_from_an_extended_range_shortens_nothing(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    with group(queue).consumer() as gone:
        gone.read_many(2)
    with group(queue, SHORT_S).consumer() as slow, group(queue, SHORT_S).consumer() as other:
        first = read(slow)
        assert first.extend(HOUR_S)
        second = read(slow)
        time.sleep(2 * SHORT_S)
        assert other.read() is None
        assert first.ack()
        assert second.ack()


def test_an_extension_that_comes_too_late_says_so(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"a")
    with group(queue, SHORT_S).consumer() as slow, group(queue).consumer() as other:
        message = read(slow)
        again = wait_for(other)
        assert (again.delivery_count, again.redelivery_cause) == (2, "timed out")
        assert not message.extend(HOUR_S)
        assert not message.nack(delay_s=HOUR_S)
        assert not message.ack()
        assert again.ack()


def test_one_of_a_batch_that_is_refused_too_late_says_so(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b", b"c"])
    with group(queue, SHORT_S).consumer() as slow, group(queue).consumer() as other:
        batch = slow.read_many(3)
        again = wait_for(other)
        assert not batch[0].nack(delay_s=HOUR_S)
        assert not batch[1].nack()
        assert again.ack()
        assert [it[0] for it in rest(other)] == [b"b", b"c"], "nothing was delayed"


def test_one_of_a_batch_cannot_be_refused_by_a_closed_consumer_or_a_child(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b", b"c"])
    with group(queue).consumer() as consumer:
        batch = consumer.read_many(3)

        def refuse() -> None:
            with pytest.raises(ForkedError):
                batch[0].nack(delay_s=HOUR_S)

        assert exit_code(fork(refuse)) == 0
    with pytest.raises(ClosedError):
        batch[0].nack(delay_s=HOUR_S)
    with group(queue).consumer() as consumer:
        assert [it[0] for it in rest(consumer)] == [b"a", b"b", b"c"]


DYING = """
import math, os, sys
import quire
consumer = quire.open(sys.argv[1]).group("billing", ack_timeout_s=math.inf).consumer()
consumer.read()
os._exit(1)
"""


def die(queue: quire.JournalQueue) -> None:
    command = [sys.executable, "-c", DYING, queue.path]
    assert subprocess.run(command, check=False).returncode == 1


def close(queue: quire.JournalQueue) -> None:
    with group(queue).consumer() as consumer:
        read(consumer)


def refuse(queue: quire.JournalQueue) -> None:
    with group(queue).consumer() as consumer:
        assert read(consumer).nack()


def be_released(queue: quire.JournalQueue) -> None:
    with group(queue).consumer() as consumer:
        message = read(consumer)
        assert group(queue).release(message.index) == 1
        assert not message.ack()


@pytest.mark.parametrize(
    ("lose", "cause"),
    [
        pytest.param(die, "consumer died", id="died"),
        pytest.param(close, "consumer closed", id="closed"),
        pytest.param(refuse, "refused", id="refused"),
        pytest.param(be_released, "released", id="released"),
    ],
)
def test_a_redelivery_says_why(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    lose: Callable[[quire.JournalQueue], None],
    cause: str,
) -> None:
    appender.write_bytes(b"a")
    lose(queue)
    (waiting,) = group(queue).pending()
    assert (waiting.consumer, waiting.cause, waiting.delay_s) == (None, cause, 0)
    with group(queue).consumer() as consumer:
        assert rest(consumer) == [(b"a", 2, cause)]


def test_pending_messages_have_an_owner_and_an_age(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    first = appender.write_many([b"a", b"b", b"c"])
    assert first is not None
    assert group(queue).pending() == []
    with group(queue, 60.0).consumer("c1") as consumer:
        batch = consumer.read_many(3)
        assert batch[1].ack()
        pending = group(queue).pending()
        assert [it.index for it in pending] == [batch[0].index, batch[2].index]
        for it in pending:
            assert (it.consumer, it.pid, it.delivery_count) == ("c1", os.getpid(), 1)
            assert it.age_s is not None
            assert 0 <= it.age_s < 30
            assert it.timeout_s is not None
            assert 30 < it.timeout_s <= 60
            assert (it.delay_s, it.cause) == (0, None)
        state = group(queue).state()
        assert (state.pending, state.lag) == (2, 2)
        assert state.oldest_age_s is not None


def test_messages_that_wait_for_their_keys_are_not_pending(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    for number in range(3):
        appender.write_map({"order": number, "account": "A"})
    with queue.group("billing", key="account").consumer() as consumer:
        assert read(consumer).index == queue.first_index
        assert [it.index for it in group(queue).pending()] == [queue.first_index]


def test_release_takes_the_range_and_ends_a_delay(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    with group(queue).consumer() as stuck, group(queue).consumer() as other:
        batch = stuck.read_many(2)
        assert group(queue).release(batch[1].index, delay_s=HOUR_S) == 2
        assert stuck.ack_many(batch) == 0
        assert other.read() is None
        assert group(queue).release(batch[0].index) == 2
        assert rest(other) == [(b"a", 2, "released"), (b"b", 2, "released")]


def test_others_give_a_consumer_more_time(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    with group(queue, 5.0).consumer() as slow:
        batch = slow.read_many(2)
        assert group(queue).extend(batch[1].index, HOUR_S) == 2
        assert group(queue).extend(batch[1].index, 1.0) == 2
        for it in group(queue).pending():
            assert it.timeout_s is not None
            assert it.timeout_s > HOUR_S - 60, "which the second did not shorten"
        assert slow.ack_many(batch) == 2


def test_what_cannot_be_changed_says_so(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    index = appender.write_bytes(b"a")
    with pytest.raises(GroupError, match=r"index=0x.* \(no consumer has it\)"):
        group(queue).release(index)
    with pytest.raises(GroupError, match=r"index=0x.* \(no consumer has it\)"):
        group(queue).extend(index, 1.0)
    with group(queue, 0.001).consumer() as slow:
        read(slow)
        time.sleep(SHORT_S)
        with pytest.raises(GroupError, match="too late"):
            group(queue).extend(index, HOUR_S)
    with quire.open(queue.path, read_only=True) as reader:
        with pytest.raises(ReadOnlyError, match="release a message needs a writable queue"):
            group(reader).release(index)
        with pytest.raises(ReadOnlyError, match="extend the time of a message needs"):
            group(reader).extend(index, 1.0)
        with pytest.raises(ReadOnlyError, match="reset a group needs a writable queue"):
            group(reader).reset()
        assert len(group(reader).pending()) == 1


def test_a_group_is_reset_to_a_time(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    for number in range(5):
        appender.write_map({"number": number, "at": 1_705_314_600 + 60 * number})
    for time_, lag in (("2024-01-15T10:31:30", 3), (1_705_314_600, 5), ("2024-01-16", 0)):
        group(queue).reset(time=time_, time_field="at")
        assert group(queue).lag == lag, time_
    group(queue).reset(time="2000-01-01")
    assert group(queue).lag == 5
    group(queue).reset("end")
    assert group(queue).lag == 0
    group(queue).reset("start")
    assert group(queue).lag == 5
    before = group(queue).state()
    for arguments in (
        {"index": 1, "time": "2024-01-15"},
        {"time_field": "at"},
        {"time": "2024-01-15T10:31:30", "time_field": "none"},
    ):
        with pytest.raises(ValueError, match=r"time|no message has the field"):
            group(queue).reset(**arguments)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="index"):
        group(queue).reset("middle")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert group(queue).state() == before


def test_a_group_with_a_held_message_is_neither_reset_nor_deleted(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    with group(queue).consumer() as consumer:
        message = read(consumer)
        for change in (group(queue).delete, lambda: group(queue).reset(time="2000-01-01")):
            with pytest.raises(GroupError, match="has members"):
                change()
        assert message.ack()
    assert group(queue).delete()
    assert group(queue).pending() == []


def test_a_side_file_of_before_leases_were_stored_is_used_as_it_is(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    with group(queue).consumer() as consumer:
        consumer.read_many(2)
    side_file = Path(queue.path, "billing.qgroup")
    content = bytearray(side_file.read_bytes())
    # An earlier version left these words as they were, and kept the generation at an offer.
    content[CLAIMS + 40 : CLAIMS + 64] = bytes(24)
    word = int.from_bytes(content[CLAIMS : CLAIMS + 8], "little")
    content[CLAIMS : CLAIMS + 8] = (word - (1 << 42)).to_bytes(8, "little")
    side_file.write_bytes(content)
    assert [(it.age_s, it.delay_s, it.cause) for it in group(queue).pending()] == [
        (None, 0, None)
    ] * 2
    assert group(queue).state().oldest_age_s is None
    with group(queue).consumer() as consumer:
        assert rest(consumer) == [(b"a", 2, None), (b"b", 2, None)]


def test_metrics_count_refusals_extensions_and_causes(path: Path) -> None:
    with quire.open(path, metrics=True) as queue, queue.appender() as appender:
        index = appender.write_bytes(b"a")
        with group(queue).consumer() as consumer:
            assert read(consumer).nack()
            message = read(consumer)
            assert message.extend()
            group(queue).release(index)
            assert group(queue).pending()[0].cause == "released"
            assert read(consumer).index == index
        with group(queue).consumer() as consumer:
            read(consumer)
            found = queue.metrics()
            assert (found.refusals, found.extensions, found.redeliveries) == (1, 1, 3)
            assert found.redeliveries_refused == found.redeliveries_released == 1
            assert (found.redeliveries_closed, found.redeliveries_died) == (1, 0)
            assert found.group_pending == {"billing": 1}
            assert 0 <= found.group_oldest_age_s["billing"] < 60
