"""
What a power cut may leave of a ring, which nobody syncs: an earlier image, or slots without bytes.

The queue and its table are as of the last sync, and hold each message once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from queues import payloads
from ring_left import leave_in_ring

RING = "async.ring"
CAPACITY = 8 << 20
BYTES_AT = 4096 + CAPACITY // 32 * 8  # after the header and the descriptors
OLD = [b"message %d" % number for number in range(5)]


def left(path: Path, messages: list[bytes]) -> Path:
    """Return a ring with *messages* that nobody has drained."""
    with quire.open(path) as queue:
        leave_in_ring(path, queue, messages)
    return path / RING


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
    assert "a message in the ring is dropped, as not all of its bytes are there" in caplog.text
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
