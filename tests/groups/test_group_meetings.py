"""Groups and other features: compressed cycles, repair, containers, and what outlives its boot."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

import quire
from containers import CONTAINER, need_namespaces
from queues import DAY_MS, START_MS
from quire.errors import TableLostError
from quire.groups import dead_letters, lowest_needed, membership
from quire.groups import group as groups_module
from quire.ranges import seek
from replicas import wait_until

HOUR_S = 3600.0
ENDLESS_MS = 2**43 - 1


def group(queue: quire.JournalQueue) -> quire.Group:
    return queue.group("billing", ack_timeout_s=HOUR_S)


def test_a_takeover_reads_compressed_cycles(tmp_path: Path) -> None:
    path, clock = tmp_path / "queue", quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="FAST_DAILY", clock=clock, block_bytes=2**16) as queue:
        appender = queue.appender()
        for day in range(4):
            appender.write_many([b"%d.%d" % (day, number) for number in range(40)])
            clock.advance(DAY_MS)
    quire.prune(path, max_cycles=1, action="compress", clock=clock)
    assert list(path.glob("*.zst"))
    with quire.open(path, clock=clock) as queue:
        with group(queue).consumer() as consumer:
            taken = consumer.read_many(40).payloads()
        with group(queue).consumer() as consumer:
            assert [message.data for message in consumer.read_many(40)] == taken
        with group(queue).consumer() as consumer:
            assert sum(message.ack() for message in consumer) == 160
        assert group(queue).lag == 0


@pytest.mark.check
def test_a_group_says_that_repair_cut_messages_which_it_had(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "queue", quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock) as queue,
        queue.appender() as appender,
        group(queue).consumer() as consumer,
    ):
        appender.write_many([b"%d" % number for number in range(10)])
        assert consumer.ack_many(consumer.read_many(5)) == 5
        assert consumer.ack_many(consumer.read_many(5)) == 5
    (file,) = path.glob("*.cq4")
    content = bytearray(file.read_bytes())
    last = content.rindex(b"9", 0, len(content.rstrip(b"\0")))
    content[last - 4 : last + 1] = bytes(5)  # as a power cut leaves the last message
    file.write_bytes(content)
    quire.repair(path, dry_run=False)
    with quire.open(path, clock=clock) as queue, group(queue).consumer() as consumer:
        with queue.appender() as appender:
            appender.write_bytes(b"new")
        found = [message.data for message in consumer if message.ack()]
        assert found[-1] == b"new"
        assert group(queue).lag == 0
    assert "messages of a group were lost: group=billing" in caplog.text


def test_a_delayed_message_keeps_its_cycle_and_is_in_a_copy_at_once(tmp_path: Path) -> None:
    path, clock = tmp_path / "queue", quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="FAST_DAILY", clock=clock) as queue:
        appender = queue.appender()
        for day in range(3):
            appender.write_bytes(b"%d" % day)
            clock.advance(DAY_MS)
        with group(queue).consumer() as consumer:
            first, *others = consumer
            assert first.nack(delay_s=HOUR_S)
            assert all(message.ack() for message in others)
    report = quire.prune(path, max_cycles=1, clock=clock)
    assert not report.removed
    quire.repair(path, dry_run=False)
    quire.copy_queue(path, tmp_path / "copy")
    with quire.open(path, clock=clock) as queue, group(queue).consumer() as consumer:
        assert consumer.read() is None
        (waiting,) = group(queue).pending()
        assert (waiting.index, waiting.cause) == (queue.first_index, "refused")
        assert group(queue).release(waiting.index) == 1
        assert [message.data for message in consumer if message.ack()] == [b"0"]
    with quire.open(tmp_path / "copy", clock=clock) as copy, group(copy).consumer() as consumer:
        found = [(it.data, it.redelivered) for it in consumer if it.ack()]
        assert found == [(b"0", True), (b"1", True), (b"2", True)]


def test_a_delay_is_over_when_the_wall_clock_says_so_after_a_reboot(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"a")
    with group(queue).consumer() as consumer:
        message = consumer.read()
        assert message is not None
        assert message.nack(delay_s=HOUR_S)
    side_file = Path(queue.path, "billing.qgroup")
    content = bytearray(side_file.read_bytes())
    at = next(at for at in range(69_632, len(content), 128) if content[at + 7] >> 5 == 4)
    word = int.from_bytes(content[at + 48 : at + 56], "little")
    # As if more than an hour had gone by; the monotonic clock, by which messages time out, began
    # again.
    content[at + 48 : at + 56] = (word - int(HOUR_S * 2000)).to_bytes(8, "little")
    side_file.write_bytes(content)
    with group(queue).consumer() as consumer:
        assert [message.data for message in consumer if message.ack()] == [b"a"]


MEMBER = """
import os, sys
import quire
consumer = quire.open(sys.argv[1]).group("billing", ack_timeout_s=3600.0).consumer("contained")
print(os.getpid(), len(consumer.read_many(2)), flush=True)
sys.stdin.read()
os._exit(1)
"""


def test_a_dead_consumer_of_another_container_is_known_by_its_lock(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    need_namespaces()
    appender.write_many([b"a", b"b"])
    command = [*CONTAINER, sys.executable, "-c", MEMBER, queue.path]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as contained,
        group(queue).consumer() as consumer,
    ):
        assert contained.stdout is not None
        assert contained.stdout.readline() == b"1 2\n"  # pid 1, which lives out here, too
        assert consumer.read() is None, "it lives"
        contained.communicate()
        assert [message.data for message in consumer if message.ack()] == [b"a", b"b"]


@pytest.mark.parametrize("others", [0, 1])
def test_no_deadline_of_before_a_reboot_counts(
    queue: quire.JournalQueue, appender: quire.JournalAppender, others: int
) -> None:
    appender.write_many([b"a", b"b"])
    side_file = Path(queue.path, "billing.qgroup")
    with group(queue).consumer() as consumer:
        assert len(consumer.read_many(2)) == 2
        held = side_file.read_bytes()
    # As after a power cut: the claim is held, with a deadline that the new clock never reaches.
    content = bytearray(held)
    at = next(at for at in range(69_632, len(content), 128) if content[at + 7] >> 5 == 3)
    word = int.from_bytes(content[at + 8 : at + 16], "little")
    content[at + 8 : at + 16] = (word | ENDLESS_MS).to_bytes(8, "little")
    side_file.write_bytes(content)
    before = [group(queue).consumer() for _ in range(others)]  # has the number of the dead one
    with group(queue).consumer() as consumer:
        assert [message.data for message in consumer if message.ack()] == [b"a", b"b"]
    for other in before:
        other.close()


@pytest.mark.parametrize("kind", ["chronicle", "quick-queue"])
def test_a_group_is_that_of_the_open_queue_or_an_error(tmp_path: Path, kind: str) -> None:
    path, open_any = tmp_path / "queue", partial[Any](cast("Any", quire.open), format=kind)
    with open_any(path) as queue, queue.appender() as appender:
        index = appender.write_many([b"old 0", b"old 1"])
        assert index is not None
        path.rename(tmp_path / "elsewhere")
        with open_any(path) as other, other.appender() as others:
            others.write_many([b"new 0", b"new 1", b"new 2"])
            with group(other).consumer() as consumer:
                assert consumer.read_many(1)[0].ack()
            for call in (
                group(queue).consumer,
                group(queue).reset,
                group(queue).delete,
                lambda: group(queue).release(index),
                lambda: group(queue).extend(index, HOUR_S),
                lambda: group(queue).lag,
                group(queue).state,
                group(queue).pending,
                queue.groups,
            ):
                with pytest.raises(TableLostError, match="was renamed, removed or replaced"):
                    call()
            with group(other).consumer() as consumer:
                assert [it.data for it in consumer.read_many(9)] == [b"new 1", b"new 2"]
                assert (group(other).lag, len(other.groups())) == (2, 1)


class Exchange:
    """A queue, and another that takes its place when a function has been called a few times."""

    def __init__(self, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
        self.path, self._other, self._patch = tmp_path / "queue", tmp_path / "other", patch
        for path, payloads in ((self.path, [b"old"]), (self._other, [b"new 0", b"new 1"])):
            with quire.open(path, block_bytes=2**16) as queue:
                queue.appender().write_many(payloads)

    def use_group(self) -> None:
        """Have a consumer of the other queue acknowledge its first message."""
        with quire.open(self._other) as queue, group(queue).consumer() as consumer:
            assert consumer.read_many(1)[0].ack()

    def happens_after(self, where: ModuleType, name: str, calls: int) -> None:
        real, left = getattr(where, name), [calls]

        def called(*given: object) -> object:
            found = real(*given)
            left[0] -= 1
            if left[0] == 0:
                self.path.rename(self.path.with_name("elsewhere"))
                self._other.rename(self.path)
            return found

        self._patch.setattr(where, name, called)

    def check(self, lowest: int | None) -> None:
        """Check what the group in the other queue needs, as the number of a message."""
        with quire.open(self.path) as queue:
            first = queue.first_index
            assert first is not None
            wanted = {} if lowest is None else {"billing": first + lowest}
            assert lowest_needed(self.path) == wanted


@pytest.mark.parametrize("is_used", [True, False])
def test_a_reset_whose_search_ends_in_another_queue(
    is_used: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exchange = Exchange(tmp_path, monkeypatch)
    if is_used:
        exchange.use_group()
    exchange.happens_after(seek, "first_from", 1)
    with quire.open(exchange.path) as queue, pytest.raises(TableLostError):
        group(queue).reset(time="2000-01-01")
    exchange.check(1 if is_used else None)


@pytest.mark.parametrize(
    ("name", "calls"), [("end_index_of", 1), ("check_at_its_path", 1), ("check_at_its_path", 2)]
)
@pytest.mark.parametrize("is_used", [True, False])
def test_a_consumer_that_joins_while_another_queue_takes_the_path(
    is_used: bool,  # noqa: FBT001
    name: str,
    calls: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is left there of the join that was refused, and what was there stays."""
    exchange = Exchange(tmp_path, monkeypatch)
    if is_used:
        exchange.use_group()
    exchange.happens_after(groups_module, name, calls)
    with quire.open(exchange.path) as queue, pytest.raises(TableLostError):
        group(queue).consumer()
    exchange.check(1 if is_used else None)


def test_each_dead_letter_is_written_once_although_a_later_one_fails(tmp_path: Path) -> None:
    small = quire.open(tmp_path / "letters", block_bytes=2**16)
    with quire.open(tmp_path / "queue") as queue, small as letters, queue.appender() as appender:
        appender.write_many([b"one", bytes(200_000), b"three"])  # too long for small blocks
        rejecting = queue.group("billing", dead_letter=letters, max_deliveries=1)
        with rejecting.consumer() as consumer:
            for message in consumer.read_many(3):
                message.nack()
            for _ in range(3):
                assert consumer.read() is None
        assert [it.data for it in dead_letters(letters)] == [b"one", b"three"]
        assert rejecting.lag == 1


def test_a_dead_letter_that_cannot_be_written_holds_up_no_other_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "_LETTER_DELAY_MS", 1)
    small = quire.open(tmp_path / "letters", block_bytes=2**16)
    with quire.open(tmp_path / "queue") as queue, small as letters, queue.appender() as appender:
        index = appender.write_bytes(bytes(200_000))
        rejecting = queue.group("billing", dead_letter=letters, max_deliveries=1)
        with rejecting.consumer() as consumer:
            for message in consumer.read_many(1):
                message.nack()
            wait_until(lambda: consumer.read() is None and bool(caplog.records))
            for number in range(5):
                appender.write_bytes(b"%d" % number)
                later = consumer.read()
                assert later is not None
                assert (later.data, later.ack()) == (b"%d" % number, True)
            said = [it for it in caplog.records if "dead letter cannot be written" in it.message]
            assert len(said) == 1
            assert f"index={index:#x}" in said[0].message
            monkeypatch.setattr(membership, "_LETTER_DELAY_MS", 60_000)
            wait_until(lambda: consumer.read() is None and rejecting.pending()[0].delay_s > 1)
            assert rejecting.lag == 1
            assert [it.index for it in rejecting.pending()] == [index]
        rejecting.release(index)
        wide = queue.group("billing", dead_letter=tmp_path / "wide", max_deliveries=1)
        with wide.consumer() as consumer:
            assert consumer.read() is None
        assert rejecting.lag == 0
        with quire.open(tmp_path / "wide") as written:
            (letter,) = dead_letters(written)
            assert (letter.source_index, letter.data) == (index, bytes(200_000))


def test_a_dead_letter_that_cannot_be_written_keeps_the_order_of_its_key(tmp_path: Path) -> None:
    small = quire.open(tmp_path / "letters", block_bytes=2**16)
    with quire.open(tmp_path / "queue") as queue, small as letters, queue.appender() as appender:
        for key, length in ((1, 200_000), (1, 1), (2, 1)):
            appender.write_map({"key": key, "text": "x" * length})
        rejecting = queue.group("billing", key="key", dead_letter=letters, max_deliveries=1)
        with rejecting.consumer() as consumer:
            first = consumer.read()
            assert first is not None
            assert first.nack()
            other = consumer.read()
            assert other is not None
            assert (other.to_dict()["key"], other.ack()) == (2, True)
            assert consumer.read() is None
        assert rejecting.lag == 2
