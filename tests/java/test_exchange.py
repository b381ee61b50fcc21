"""What Quire writes Java reads, and the reverse: every kind of message, release and option."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import quire
from java_peer import JavaPeer, Option

pytestmark = pytest.mark.java

START = 1_700_000_000_000
DAY_MS = 86_400_000
BLOCK = 65536
CURRENT = ("5.27ea11", "2026.4")
OLDER = ("5.22.28", "5.23.37", "5.26ea7")
FIELDLESS = "FIELDLESS_BINARY"
PADDING = b"\x8f"  # an empty document
ALL_KINDS = "text,bytes,map,document,values,meta,empty,rollback"

# Java's MapCases: what the kind "values" writes.
MAPS: list[dict[str, Any]] = [
    {"none": None},
    {"yes": True, "no": False},
    {"zero": 0, "one": 1, "minus": -1, "least": -(2**31), "greatest": 2**31 - 1},
    {"above": 2**31, "below": -(2**31) - 1, "least": -(2**63), "greatest": 2**63 - 1},
    {"zero": 0.0, "minusZero": -0.0, "whole": 3.0, "tenth": 0.1, "pi": math.pi, "huge": 1e300},
    {"nan": math.nan, "infinite": math.inf, "minus": -math.inf},
    {"empty": "", "ascii": "text", "accent": "caf\xe9", "euro": "\u20ac", "face": "a\U0001f600b"},
    {
        "of31": "x" * 31,
        "of32": "x" * 32,
        "of300": "x" * 300,
        "nul": "a\0b",
        "lines": '"quoted"\n\tand: {more}, [of, it]\\',
    },
    {"three": b"\1\2\xff", "none": b"", "many": bytes(300)},
    {"mixed": [1, "two", 3.5, None, True], "none": [], "in": [[1], []]},
    # The second is an empty map of Java: nothing in its files tells one from an empty list.
    {"inner": {"a": 1, "b": {"c": "deep"}}, "none": [], "listed": [{"d": 2**40}]},
    {"caf\xe9": 1, "12": 2, "with space": 3, "k" * 40: 4},
]
TEXTS = ["", "text", "caf\xe9", "\u20ac" * 40, "a\U0001f600b", "a\0b", "x" * 31, "x" * 32]


@pytest.fixture
def clock() -> quire.ManualClock:
    return quire.ManualClock(START)


@pytest.fixture(params=CURRENT)
def peer(request: pytest.FixtureRequest) -> JavaPeer:
    return JavaPeer(request.param)


def small(path: Path, clock: quire.ManualClock) -> quire.JournalQueue:
    return quire.open(path, roll_cycle="TEST4_DAILY", block_bytes=BLOCK, clock=clock)


def java_writes(peer: JavaPeer, path: Path, kind: str, count: int, **options: Option) -> list[int]:
    """The indexes that Java gave to so many messages, in a queue that it may have to create."""
    defaults: dict[str, Option] = {"roll_cycle": "TEST4_DAILY", "block_size": BLOCK, "start": START}
    lines = peer.run("write", **defaults | {"dir": path, "kind": kind, "count": count} | options)
    return [int(line, 16) for line in lines]


def quire_reads(path: Path) -> list[quire.Excerpt]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return list(tailer)


def java_reads(peer: JavaPeer, path: Path) -> list[quire.Excerpt]:
    lines = [line.split() for line in peer.run("list", dir=path)]
    return [quire.Excerpt(int(index, 16), bytes.fromhex(data)) for index, _, data in lines]


def assert_sound(peer: JavaPeer, path: Path, messages: int) -> None:
    """Java finds each message forward, backward and by its index."""
    found = peer.check(path)
    for count in ("count", "backward", "moved", "countExcerpts", "entryCount"):
        assert found[count] == messages, count


def test_maps_have_the_bytes_of_java(
    peer: JavaPeer, tmp_path: Path, clock: quire.ManualClock
) -> None:
    indexes = java_writes(peer, tmp_path / "java", "values", len(MAPS))
    of_java = [excerpt.data for excerpt in quire_reads(tmp_path / "java")]
    with small(tmp_path / "quire", clock) as queue, queue.appender() as appender:
        assert [appender.write_map(values) for values in MAPS] == indexes
        assert [excerpt.data for excerpt in queue.tailer()] == of_java
        for values in MAPS:
            with appender.writing_document() as document:
                for name, value in values.items():
                    document.write(name, value)
    assert [excerpt.data for excerpt in quire_reads(tmp_path / "quire")] == of_java * 2


def test_maps_of_java_are_read(peer: JavaPeer, tmp_path: Path) -> None:
    java_writes(peer, tmp_path, "values", len(MAPS))
    with quire.open(tmp_path) as queue, queue.tailer() as tailer:
        found = repr([tailer.read_map() for _ in MAPS])  # repr: nan is not equal, -0.0 is to 0.0
    assert found == repr(MAPS)


def test_texts_have_the_bytes_of_java(
    peer: JavaPeer, tmp_path: Path, clock: quire.ManualClock
) -> None:
    """Of all lengths up to and beyond those where the code changes, beyond the BMP too."""
    texts = [("a\xe9\u20ac\U0001f600" * 18)[:length] for length in range(70)]
    java_writes(peer, tmp_path / "java", "unicode", len(texts))
    with quire.open(tmp_path / "java") as queue, queue.tailer() as tailer:
        assert [tailer.read_text() for _ in texts] == texts
    with small(tmp_path / "quire", clock) as queue, queue.appender() as appender:
        for text in texts:
            appender.write_text(text)
    assert quire_reads(tmp_path / "quire") == quire_reads(tmp_path / "java")


def test_java_understands_maps_and_texts(
    peer: JavaPeer, tmp_path: Path, clock: quire.ManualClock
) -> None:
    """What Java reads and writes again comes out the same."""
    empty: dict[str, Any] = {"none": {}, "in": {"none": {}}, "listed": [{}, []]}
    maps = [*MAPS, empty]
    with small(tmp_path, clock) as queue, queue.appender() as appender:
        for values in maps:
            appender.write_map(values)
        for text in TEXTS:
            appender.write_text(text)
        written = list(queue.tailer())
    with peer.start("tailer-script", dir=tmp_path, start=START) as java:
        for number, _ in enumerate(written):
            command = "echoMap" if number < len(maps) else "echoText"
            assert java.ask(command) == f"{written[-1].index + 1 + number:x}"
    data = [excerpt.data for excerpt in written]
    assert [excerpt.data for excerpt in quire_reads(tmp_path)] == data * 2


def test_files_are_the_same_to_the_byte(tmp_path: Path, clock: quire.ManualClock) -> None:
    """309 messages: index arrays are added, filled and counted as Java does it."""
    peer = JavaPeer()
    java_writes(peer, tmp_path / "java", "text", 309)
    with small(tmp_path / "quire", clock) as queue:
        write_texts(queue, range(309))
    of_java, of_quire = file_of(tmp_path / "java"), file_of(tmp_path / "quire")
    assert of_quire.name == of_java.name
    assert of_quire.read_bytes() == of_java.read_bytes()


def test_every_kind_of_document_lies_as_java_puts_it(
    tmp_path: Path, clock: quire.ManualClock
) -> None:
    """With metadata, empty and dropped documents between the messages."""
    peer = JavaPeer()
    java_writes(peer, tmp_path / "java", ALL_KINDS, 20 * 8)
    with (
        quire.open(tmp_path / "java", read_only=True) as source,
        small(tmp_path / "quire", clock) as queue,
        queue.appender() as appender,
    ):
        for data, metadata in documents(source):
            with appender.writing_document(metadata=metadata) as document:
                if data != PADDING:
                    document.write_bytes(data)
            with appender.writing_document() as document:
                document.write("rolled", "back" * 20)
                document.rollback_on_close()
    assert file_of(tmp_path / "quire").read_bytes() == file_of(tmp_path / "java").read_bytes()
    everything = peer.run("list", dir=tmp_path / "java", meta=True)
    assert peer.run("list", dir=tmp_path / "quire", meta=True) == everything
    assert_sound(peer, tmp_path / "quire", 20 * 6)


def documents(queue: quire.JournalQueue) -> Iterator[tuple[bytes, bool]]:
    """The payloads of messages and of metadata that a user wrote."""
    with queue.tailer() as tailer:
        while (document := tailer.reading_document(include_metadata=True)).is_present:
            data = bytes(document.bytes)
            if data.startswith(b"\xc4meta") or not document.is_metadata:
                yield data, document.is_metadata
            document.close()


def file_of(path: Path) -> Path:
    """The one roll file of the queue."""
    (found,) = path.glob("*.cq4")
    return found


@pytest.mark.smoke
def test_single_appends_take_turns(
    peer: JavaPeer, tmp_path: Path, clock: quire.ManualClock
) -> None:
    """Java after Quire and Quire after Java, over four cycles; each reads what the other wrote."""
    with (
        small(tmp_path, clock) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
        peer.start("tailer-script", dir=tmp_path, start=START) as java,
    ):
        for number in range(200):
            mine, theirs = f"quire {number}", f"java {number}"
            index = appender.write_text(mine)
            assert java.ask(f"appendText {theirs}") == f"{index + 1:x}"
            for expected in (mine, theirs):
                found = tailer.read()
                assert found is not None
                assert found.data[1:].decode() == expected
                assert java.ask("read") == f"{found.index:x} {len(found.data)} {found.data.hex()}"
            if number % 50 == 49:
                clock.advance(DAY_MS)
                assert java.ask(f"advance {DAY_MS}") == "ok"
    assert_sound(peer, tmp_path, 400)
    with quire.open(tmp_path) as queue:
        assert queue.entry_count == 400
        assert len(queue.cycles) == 4


@pytest.mark.parametrize("version", [*OLDER, "2026.4"])
def test_queues_of_every_release_are_appended_to(
    version: str, tmp_path: Path, clock: quire.ManualClock
) -> None:
    creator, current = JavaPeer(version), JavaPeer()
    indexes = java_writes(creator, tmp_path, "text,map,bytes", 10)
    clock.advance(DAY_MS)
    with small(tmp_path, clock) as queue, queue.appender() as appender:
        indexes += write_texts(queue, range(150))
        clock.advance(DAY_MS)
        indexes += [appender.write_map(values) for values in MAPS]
    for peer in (creator, current):
        assert_sound(peer, tmp_path, len(indexes))
    indexes += java_writes(creator, tmp_path, "text", 5, start=START + 3 * DAY_MS)
    assert [excerpt.index for excerpt in quire_reads(tmp_path)] == indexes
    assert java_reads(creator, tmp_path) == quire_reads(tmp_path)


@pytest.mark.parametrize("creator", ["java", "quire"])
def test_other_index_sizes_are_kept(creator: str, tmp_path: Path, clock: quire.ManualClock) -> None:
    """Twelve slots become 16, a spacing of three becomes 4: Java and Quire round alike."""
    peer = JavaPeer()
    java_writes(peer, tmp_path / "twin", "text", 200, index_count=12, index_spacing=3)
    path = tmp_path / "mixed"
    if creator == "java":
        java_writes(peer, path, "text", 10, index_count=12, index_spacing=3)
    else:
        with quire.open(
            path,
            roll_cycle="TEST4_DAILY",
            block_bytes=BLOCK,
            clock=clock,
            layout=quire.LayoutOptions(index_count=12, index_spacing=3),
        ) as queue:
            write_texts(queue, range(10))
    java_writes(peer, path, "text", 60, first=10)
    with small(path, clock) as queue:
        write_texts(queue, range(70, 140))
    java_writes(peer, path, "text", 60, first=140)
    assert file_of(path).read_bytes() == file_of(tmp_path / "twin").read_bytes()
    assert_sound(peer, path, 200)


@pytest.mark.parametrize("named", [True, False])
def test_a_fieldless_queue_is_appended_to(
    named: bool,  # noqa: FBT001 - whether the wire type is passed, or read from the files
    tmp_path: Path,
    clock: quire.ManualClock,
) -> None:
    peer = JavaPeer()
    java_writes(peer, tmp_path, "text", 3, wire_type=FIELDLESS)
    with quire.open(tmp_path, clock=clock, wire_type=FIELDLESS if named else None) as queue:
        assert queue.wire_type == FIELDLESS
        write_texts(queue, range(3, 6))
        clock.advance(DAY_MS)
        write_texts(queue, range(6, 9))
    later = START + DAY_MS
    java_writes(peer, tmp_path, "text", 3, first=9, wire_type=FIELDLESS, start=later)
    assert_sound(peer, tmp_path, 12)
    with quire.open(tmp_path) as queue, queue.tailer() as tailer:
        assert [tailer.read_text() for _ in range(12)] == [f"message {it}" for it in range(12)]
    assert java_reads(peer, tmp_path) == quire_reads(tmp_path)


def write_texts(queue: quire.JournalQueue, numbers: Iterable[int]) -> list[int]:
    """As Java's kind "text"."""
    with queue.appender() as appender:
        return [appender.write_text(f"message {number}") for number in numbers]
