"""``quire explain``: every byte of a message is accounted for, as docs/format.md says."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

import quire
from cli_runs import Cli, run
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
        found = quire.explain(JAVA / name, index)
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
    words = [part for part in quire.explain(path, first + 5).parts if part.section == "index"]
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
    parts = [it for it in quire.explain(path, index).parts if it.section == "payload"]
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
    with quire.VanillaQueue(tmp_path / "v") as vanilla, vanilla.appender() as writer:
        index = writer.write_bytes(b"raw")
    ran = cli("explain", tmp_path / "v", index)
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_as_a_process(path: Path, index: int) -> None:
    ran = run("explain", path, hex(index))
    assert (ran.code, ran.err) == (0, "")
    Path(quire.explain(path, index).file).unlink()
    ran = run("explain", path, hex(index))
    assert (ran.code, ran.err.count("\n")) == (1, 1)
