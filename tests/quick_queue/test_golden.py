"""The files of the Java original: read as they are listed, and written again byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quire
from quick_golden import LISTED, WITH_FILES, expected, listing, pack, unpack, unpacked
from quick_reference import QuickReference

Delivered = list[tuple[int, str | None, bytes]]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("golden")
    unpack(root)
    return root


def delivered(path: Path) -> Delivered:
    with quire.open(path, format="quick-queue", read_only=True) as queue, queue.tailer() as tailer:
        return [(excerpt.index, excerpt.producer, excerpt.data) for excerpt in tailer]


def pages(path: Path) -> dict[str, bytes]:
    """The files of a queue, without the zeros at their ends: pages are sparse."""
    found: dict[str, bytes] = {}
    for file in sorted(path.rglob("*.q*")):
        if file.is_file() and file.suffix != ".lock":
            with file.open("rb") as opened:
                head = opened.read(1 << 20)
            found[str(file.relative_to(path))] = head.rstrip(b"\0")
            assert file.suffix == ".qm" or file.stat().st_size > 0
    return found


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_golden_queue_reads_as_it_is_listed(golden: Path, name: str) -> None:
    listed = listing(golden, name)
    assert delivered(golden / name) == listed.delivered()
    assert QuickReference(golden / name).messages() == listed.delivered()
    with quire.open(golden / name, read_only=True) as queue:
        assert isinstance(queue, quire.quick_queue.QuickQueue)
        assert queue.page_bytes == listed.page_bytes
        assert queue.last_index == listed.messages[-1]["offset"]
        assert queue.entry_count == len(listed.messages)


@pytest.mark.parametrize("name", WITH_FILES)
def test_the_fields_of_a_golden_queue_are_those_listed(golden: Path, name: str) -> None:
    with quire.open(golden / name, format="quick-queue", read_only=True) as queue:
        for excerpt, message in zip(queue.tailer(), listing(golden, name).messages, strict=True):
            fields = excerpt.unpack()
            assert unpacked(fields) == expected(message["value"])
            assert fields.remaining == 0


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_golden_queue_is_written_again_byte_for_byte(
    golden: Path, name: str, tmp_path: Path
) -> None:
    listed = listing(golden, name)
    with quire.quick_queue.open(tmp_path, page_bytes=listed.page_bytes) as queue:
        appenders: dict[str | None, quire.quick_queue.QuickAppender] = {}
        for number, message in enumerate(listed.messages):
            producer = message.get("producer")
            if name == "multi_4k" and number == 60:  # its maker was restarted then
                appenders.pop("AA0").close()
            if producer not in appenders:
                appenders[producer] = queue.appender(producer)
            packer = appenders[producer].new_message()
            pack(packer, message["value"], bytes.fromhex(message["hex"]))
            assert packer.write_message() == message["offset"]
    assert pages(tmp_path) == pages(golden / name)


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_queue_is_made_again_over_restarts(
    golden: Path, name: str, tmp_path: Path
) -> None:
    """Of two sets only the listings are left: their bytes stand in for the files."""
    listed = listing(golden, name)
    for message in listed.messages:
        with quire.quick_queue.open(tmp_path, page_bytes=listed.page_bytes) as queue:
            payload: Any = bytes.fromhex(message.get("hex", "00" * message["len"]))
            appender = queue.appender(message.get("producer", message.get("pending")))
            assert appender.write_bytes(payload) == message["offset"]
    for message in listed.messages:
        if "pending" in message:
            with (tmp_path / "0.qmx").open("r+b") as index:
                index.seek(message["offset"])
                index.write(bytes(8))
                index.seek(message["offset"] + 15)
                index.write(b"\0")
    # A message of a dead producer is proven by those before and after it.
    proven = [
        (it["offset"], it["pending"], bytes(it["len"])) for it in listed.messages if "pending" in it
    ]
    expected = sorted([*listed.delivered(), *proven])
    assert delivered(tmp_path) == expected
    assert QuickReference(tmp_path).messages() == expected
