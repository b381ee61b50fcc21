"""The side files of groups: hostile contents, other versions, deaths, forks, and full tables."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, exit_code, fork
from quire._native import tail_hash
from quire.errors import GroupLostError
from quire.groups import lowest_needed

HOUR_S = 3600.0
HEADER = 4096
CLAIMS = 69_632
CLAIM = 128


def group(queue: quire.JournalQueue) -> quire.Group:
    return queue.group("billing", ack_timeout_s=HOUR_S)


def side_file(queue: quire.JournalQueue) -> Path:
    return Path(queue.path, "billing.qgroup")


@pytest.mark.parametrize("length", [0, 1, 4096, 4097, 100_000])
def test_hashes_of_tail_records_are_those_that_files_have(length: int) -> None:
    message = bytes(range(256)) * 400
    start, salt = message[: min(length, 4096)], length.to_bytes(8, "little")
    hashed = blake2b(start, digest_size=8, salt=salt).digest()
    assert tail_hash(memoryview(message)[:length]) == int.from_bytes(hashed, "little")


@pytest.fixture
def used(queue: quire.JournalQueue, appender: quire.JournalAppender) -> Path:
    """The side file of a group that acknowledged the first of three messages."""
    appender.write_many([b"a", b"b", b"c"])
    with group(queue).consumer() as consumer:
        batch = consumer.read_many(3)
        assert batch[0].ack()
    return side_file(queue)


def overwrite(position: int, content: bytes) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        with file.open("r+b") as opened:
            opened.seek(position)
            opened.write(content)

    return change


def cut(length: int) -> Callable[[Path], None]:
    return lambda file: os.truncate(file, length)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(cut(1000), id="cut short"),
        pytest.param(cut(0), id="empty"),
        pytest.param(overwrite(0, b"\xff" * HEADER), id="a header of ones"),
        pytest.param(overwrite(24, b"\x07"), id="another step"),
        pytest.param(overwrite(64, b"\xff\xff\xff"), id="a newest claim that does not exist"),
        pytest.param(overwrite(128, b"\xff" * 8), id="too many claims"),
        pytest.param(overwrite(CLAIMS, b"\xff" * 8), id="a state that does not exist"),
        pytest.param(overwrite(CLAIMS + 16, b"\xff" * 8), id="a range that ends before it begins"),
        pytest.param(overwrite(CLAIMS, b"\x00" * 4), id="a claim without messages"),
        pytest.param(overwrite(CLAIMS, b"\xff" * 4), id="messages beyond the end of a claim"),
        pytest.param(overwrite(CLAIMS + 24, b"\xff" * 8), id="an end that is no index"),
    ],
)
def test_a_damaged_side_file_is_made_again_and_all_is_delivered_again(
    queue: quire.JournalQueue,
    used: Path,
    damage: Callable[[Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    damage(used)
    assert lowest_needed(queue.path) == {"billing": 0}
    assert group(queue).lag == 3
    with group(queue).consumer() as consumer:
        assert [message.data for message in consumer] == [b"a", b"b", b"c"]
    assert "the side file of a group was damaged and is created again" in caplog.text


@pytest.mark.parametrize("cycles", [1, 1000])
def test_a_claim_in_a_cycle_that_was_lost_is_logged_and_done(
    queue: quire.JournalQueue, used: Path, cycles: int, caplog: pytest.LogCaptureFixture
) -> None:
    first = (queue.first_index or 0) + (cycles << 32)
    overwrite(CLAIMS + 16, struct.pack("<QQ", first, first + 3))(used)
    with group(queue).consumer() as consumer:
        try:
            assert consumer.read() is None
        except quire.errors.IndexOutOfRangeError:
            assert cycles > 1  # where new messages begin, too
    assert "deleted before they were acknowledged" in caplog.text
    assert group(queue).lag == 0


def test_random_bytes_neither_crash_nor_hang(queue: quire.JournalQueue, used: Path) -> None:
    used.write_bytes(os.urandom(used.stat().st_size))
    with group(queue).consumer() as consumer:
        assert len(consumer.read_many(10)) == 3


def test_a_link_or_a_directory_in_its_place_is_refused(
    queue: quire.JournalQueue, tmp_path: Path
) -> None:
    side_file(queue).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(quire.errors.NotAQueueError, match="a symbolic link"):
        group(queue).consumer()
    side_file(queue).unlink()
    side_file(queue).mkdir()
    with pytest.raises(quire.errors.NotAQueueError, match="a directory"):
        group(queue).consumer()


def test_reading_the_state_changes_no_byte(queue: quire.JournalQueue, used: Path) -> None:
    before = used.read_bytes()
    assert group(queue).lag == 2
    assert lowest_needed(queue.path) == {"billing": (queue.first_index or 0) + 1}
    assert [it.name for it in queue.groups()] == ["billing"]
    assert used.read_bytes() == before


DYING = """
import quire, sys
consumer = quire.open(sys.argv[1]).group("billing", ack_timeout_s=3600.0).consumer("dying")
print(len(consumer.read_many(2)), flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_had_comes_again_at_once(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b", b"c"])
    command = [sys.executable, "-c", DYING, queue.path]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as dying,
        group(queue).consumer() as consumer,
    ):
        assert dying.stdout is not None
        assert dying.stdout.readline() == b"2\n"
        assert [message.data for message in consumer] == [b"c"]
        dying.send_signal(signal.SIGKILL)
        dying.wait()
        again = [(message.data, message.delivery_count) for message in consumer]
        assert again == [(b"a", 2), (b"b", 2)]


def test_a_forked_child_has_no_consumer_and_keeps_none_alive(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"a")
    consumer = group(queue).consumer("parent")
    assert consumer.read() is not None
    waits, lets_go = os.pipe()

    def child() -> None:
        os.close(lets_go)
        with pytest.raises(quire.errors.ForkedError):
            consumer.read()
        os.read(waits, 1)  # until the parent has seen that it keeps nothing

    pid = fork(child)
    os.close(waits)
    consumer.close()
    with group(queue).consumer() as other:
        again = other.read()
        assert again is not None
        assert again.delivery_count == 2
    os.close(lets_go)
    assert exit_code(pid) == 0


def test_members_of_a_group_that_was_made_again_say_so(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"a")
    with group(queue).consumer() as consumer:
        overwrite(0, b"damaged")(side_file(queue))
        with group(queue).consumer() as other:
            assert other.read() is not None
        with pytest.raises(quire.errors.GroupError, match="its side file created again"):
            consumer.read()


def test_an_ack_never_reaches_another_message_in_the_same_slot(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    # A generation comes again after 2,048 owners of a slot; messages use two slots in turn.
    for _ in range(2):
        appender.write_many([b"%d" % number for number in range(2**11 + 8)])
        clock.advance(DAY_MS)
    with group(queue).consumer() as consumer:
        late = consumer.read()
        assert late is not None
        assert late.nack()  # as when its time is over
        done = consumer.read()
        assert done is not None
        assert done.ack()
        for message in consumer:
            assert not late.ack()
            assert not done.ack()
            assert message.ack(), "somebody else acknowledged it"
    assert group(queue).lag == 0


@pytest.mark.parametrize("how", ["removed", "replaced", "moved away"])
def test_members_notice_that_their_side_file_is_gone(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tmp_path: Path, how: str
) -> None:
    appender.write_many([b"a", b"b"])
    file = side_file(queue)
    with group(queue).consumer() as consumer:
        message = consumer.read()
        assert message is not None
        if how == "replaced":
            copy = tmp_path / "copy"
            copy.write_bytes(file.read_bytes())
            copy.rename(file)
        elif how == "removed":
            file.unlink()
        else:
            file.rename(tmp_path / "away")
        with pytest.raises(GroupLostError, match="removed or replaced"):
            for _ in consumer.follow(timeout_s=120):
                pass
        with pytest.raises(GroupLostError, match="group=billing"):
            message.ack()
    with group(queue).consumer() as consumer:
        assert consumer.read() is not None


def test_a_group_is_deleted_unless_it_has_members(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_many([b"a", b"b"])
    assert not group(queue).delete()
    with group(queue).consumer() as consumer:
        assert consumer.ack_many(consumer.read_many(10)) == 2
        with pytest.raises(quire.errors.GroupError, match="the group has members"):
            group(queue).delete()
        assert consumer.read() is None
    assert group(queue).delete()
    assert not side_file(queue).exists()
    assert lowest_needed(queue.path) == {}
    with group(queue).consumer() as consumer:
        assert [message.data for message in consumer] == [b"a", b"b"]
    with (
        quire.open(queue.path, read_only=True) as read_only,
        pytest.raises(quire.errors.ReadOnlyError, match="to delete a group needs a writable queue"),
    ):
        read_only.group("billing").delete()


def test_messages_of_unknown_history_say_so(
    queue: quire.JournalQueue, appender: quire.JournalAppender, used: Path
) -> None:
    appender.write_bytes(b"d")

    def redelivered() -> list[tuple[bytes, int, bool]]:
        with group(queue).consumer() as consumer:
            return [(it.data, it.delivery_count, it.redelivered) for it in consumer if it.ack()]

    assert redelivered() == [(b"b", 2, True), (b"c", 2, True), (b"d", 1, False)]
    group(queue).reset()
    appender.write_bytes(b"e")
    assert redelivered() == [*((it, 1, True) for it in (b"a", b"b", b"c", b"d")), (b"e", 1, False)]
    cut(1000)(used)
    assert [it[2] for it in redelivered()] == [True] * 5
    appender.write_bytes(b"f")
    assert redelivered() == [(b"f", 1, False)]


def test_a_side_file_of_another_version_is_refused_and_says_what_to_do(
    queue: quire.JournalQueue, used: Path
) -> None:
    def total(*fields: int) -> int:
        found = 0
        for field in (int.from_bytes(b"QuireGrp", "little"), *fields):
            found = (found ^ field) * 0x9E37_79B9_7F4A_7C15 % 2**64
            found = (found << 29 | found >> 35) % 2**64
        return found

    overwrite(8, struct.pack("<Q", 1))(used)
    overwrite(40, struct.pack("<Q", total(1, 0, 1, 0)))(used)
    with pytest.raises(
        quire.errors.UnsupportedError, match=r"of another version: found=1 .*reset the"
    ):
        group(queue).consumer()


def test_blocks_of_a_copied_side_file_are_reserved_before_use(
    queue: quire.JournalQueue, used: Path
) -> None:
    whole = used.read_bytes()
    used.unlink()
    with used.open("xb") as file:  # sparse, as `cp --sparse=always` makes it
        file.truncate(len(whole))
        file.write(whole[:HEADER])
        file.seek(CLAIMS)
        file.write(whole[CLAIMS : CLAIMS + HEADER])
    assert used.stat().st_blocks * 512 < len(whole)
    with group(queue).consumer() as consumer:
        assert used.stat().st_blocks * 512 >= len(whole)
        assert [message.data for message in consumer] == [b"b", b"c"]
