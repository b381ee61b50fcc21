"""Consumer groups: each message to one member, acknowledged, delivered again, in order of keys."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import quire
from queues import DAY_MS
from quire.groups import dead_letters, lowest_needed

HOUR_S = 3600.0


def group(queue: quire.JournalQueue, name: str = "billing", **options: Any) -> quire.Group:  # noqa: ANN401
    """A group in which no time is over while a test runs."""
    options.setdefault("ack_timeout_s", HOUR_S)
    return queue.group(name, **options)


def no_key(_: quire.Excerpt) -> None:
    """Messages that are in no order."""


def payloads(messages: Iterable[quire.GroupMessage]) -> list[bytes]:
    return [message.data for message in messages]


def test_each_message_goes_to_one_member(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"%d" % number for number in range(100)])
    billing = group(queue)
    with billing.consumer("c1") as first, billing.consumer("c2") as second:
        found: list[bytes] = []
        while one := first.read():
            found.append(one.data)
            found += payloads(second.read_many(3))

    assert found == [b"%d" % number for number in range(100)]


def test_the_lag_is_what_nobody_acknowledged(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    billing = group(queue)
    appender.write_many([b"a", b"b", b"c"])
    assert billing.lag == 3
    with billing.consumer() as consumer:
        first, second = consumer.read_many(2)
        assert billing.lag == 3
        assert second.ack()
        assert billing.lag == 2
        clock.advance(3 * DAY_MS)
        appender.write_many([b"d", b"e"])
        assert billing.lag == 4
        assert first.ack()
        assert [message.ack() for message in consumer] == [True] * 3
    assert billing.lag == 0


def test_a_message_is_acknowledged_once(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"a")
    with group(queue).consumer() as consumer:
        message = consumer.read()
        assert message is not None
        assert [message.ack(), message.ack()] == [True, False]


def test_a_refused_message_comes_again_to_any_member(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"a")
    billing = group(queue)
    with billing.consumer() as first, billing.consumer() as second:
        message = first.read()
        assert message is not None
        assert second.read() is None
        assert message.nack()
        again = second.read()
        assert again is not None
        assert (again.data, again.delivery_count) == (b"a", 2)
        assert not message.ack()
        assert not message.nack()
        assert again.ack()


def test_a_refused_message_of_a_batch_comes_again_without_the_others(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"%d" % number for number in range(70)])
    with group(queue).consumer() as consumer:
        batch = consumer.read_many(100)
        assert [batch[40].nack(), batch[69].nack()] == [True, True]
        rest = [message for place, message in enumerate(batch) if place not in {40, 69}]
        assert consumer.ack_many(rest) == 68
        again = [(message.data, message.delivery_count) for message in consumer]
    assert again == [(b"40", 2), (b"69", 2)]


def test_a_message_comes_again_when_its_time_is_over(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"a")
    with (
        group(queue, ack_timeout_s=0.05).consumer() as first,
        group(queue).consumer() as second,
    ):
        slow = first.read()
        assert slow is not None
        again = next(second.follow(timeout_s=60))
        assert (again.data, again.delivery_count) == (b"a", 2)
        assert not slow.ack()
        assert again.ack()


def test_what_a_member_leaves_comes_again_at_once(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b", b"c"])
    billing = group(queue)
    with billing.consumer() as first:
        batch = first.read_many(3)
        assert batch[1].ack()
    with billing.consumer() as second:
        found = [(message.data, message.delivery_count) for message in second]
    assert found == [(b"a", 2), (b"c", 2)]


def test_groups_do_not_know_each_other(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    for name in ("billing", "audit"):
        with group(queue, name).consumer() as consumer:
            assert consumer.ack_many(consumer.read_many(10)) == 2
    assert [(it.name, it.lag) for it in queue.groups()] == [("audit", 0), ("billing", 0)]


def test_members_are_listed_while_they_live(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    billing = group(queue)
    with billing.consumer("c1") as first, billing.consumer("c2"):
        first.read_many(2)
        members = billing.state().members
        assert [(it.name, it.messages) for it in members] == [("c1", 2), ("c2", 0)]
    assert billing.state().members == ()


def test_retention_learns_what_each_group_needs(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    last = appender.write_many([b"a", b"b", b"c"])
    assert last is not None
    assert lowest_needed(queue.path) == {}
    with group(queue).consumer() as consumer:
        assert lowest_needed(queue.path) == {"billing": 0}
        batch = consumer.read_many(3)
        assert batch[0].ack()
        assert lowest_needed(queue.path) == {"billing": last - 1}
        assert [batch[2].ack(), batch[1].ack()] == [True, True]
        assert lowest_needed(queue.path) == {"billing": last + 1}


def test_cycles_that_a_group_needs_are_not_pruned(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    for _ in range(3):
        appender.write_bytes(b"a")
        clock.advance(DAY_MS)
    appender.write_bytes(b"a")
    with group(queue).consumer() as consumer:
        for message in consumer.read_many(2):
            assert message.ack()
    report = quire.prune(queue.path, max_cycles=1)
    assert len(report.removed) == 1  # the group is at the end of the second cycle
    assert "kept for a consumer group: group=billing" in report.kept[0].reason
    assert group(queue).lag == 2


def test_messages_deleted_before_they_were_acknowledged_are_logged(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    clock: quire.ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = appender.write_many([b"a", b"b"])
    assert first is not None
    clock.advance(DAY_MS)
    appender.write_bytes(b"c")
    billing = group(queue)
    with billing.consumer() as consumer:
        consumer.read_many(2)
    Path(queue.file_for_cycle(queue.roll_cycle.to_cycle(first))).unlink()
    queue.refresh()
    with billing.consumer() as consumer:
        assert payloads(consumer) == [b"c"]
    assert "messages of a group were deleted before they were acknowledged" in caplog.text


def test_one_key_is_with_one_member_and_in_order(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    for text in ("a1", "a2", "b1", "a3", "c1", "b2"):
        appender.write_map({"key": text[0], "text": text})
    keyed = group(queue, key="key")

    def texts(messages: Iterable[quire.GroupMessage]) -> list[str]:
        return [message.to_dict()["text"] for message in messages]

    with keyed.consumer() as first, keyed.consumer() as second:
        a1 = first.read()
        assert a1 is not None
        others = second.read_many(10)
        assert (texts([a1]), texts(others)) == (["a1"], ["b1", "c1"])
        assert first.read() is None
        assert others[0].ack()
        assert texts(first.read_many(10)) == ["b2"]
        assert a1.nack()
        again = second.read()
        assert again is not None
        assert (texts([again]), again.delivery_count) == (["a1"], 2)
        assert first.read() is None
        assert again.ack()
        assert texts(first.read_many(10)) == ["a2"]
    assert keyed.lag == 4


def test_messages_without_a_key_are_in_no_order(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    with group(queue, key=no_key).consumer() as consumer:
        assert payloads(consumer.read_many(10)) == [b"a", b"b"]


def test_a_message_delivered_too_often_is_a_dead_letter(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tmp_path: Path
) -> None:
    appender.write_map({"order": 1})
    appender.write_map({"order": 2})
    dead = tmp_path / "dead"
    billing = group(queue, dead_letter=dead, max_deliveries=2)
    with billing.consumer() as consumer:
        deliveries: list[int] = []
        for message in consumer:
            if message.to_dict() == {"order": 2}:
                assert message.ack()
            else:
                deliveries.append(message.delivery_count)
                assert message.nack()
    assert deliveries == [1, 2]
    assert billing.lag == 0
    with quire.open(dead) as letters, letters.tailer() as tailer:
        assert [tailer.read_map(), tailer.read_map()] == [{"order": 1}, None]


def test_dead_letters_do_not_end_a_read(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tmp_path: Path
) -> None:
    appender.write_many([b"a", b"b", b"c"])
    with group(queue).consumer() as consumer:
        for _ in range(3):
            assert consumer.read() is not None
    dead = tmp_path / "dead"
    with group(queue, dead_letter=dead, max_deliveries=1).consumer() as consumer:
        assert consumer.read() is None
    assert group(queue).lag == 0
    with quire.open(dead) as letters:
        assert [letter.data for letter in letters.tailer()] == [b"a", b"b", b"c"]


def test_dead_letters_that_cannot_be_written_leave_all_messages_to_others(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tmp_path: Path
) -> None:
    appender.write_many([b"a", b"b"])
    with group(queue).consumer() as consumer:
        assert [consumer.read() is None, consumer.read() is None] == [False, False]
    dead = quire.open(tmp_path / "dead")
    dead.close()
    with (
        group(queue, dead_letter=dead, max_deliveries=1).consumer() as consumer,
        group(queue).consumer() as other,
    ):
        with pytest.raises(quire.errors.ClosedError):
            consumer.read_many(10)
        assert payloads(other.read_many(10)) == [b"a", b"b"]


def test_reset_begins_elsewhere_unless_there_are_members(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    last = appender.write_many([b"a", b"b", b"c"])
    assert last is not None
    billing = group(queue)
    with billing.consumer() as consumer:
        assert consumer.ack_many(consumer.read_many(10)) == 3
        with pytest.raises(quire.errors.GroupError, match="the group has members"):
            billing.reset()
        assert consumer.read() is None
    billing.reset(last)
    assert billing.lag == 1
    billing.reset(last + 1)
    assert billing.lag == 0
    with pytest.raises(
        ValueError,
        match=f"the index is after the end of the queue: index={2**62:#x} end={last + 1:#x}",
    ):
        billing.reset(2**62)
    billing.reset()
    with billing.consumer() as consumer:
        assert payloads(consumer) == [b"a", b"b", b"c"]


def test_a_reset_that_is_refused_leaves_the_side_file_alone(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"a")
    billing = group(queue)
    side_file = Path(queue.path, "billing.qgroup")
    with billing.consumer() as consumer:
        assert consumer.ack_many(consumer.read_many(10)) == 1
        os.utime(side_file, ns=(0, 0))
        with pytest.raises(quire.errors.GroupError, match="the group has members"):
            billing.reset()
        # Members of a file that says it is about to be replaced fail meanwhile.
        assert side_file.stat().st_mtime_ns == 0


def test_a_consumer_works_in_an_event_loop(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def first() -> bytes:
        async with group(queue).consumer() as consumer:
            async for message in consumer:
                assert message.ack()
                return message.data
        raise AssertionError

    async def both() -> bytes:
        reading = asyncio.create_task(first())
        await asyncio.sleep(0)
        appender.write_bytes(b"a")
        return await reading

    assert asyncio.run(both()) == b"a"


@quire.message
@dataclass
class Charge:
    amount: float


def test_messages_are_objects(queue: quire.JournalQueue, appender: quire.JournalAppender) -> None:
    appender.write_message(Charge(1.5))
    with group(queue).consumer() as consumer:
        message = consumer.read()
        assert message is not None
        assert message.to_message(Charge) == Charge(1.5)
        assert message.excerpt == quire.Excerpt(message.index, message.data)


def test_a_quick_queue_has_groups(tmp_path: Path) -> None:
    with quire.quick_queue.open(tmp_path / "book", page_bytes=4096) as book:
        appender = book.appender()
        for number in range(400):
            appender.write_bytes(b"%d" % number)
        billing = book.group("billing", ack_timeout_s=HOUR_S)
        with billing.consumer() as first, billing.consumer() as second:
            found = payloads(first.read_many(250))
            batch = second.read_many(250)
            assert second.ack_many(batch) == 150
        assert found + payloads(batch) == [b"%d" % number for number in range(400)]
        assert billing.lag == 250
        with billing.consumer() as third:
            assert payloads(third) == found


def test_a_groups_message_of_a_quick_queue_is_text_and_has_no_fields(tmp_path: Path) -> None:
    with quire.quick_queue.open(tmp_path / "book", page_bytes=4096) as book:
        book.appender().write_text("héllo")
        with book.group("billing").consumer() as consumer:
            message = consumer.read()
            assert message is not None
            assert message.to_text() == "héllo"
            for call in (message.to_dict, message.to_message):
                with pytest.raises(quire.errors.UnsupportedError, match=r"excerpt\.unpack"):
                    call()
            assert message.ack()


@pytest.mark.parametrize(
    ("name", "settings", "error", "text"),
    [
        ("../x", {}, ValueError, "invalid name of a group"),
        ("x", {"ack_timeout_s": -1}, ValueError, "ack_timeout_s=-1"),
        ("x", {"key": 1}, TypeError, "invalid key"),
        ("x", {"max_deliveries": 2}, ValueError, "requires dead_letter="),
        ("x", {"dead_letter": "d", "max_deliveries": 0}, ValueError, "invalid max_deliveries"),
    ],
)
def test_wrong_settings_are_refused(
    queue: quire.JournalQueue,
    name: str,
    settings: dict[str, Any],
    error: type[Exception],
    text: str,
) -> None:
    with pytest.raises(error, match=text):
        queue.group(name, **settings)


def test_a_queue_takes_no_dead_letters_of_its_own_group(queue: quire.JournalQueue) -> None:
    for own in (queue, queue.path, Path(queue.path)):
        with pytest.raises(ValueError, match="dead letters would be delivered again"):
            queue.group("billing", dead_letter=own)


def test_a_quick_queues_group_begins_at_a_message(tmp_path: Path) -> None:
    with (
        quire.quick_queue.open(tmp_path, page_bytes=4096) as queue,
        pytest.raises(ValueError, match="index=0x5 expected=a multiple of 16"),
    ):
        queue.group("billing").reset(5)


def test_only_messages_are_acknowledged(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"a")
    with group(queue).consumer() as consumer:
        for wrong, kind in ((None, "None"), ([7], "int")):
            with pytest.raises(TypeError, match=f"expected a batch, or messages, found {kind}"):
                consumer.ack_many(wrong)  # type: ignore[arg-type]


def test_formats_and_queues_without_groups_say_so(
    queue: quire.JournalQueue, tmp_path: Path
) -> None:
    with (
        quire.open(tmp_path / "vanilla", format="vanilla") as vanilla,
        pytest.raises(quire.errors.UnsupportedError, match="slow writers of a Vanilla Chronicle"),
    ):
        vanilla.group("billing")
    with (
        quire.open(queue.path, read_only=True) as read_only,
        pytest.raises(quire.errors.ReadOnlyError, match="a consumer needs a writable queue"),
    ):
        read_only.group("billing").consumer()


def test_members_agree_on_having_a_key(queue: quire.JournalQueue) -> None:
    group(queue).consumer().close()
    with pytest.raises(
        quire.errors.GroupError,
        match="the group was created with no key, but is opened with",
    ):
        group(queue, key="symbol").consumer()


def test_a_closed_consumer_and_its_messages_say_so(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"a")
    with group(queue).consumer() as consumer:
        message = consumer.read()
    assert message is not None
    for call in (consumer.read, message.ack, message.nack):
        with pytest.raises(quire.errors.ClosedError):
            call()


def key_of(excerpt: quire.Excerpt) -> bytes:
    if excerpt.data == b"bad":
        raise LookupError("no key")
    return excerpt.data[:1]


def test_a_message_whose_key_cannot_be_found_becomes_a_dead_letter_alone(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tmp_path: Path
) -> None:
    appender.write_many([b"a1", b"bad", b"a2", b"b1"])
    with quire.open(tmp_path / "letters") as letters:
        keyed = group(queue, key=key_of, dead_letter=letters, max_deliveries=3)
        with keyed.consumer() as consumer:
            assert [it.data for it in consumer if it.ack()] == [b"a1", b"a2", b"b1"]
        assert keyed.lag == 0
        (letter,) = dead_letters(letters)
    assert (letter.data, letter.delivery_count) == (b"bad", 3)
    assert letter.reason == "key= raised LookupError: no key"


def test_without_dead_letters_a_message_whose_key_cannot_be_found_is_in_no_order(
    queue: quire.JournalQueue, appender: quire.JournalAppender, caplog: pytest.LogCaptureFixture
) -> None:
    appender.write_many([b"a1", b"bad", b"a2"])
    keyed = group(queue, key=key_of)
    with keyed.consumer() as consumer:
        assert sorted(it.data for it in consumer if it.ack()) == [b"a1", b"a2", b"bad"]
    assert keyed.lag == 0
    assert "has no key, and is delivered in no order: group=billing" in caplog.text
