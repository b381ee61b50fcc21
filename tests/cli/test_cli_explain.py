"""``quire explain``: every byte of a message is accounted for, as docs/format.md says."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

import quick_golden
import quire
import vanilla_golden
from cli_runs import Cli, run
from damages import patch
from indexed_reference import written
from paths import GOLDEN
from queues import START_MS, snapshot

JAVA = GOLDEN / "java-5.27ea11"
QUEUES = sorted(it.name for it in JAVA.iterdir() if [*it.glob("*.cq4")])


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(capfdbinary)


@pytest.fixture
def index(path: Path) -> int:
    """A queue with one message; its index."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        return appender.write_map({"n": 5, "text": "\x1b[31mred"})


@pytest.mark.parametrize("name", QUEUES)
def test_every_byte_of_what_java_wrote_has_a_meaning(name: str) -> None:
    before = snapshot(JAVA / name)
    with quire.open(JAVA / name, read_only=True) as queue, queue.tailer() as tailer:
        messages = tailer.read_many(3)
        indexes = [(queue.first_index or 0) + number for number in range(len(messages))]
    for index, payload in zip(indexes, messages, strict=True):
        found = quire.maintenance.explain(JAVA / name, index)
        document = [part for part in found.parts if part.section != "index"]
        assert [part.section for part in document[:2]] == ["header", "payload"]
        for part, following in pairwise(document):
            assert following.position == part.position + part.length
        content = Path(found.file).read_bytes()
        for part in found.parts:
            shown = content[part.position : part.position + part.length]
            assert shown[: len(part.data)] == part.data
            assert len(part.data) == min(part.length, 256)
        inside = [part for part in document if part.section == "payload"]
        assert sum(part.length for part in inside) == len(payload)
        assert inside[0].data == payload[: len(inside[0].data)]
    assert snapshot(JAVA / name) == before


def test_the_words_of_the_index_lead_to_the_message() -> None:
    path = JAVA / "h_named_tailers"
    with quire.open(path, read_only=True) as queue:
        first = queue.first_index
    assert first is not None
    words = [
        part for part in quire.maintenance.explain(path, first + 5).parts if part.section == "index"
    ]
    assert [word.code for word in words][-2:] == ["index2index", "index"]
    # docs/format.md §4.1
    assert (words[-2].position, words[-2].meaning) == (0xF0, "slot 0: an index array is at 1f0")
    assert (words[-1].position, words[-1].meaning) == (
        0x218,
        "slot 1: sequence 4 is at 330; this message is 1 after it",
    )


def test_bytes_that_are_no_values_are_shown_as_such(path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        index = appender.write_bytes(b"\xc1a\xa1\x05\x8b\x01\x02")
    parts = [it for it in quire.maintenance.explain(path, index).parts if it.section == "payload"]
    assert [(it.code, it.length) for it in parts] == [
        ("FIELD_NAME", 2),
        ("UINT8", 2),
        ("bytes", 3),
    ]
    assert "found=0x8b (U16_ARRAY)" in parts[-1].meaning


def test_the_verb_shows_bytes_codes_and_meanings(cli: Cli, path: Path, index: int) -> None:
    lines = cli.ok("explain", path, hex(index)).lines
    assert lines[0].endswith(f"F.cq4, message {index:#x}")
    assert '     10114: b9 01 6e                 EVENT_NAME     event "n"' in lines
    assert not any("\x1b" in line for line in lines)
    assert any(r"\x1b[31mred" in line for line in lines)


def test_rows_for_programs(cli: Cli, path: Path, index: int) -> None:
    rows = [json.loads(it) for it in cli.ok("explain", path, index, "--format", "jsonl").lines]
    assert rows[1] == {
        "section": "payload",
        "position": 0x10114,
        "length": 3,
        "depth": 0,
        "bytes": "b9016e",
        "code": "EVENT_NAME",
        "meaning": 'event "n"',
        "file": quire.maintenance.explain(path, index).file,
    }


def test_what_cannot_be_explained_is_one_line(cli: Cli, tmp_path: Path, path: Path) -> None:
    ran = cli("explain", path, "0x5")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    with quire.open(path) as queue, queue.appender() as appender:
        index = appender.write_text("hello")
    ran = cli("explain", path, index + 1)
    assert (ran.code, ran.raw) == (1, b"")
    assert ran.err == f"quire: no message has this index: index={index + 1:#x} path={path}\n"
    ran = cli("explain", path, "soon")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    written(tmp_path / "old", [b"one"])
    ran = cli("explain", tmp_path / "old", 0)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "of an Indexed Chronicle are not explained" in ran.err


def assert_the_bytes_are_those_of_the_files(found: quire.maintenance.Explanation) -> None:
    for part in found.parts:
        with Path(part.file).open("rb") as file:
            file.seek(part.position)
            assert file.read(len(part.data)) == part.data
        assert len(part.data) == min(part.length, 256)


def payload_of(found: quire.maintenance.Explanation) -> bytes:
    return b"".join(part.data for part in found.parts if part.section == "payload")


@pytest.mark.parametrize("name", ["daily_small_mt", "pid22"])
def test_messages_of_a_vanilla_chronicle(name: str, tmp_path: Path) -> None:
    path = vanilla_golden.unpack(name, tmp_path)
    before = snapshot(path)
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        messages = [(excerpt.index, excerpt.data) for excerpt in tailer][:20]
    for index, payload in messages:
        found = quire.maintenance.explain(path, index)
        assert_the_bytes_are_those_of_the_files(found)
        assert payload_of(found) == payload[:256]
        header, entry = found.parts[0], found.parts[-1]
        assert (header.section, header.code, entry.section) == ("header", "u32", "index")
        assert int.from_bytes(header.data, "little", signed=True) == ~len(payload)
        named = re.search(r"thread (\d+), its data file (\d+)", entry.meaning)
        assert named
        assert found.file.endswith("/data-{}-{}".format(*named.groups()))
        assert entry.meaning.endswith(f"at {header.position + 4:x}")
        record = [part for part in found.parts if part.section != "index"]
        for part, following in pairwise(record):
            assert following.position == part.position + part.length
    assert snapshot(path) == before


@pytest.mark.check
def test_messages_of_a_quick_queue(tmp_path: Path) -> None:
    quick_golden.unpack(tmp_path)
    for name in ("single_4k", "multi_4k"):
        path = tmp_path / name
        before = snapshot(path)
        for index, producer, payload in quick_golden.listing(tmp_path, name).delivered():
            found = quire.maintenance.explain(path, index)
            assert_the_bytes_are_those_of_the_files(found)
            assert payload_of(found) == payload[: len(payload_of(found))]
            whole = sum(part.length for part in found.parts if part.section == "payload")
            assert whole == len(payload)
            meanings = [part.meaning for part in found.parts if part.section == "index"]
            writer = "one writer" if producer is None else f"the producer {producer}"
            assert meanings[1:] == [f"{len(payload)} bytes", writer, "complete"]
        assert snapshot(path) == before


def test_an_entry_that_is_claimed_has_no_message_yet(path: Path) -> None:
    with quire.quick_queue.open(path, page_bytes=4096) as queue:
        index = queue.appender("AA0").write_bytes(b"whole")
    patch(path / "0.qmx", index + 15, b"\0")
    found = quire.maintenance.explain(path, index)
    assert {part.section for part in found.parts} == {"index"}
    assert found.parts[-1].meaning == "claimed, not complete"
    patch(path / "0.qmx", index, b"\xff" * 8)
    patch(path / "0.qmx", index + 15, b"\x7f")
    with pytest.raises(quire.errors.CorruptError, match="an entry names no message"):
        quire.maintenance.explain(path, index)
    for wrong in (index + 1, index + 16, 2**62):
        with pytest.raises(quire.errors.IndexOutOfRangeError, match="no message has this index"):
            quire.maintenance.explain(path, wrong)


def test_the_file_of_each_part_is_shown(cli: Cli, path: Path) -> None:
    with quire.quick_queue.open(path, page_bytes=32) as queue:
        index = queue.appender("AA0").write_bytes(b"x" * 40)
    lines = cli.ok("explain", path, index).lines
    assert lines[0] == f"{path}/AA0/0.qd, message {index:#x}"
    assert f"payload, {path}/AA0/1.qd" in lines
    assert f"index, {path}/0.qmx" in lines


def test_as_a_process(path: Path, index: int) -> None:
    ran = run("explain", path, hex(index))
    assert (ran.code, ran.err) == (0, "")
    Path(quire.maintenance.explain(path, index).file).unlink()
    ran = run("explain", path, hex(index))
    assert (ran.code, ran.err.count("\n")) == (1, 1)
