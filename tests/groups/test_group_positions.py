"""A group whose position no longer fits its queue: files missing, moved out, or cut off."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Literal

import pytest

import quire
from queues import DAY_MS, START_MS
from quire.groups.membership import Membership

HOUR_S = 3600.0


def filled(path: Path, days: int, count: int = 10) -> quire.ManualClock:
    """Make a queue of so many cycles; the clock is one day further."""
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock, roll_cycle="TEST4_DAILY") as queue, queue.appender() as it:
        for day in range(days):
            it.write_many([b"%d:%d" % (day, number) for number in range(count)])
            clock.advance(DAY_MS)
    return clock


def files(path: Path) -> list[Path]:
    return sorted(path.glob("*.cq4"))


def group(
    queue: quire.JournalQueue, on_missing: Literal["raise", "warn", "skip"] = "warn"
) -> quire.Group:
    return queue.group("billing", ack_timeout_s=HOUR_S, on_missing=on_missing)


def take(queue: quire.JournalQueue, count: int = 1000) -> list[bytes]:
    with group(queue).consumer() as consumer:
        batch = consumer.read_many(count)
        assert consumer.ack_many(batch) == len(batch)
        return batch.payloads()


def add(queue: quire.JournalQueue, *payloads: bytes) -> None:
    with queue.appender() as appender:
        appender.write_many(payloads)


def test_a_missing_file_between_two_others_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "queue"
    clock = filled(path, 3)
    with quire.open(path, clock=clock) as queue:
        assert len(take(queue, 25)) == 25
    files(path)[2].unlink()
    with quire.open(path, clock=clock) as queue:
        add(queue, b"a", b"b")
        assert group(queue).lag == 2
        assert take(queue) == [b"a", b"b"]
        assert take(queue) == []
        assert group(queue).lag == 0
    assert caplog.text.count("messages of a group were lost: group=billing") == 1


def test_a_consumer_at_work_notices_that_its_file_was_moved_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "queue"
    clock = filled(path, 2)
    far = quire.ManualClock(START_MS + 400 * DAY_MS)
    with quire.open(path, clock=far) as queue, group(queue).consumer() as consumer:
        add(queue, b"far")
        assert consumer.ack_many(consumer.read_many(100)) == 21
        files(path)[-1].rename(tmp_path / "far.cq4")
        queue.refresh()
        with quire.open(path, clock=clock) as near:
            add(near, b"a", b"b")
        batch = consumer.read_many(100)
        assert batch.payloads() == [b"a", b"b"]
        assert consumer.ack_many(batch) == 2
        assert consumer.read() is None
    assert caplog.text.count("messages of a group were lost") == 1


def test_unread_cycles_that_were_deleted_by_hand_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "queue"
    clock = filled(path, 5)
    with quire.open(path, clock=clock) as queue:
        assert len(take(queue, 5)) == 5
    for file in files(path)[:3]:
        file.unlink()
    with quire.open(path, clock=clock) as queue:
        assert group(queue).lag == 20
        assert take(queue, 1) == [b"3:0"]
    assert caplog.text.count("messages of a group were lost") == 1


def test_a_far_cycle_that_was_moved_out_does_not_hold_the_group(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    filled(path, 2)
    with quire.open(path, clock=quire.ManualClock(START_MS + 400 * DAY_MS)) as queue:
        add(queue, b"far")
        assert len(take(queue)) == 21
    files(path)[-1].rename(tmp_path / "far.cq4")
    with quire.open(path, clock=quire.ManualClock(START_MS + 3 * DAY_MS)) as queue:
        add(queue, b"a", b"b")
        assert group(queue).lag == 2
        assert take(queue) == [b"a", b"b"]
        assert group(queue).lag == 0


def lose_tail(path: Path, kept: int, lost: int) -> quire.ManualClock:
    """Have a group finish all messages, of which the queue then loses the last."""
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock, roll_cycle="TEST4_DAILY") as queue:
        add(queue, *(b"old%d" % number for number in range(kept)))
        assert len(take(queue)) == kept
    file = files(path)[0]
    shutil.copy(file, path.parent / "saved")
    with quire.open(path, clock=clock) as queue:
        add(queue, *(b"lost%d" % number for number in range(lost)))
        assert len(take(queue)) == lost
    file.unlink()
    shutil.copy(path.parent / "saved", file)
    return clock


@pytest.mark.parametrize("count", [3, 10, 15])
def test_messages_in_the_place_of_a_lost_tail_are_delivered(
    tmp_path: Path, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "queue"
    clock = lose_tail(path, 90, 10)
    new = [b"new%d" % number for number in range(count)]
    with quire.open(path, clock=clock) as queue:
        add(queue, *new)
        assert group(queue).lag == count
        with group(queue).consumer() as consumer:
            batch = consumer.read_many(1000)
            assert batch.payloads() == new
            assert [message.redelivered for message in batch] == [
                number < 10 for number in range(count)
            ]
            assert consumer.ack_many(batch) == count
        assert group(queue).lag == 0
        assert take(queue) == []
    assert caplog.text.count("messages of a group were lost") == 1


def test_where_the_first_lost_message_is_unknown_earlier_ones_come_again(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock, roll_cycle="TEST4_DAILY") as queue:
        add(queue, *(b"old%d" % number for number in range(90)))
    file = files(path)[0]
    shutil.copy(file, tmp_path / "saved")
    with quire.open(path, clock=clock) as queue:
        add(queue, *(b"lost%d" % number for number in range(10)))
        assert len(take(queue)) == 100  # one batch: only the last of 32 messages each is noted
    file.unlink()
    shutil.copy(tmp_path / "saved", file)
    with quire.open(path, clock=clock) as queue:
        add(queue, *(b"new%d" % number for number in range(15)))
        with group(queue).consumer() as consumer:
            batch = consumer.read_many(1000)
        assert batch.payloads()[-15:] == [b"new%d" % number for number in range(15)]
        assert batch.payloads()[:-15] == [b"old%d" % number for number in range(64, 90)]
        assert [message.redelivered for message in batch] == [True] * 36 + [False] * 5


def test_on_missing_decides_what_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "queue"
    clock = filled(path, 3)
    with quire.open(path, clock=clock) as queue:
        assert len(take(queue, 5)) == 5
    files(path)[0].unlink()
    with quire.open(path, clock=clock) as queue:
        with group(queue, "raise").consumer() as consumer:
            with pytest.raises(quire.errors.DataLossError, match="were lost: group=billing"):
                consumer.read()
            assert consumer.closed is False
        with group(queue, "skip").consumer() as consumer:
            message = consumer.read()
            assert message is not None
            assert message.data == b"1:0"
        with pytest.raises(ValueError, match="invalid on_missing='x': expected 'raise'"):
            group(queue, "x")  # type: ignore[arg-type]
    assert "were lost" not in caplog.text


WAYS: dict[str, Callable[[quire.Consumer], list[bytes]]] = {
    "read": lambda it: [message.data for message in [it.read()] if message is not None],
    "next": lambda it: [message.data for message in islice(it, 1)],
    "read_many": lambda it: it.read_many(7).payloads(),
    "follow": lambda it: [message.data for message in islice(it.follow(0), 1)],
    "aread": lambda it: [it.data for it in [asyncio.run(it.aread(0))] if it is not None],
    "aread_many": lambda it: asyncio.run(it.aread_many(7, 0)).payloads(),
}


def all_of(read: Callable[[], list[bytes]]) -> list[bytes]:
    """Return what reads return until there is nothing, and where one raises of a loss."""
    found: list[bytes] = []
    for _ in range(20):
        try:
            read_now = read()
        except quire.errors.DataLossError:
            read_now = [b"lost"]
        if not read_now:
            break
        found += read_now
    return found


@pytest.mark.parametrize("way", WAYS)
def test_a_loss_is_raised_once_in_the_read_that_begins_there(tmp_path: Path, way: str) -> None:
    path = tmp_path / "queue"
    clock = filled(path, 3, count=4)
    with (
        quire.open(path, clock=clock) as queue,
        queue.group("billing", ack_timeout_s=HOUR_S, on_missing="raise").consumer() as consumer,
    ):
        first = consumer.read()
        assert first is not None
        files(path)[1].unlink()
        queue.refresh()
        found = all_of(lambda: WAYS[way](consumer))
    assert found == [b"0:1", b"0:2", b"0:3", b"lost", *(b"2:%d" % number for number in range(4))]


def test_a_claim_that_a_loss_cut_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, saved = tmp_path / "queue", tmp_path / "saved"
    clock = quire.ManualClock(START_MS)

    def add(*messages: bytes) -> None:
        with quire.open(path, clock=clock) as queue, queue.appender() as appender:
            appender.write_many(messages)

    add(*(b"old %d" % number for number in range(10)))
    [file] = path.glob("*.cq4")
    shutil.copy(file, saved)
    add(*(b"lost %d" % number for number in range(10)))
    with monkeypatch.context() as patched:
        # As of a consumer that was killed between its claim and the record of what it claimed.
        patched.setattr(Membership, "_note", noted_nowhere)
        with quire.open(path) as queue, queue.group("billing").consumer() as consumer:
            assert len(consumer.read_many(20)) == 20
    file.unlink()
    shutil.copy(saved, file)
    add(*(b"new %d" % number for number in range(5)))
    with quire.open(path) as queue:
        group = queue.group("billing", ack_timeout_s=3600)
        with group.consumer() as first:
            found = [message for _ in range(13) if (message := first.read()) is not None]
            assert [it.data for it in found[:10]] == [b"old %d" % it for it in range(10)]
            with group.consumer() as second:
                assert not second.read_many(1000)  # the first one has the whole claim
            assert all(it.ack() for it in found)
    assert "damaged" not in caplog.text
    assert take_all(path) == [b"new 3", b"new 4"]


def noted_nowhere(*_given: object) -> None:
    pass


def take_all(path: Path) -> list[bytes]:
    with quire.open(path) as queue, queue.group("billing").consumer() as consumer:
        return [it.data for it in consumer.read_many(1000)]
