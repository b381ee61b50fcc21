"""
What a power cut may leave of a ring, which nobody syncs: an earlier image, or slots without bytes.

The queue and its table are as of the last sync, and hold each message once.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

import quire
from pause_points import Party
from queues import payloads
from ring_left import leave_in_ring

RING = "async.ring"
CAPACITY = 8 << 20
DESCRIPTORS_AT = 4096  # after the header
BYTES_AT = DESCRIPTORS_AT + CAPACITY // 32 * 8
OLD = [b"message %d" % number for number in range(5)]
SMALL, LONG = 64 << 10, 20_000
DRAINS = "arm(); quire.open(sys.argv[1]).close()"
FIRST = {2: 3, 3: 9}  # how many long messages fit into all files but the last
BEGUN_AT, CLOSED = 328, (3 << 62).to_bytes(8, "little")


def left(path: Path, messages: list[bytes]) -> Path:
    """Return a ring with *messages* that nobody has drained."""
    with quire.open(path) as queue:
        leave_in_ring(path, queue, messages)
    return path / RING


def left_in_many(path: Path, files: int, begun: int = 0) -> tuple[list[bytes], list[Path]]:
    """
    Likewise for a ring that has grown to several files, with *begun* messages in the queue already.

    Returns all messages, and the files, oldest first.
    """
    messages = [b"%d" % number + b"x" * LONG for number in range(begun + FIRST[files] + 2)]
    ring = quire.RingOptions(capacity_bytes=SMALL)
    with quire.open(path, buffer_mode="async", ring=ring) as queue, queue.appender() as appender:
        appender.write_many(messages[:begun])
        appender.sync()
    with quire.open(path) as queue:
        leave_in_ring(path, queue, messages[begun:], "grow")
    found = sorted(path.glob("async*.ring"), key=lambda file: file.stat().st_size)
    assert len(found) == files
    return messages, found


def drain(path: Path, mode: str) -> None:
    """Append what is in the ring, and sync."""
    with quire.open(path, buffer_mode=mode) as queue, queue.appender() as appender:  # type: ignore[call-overload]
        appender.sync()


@pytest.mark.parametrize("mode", ["async", "none"])
@pytest.mark.parametrize("again", ["async", "none"])
def test_an_earlier_image_repeats_nothing_that_was_synced(
    path: Path, mode: str, again: str
) -> None:
    ring = left(path, OLD)
    image = ring.read_bytes()
    drain(path, mode)
    ring.write_bytes(image)
    drain(path, again)
    with quire.open(path) as queue:
        assert payloads(queue) == OLD
    # Once more, with messages that were put in after the image was taken.
    leave_and_sync(path, [b"later"])
    ring.write_bytes(image)
    drain(path, again)
    with quire.open(path) as queue:
        assert payloads(queue) == [*OLD, b"later"]


def leave_and_sync(path: Path, messages: list[bytes]) -> None:
    left(path, messages)
    drain(path, "async")


def test_messages_that_are_put_into_an_earlier_image_are_appended(path: Path) -> None:
    ring = left(path, [])
    empty = ring.read_bytes()
    leave_and_sync(path, OLD)
    ring.write_bytes(empty)
    left(path, [b"new"])
    left(path, [b"newer"])
    drain(path, "none")
    with quire.open(path) as queue:
        assert payloads(queue) == [*OLD, b"new", b"newer"]


def test_a_part_of_an_earlier_image_is_appended_once(path: Path) -> None:
    ring = left(path, OLD[:2])
    image = ring.read_bytes()
    drain(path, "none")
    ring.write_bytes(image)
    left(path, OLD[2:])
    drain(path, "none")
    with quire.open(path) as queue:
        assert payloads(queue) == OLD


def test_an_image_of_another_ring_is_appended(path: Path, tmp_path: Path) -> None:
    other = left(tmp_path / "other", OLD)
    ring = left(path, [b"own"] * 8)
    drain(path, "none")
    ring.write_bytes(other.read_bytes())
    drain(path, "none")
    with quire.open(path) as queue:
        assert payloads(queue) == [*[b"own"] * 8, *OLD]


@pytest.mark.parametrize("mode", ["async", "none"])
def test_a_slot_whose_bytes_were_not_written_is_dropped(
    path: Path, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    ring = left(path, [b"a" * 64, b"b" * 64, b"c" * 64])
    with ring.open("r+b") as file:
        file.seek(BYTES_AT + 72 + 8)
        file.write(bytes(16))
    drain(path, mode)
    with quire.open(path) as queue:
        assert payloads(queue) == [b"a" * 64, b"c" * 64]
    assert "an incomplete message in the ring, as a power cut may leave, is dropped" in caplog.text
    assert "length=64" in caplog.text


def test_a_slot_with_the_bytes_of_another_one_is_dropped(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ring = left(path, [b"first", b"other"])
    with ring.open("r+b") as file:
        file.seek(BYTES_AT)
        first = file.read(16)
        file.write(first)
    drain(path, "none")
    with quire.open(path) as queue:
        assert payloads(queue) == [b"first"]
    assert "is dropped" in caplog.text


@pytest.mark.parametrize("files", [2, 3])
@pytest.mark.parametrize("begun", [0, 2])
@pytest.mark.parametrize("again", ["async", "none"])
def test_an_earlier_image_of_a_ring_that_has_grown_repeats_nothing(
    path: Path, files: int, begun: int, again: str
) -> None:
    messages, rings = left_in_many(path, files, begun)
    images = {file: file.read_bytes() for file in rings}
    drain(path, "async")
    assert [file.name for file in path.glob("async*.ring")] == [RING]
    for file, image in images.items():
        file.write_bytes(image)
    drain(path, again)
    with quire.open(path) as queue:
        assert payloads(queue) == messages
    leave_and_sync(path, [b"later"])
    with quire.open(path) as queue:
        assert payloads(queue) == [*messages, b"later"]


@pytest.mark.parametrize("point", ["ring.free.store", "ring.begun.store"])
@pytest.mark.parametrize("nth", [1, 2])
def test_an_image_of_a_ring_that_has_grown_gives_what_the_queue_lacks(
    path: Path, point: str, nth: int
) -> None:
    messages, rings = left_in_many(path, 3)
    images = {file: file.read_bytes() for file in rings}
    with Party(DRAINS, path, point=point, nth=nth) as party:
        party.wait_until_stopped()
        party.kill()
    for file, image in images.items():
        file.write_bytes(image)
    with quire.open(path, read_only=True) as queue:
        assert 0 < len(payloads(queue)) < len(messages)
    drain(path, "none")
    with quire.open(path) as queue:
        assert payloads(queue) == messages


@pytest.mark.parametrize("files", [2, 3])
def test_the_image_of_a_ring_that_was_not_closed_repeats_nothing(path: Path, files: int) -> None:
    """The medium has the messages of its successor, and not yet that it was closed."""
    messages, rings = left_in_many(path, files)
    images = {file: file.read_bytes() for file in rings}
    drain(path, "none")
    for file, image in images.items():
        file.write_bytes(image)
    with rings[0].open("r+b") as first:
        first.seek(DESCRIPTORS_AT + FIRST[2] * 8)
        assert first.read(8) == CLOSED
        first.seek(-8, os.SEEK_CUR)
        first.write(FIRST[2].to_bytes(8, "little"))  # EMPTY
    drain(path, "none")
    with quire.open(path) as queue:
        leave_in_ring(path, queue, [b"y" * LONG] * 4, "grow")
    drain(path, "none")
    with quire.open(path) as queue:
        assert payloads(queue) == [*messages, *[b"y" * LONG] * 4]


@pytest.mark.parametrize("files", [2, 3])
def test_an_image_of_the_successor_in_the_place_of_the_ring_repeats_nothing(
    path: Path, files: int
) -> None:
    """Its header is synced before the renaming that makes it the ring."""
    messages, rings = left_in_many(path, files)
    with Party(DRAINS, path, point="ring.file.rename", nth=files - 1) as party:
        party.wait_until_stopped()
        image = rings[-1].read_bytes()
        party.go_on()
        party.result()
    (path / RING).write_bytes(image)
    drain(path, "none")
    with quire.open(path) as queue:
        assert payloads(queue) == messages


@pytest.mark.parametrize("mode", ["async", "none"])
def test_a_ring_without_its_beginning_is_refused(path: Path, mode: str) -> None:
    messages, rings = left_in_many(path, 2)
    image = rings[1].read_bytes()
    assert not any(image[BEGUN_AT : BEGUN_AT + 8])
    drain(path, "none")
    (path / RING).write_bytes(image)
    with pytest.raises(quire.errors.CorruptError, match="preceded it, as a power cut"):
        drain(path, mode)
    (path / RING).unlink()
    with quire.open(path) as queue:
        assert payloads(queue) == messages


OPENS = 'arm()\nquire.open(sys.argv[1], buffer_mode="async")\n'
GROWS = f"""
queue = quire.open(
    sys.argv[1], buffer_mode="async", ring=quire.RingOptions(capacity_bytes={SMALL}, on_full="grow")
)
arm()
for _ in range(4):
    queue.appender().write_bytes(b"x" * {LONG})
"""


def test_a_ring_is_synced_before_it_has_its_name(path: Path) -> None:
    quire.open(path).close()
    with Party(OPENS, path, point="ring.header.sync") as party:
        party.wait_until_stopped()
        assert not (path / RING).exists()
        (made,) = path.glob("async.ring.*")
        assert made.read_bytes()[:8] == b"QUIRERNG"
        party.kill()


@pytest.mark.parametrize("point", ["ring.header.sync", "ring.dir.sync"])
def test_a_ring_names_no_successor_that_is_not_synced(path: Path, point: str) -> None:
    with quire.open(path) as queue, ExitStack() as stack:
        with queue.appender().writing_document() as document:  # nothing is drained: the ring grows
            document.rollback_on_close()
            party = stack.enter_context(Party(GROWS, path, point=point))
            party.wait_until_stopped()
            (successor,) = path.glob("async-*.ring")
            assert successor.read_bytes()[:8] == b"QUIRERNG"
            name = int(successor.stem.removeprefix("async-"), 16).to_bytes(8, "little")
            assert name not in (path / RING).read_bytes()[:DESCRIPTORS_AT]
            party.go_on()
        party.result()
    with quire.open(path) as queue:
        assert payloads(queue) == [b"x" * LONG] * 4
