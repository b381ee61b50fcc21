"""Given what Java was given, Quire writes the bytes that Java wrote: roll files and table."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pytest

import quire
from golden_sets import CRASHED, JAVA, MAIN, messages, name_of
from parameters import some
from paths import GOLDEN
from queues import START_MS, UNLOCKED, WRITE_LOCK
from reference import Store, align, open_queue

Write: TypeAlias = Callable[[quire.JournalAppender, Sequence[bytes]], object]

FIELDLESS = "e_wt_fieldless_binary"
OLD = {"java-5.20.123", "java-5.22.28"}  # numbers are encoded otherwise, docs/format.md §3.6
ALIKE = [golden for golden in JAVA if golden.parent.name not in OLD and golden.name not in CRASHED]
LATEST = [golden for golden in ALIKE if golden.parent.name in {"java-5.27ea11", "java-2026.4"}]
TAILERS = {"h_named_tailers", "named_tailers"}
HELD_SINCE = "quire.heldSince"  # once there was a document
EMPTY, COUNT_KEY = b"\x8f", "listing.modCount"
LONG = {"b_scalars": 2**19}  # Java squeezed a message of 70 305 bytes into blocks of 131 072
ROLLBACKS = {"k_rollback", "k_rollback_first", "rollback"}


def one_by_one(appender: quire.JournalAppender, payloads: Sequence[bytes]) -> None:
    for payload in payloads:
        appender.write_bytes(payload)


def as_documents(appender: quire.JournalAppender, payloads: Sequence[bytes]) -> None:
    """Java's writer that wrote nothing is a document closed at once."""
    for payload in payloads:
        with appender.writing_document() as document:
            for start in range(0, len(payload) if payload != EMPTY else 0, 7):
                document.write_bytes(payload[start : start + 7])


def as_a_batch(appender: quire.JournalAppender, payloads: Sequence[bytes]) -> None:
    appender.write_batch(pa.array(payloads, type=pa.binary()))


WAYS: dict[str, Write] = {
    "one": one_by_one,
    "documents": as_documents,
    "many": quire.JournalAppender.write_many,
    "batch": as_a_batch,
}


def runs(documents: Sequence[tuple[bytes, bool]]) -> Iterator[tuple[list[bytes], bool]]:
    """Cut a file's documents into runs of messages, and single metadata documents."""
    run: list[bytes] = []
    for payload, is_metadata in documents:
        if is_metadata:
            yield run, False
            yield [payload], True
            run = []
        else:
            run.append(payload)
    yield run, False


def drop_a_document(appender: quire.JournalAppender) -> None:
    with appender.writing_document() as document:
        document.write("dropped", "x" * 50)
        document.rollback_on_close()


def open_as(golden: Path, path: Path, clock: quire.ManualClock) -> quire.JournalQueue:
    """Open a new queue with the options that a golden queue shows in its files."""
    roll_cycle, _ = open_queue(golden)
    table = Store((golden / "metadata.cq4t").read_bytes())
    roll_time = table.texts.get("rollTime")
    return quire.open(
        path,
        roll_cycle=roll_cycle.name,
        clock=clock,
        block_bytes=LONG.get(golden.name, 1),
        epoch_ms=None if roll_time else roll_cycle.epoch_ms,
        roll=quire.RollOptions(roll_time=roll_time),
        source_id=table.numbers["sourceId"],
        wire_type="FIELDLESS_BINARY" if golden.name == FIELDLESS else None,
    )


def rewrite(golden: Path, path: Path, write: Write) -> quire.JournalQueue:
    """Give Quire the payloads of a golden queue, at the times of its cycles; return it open."""
    roll_cycle, stores = open_queue(golden)
    clock = quire.ManualClock(START_MS)
    queue = open_as(golden, path, clock)
    with queue.appender() as appender:
        for cycle, store in sorted(stores.items()):
            clock.now_ms = cycle * roll_cycle.length_ms + roll_cycle.epoch_ms
            for payloads, is_metadata in runs(messages(store)):
                if golden.name in ROLLBACKS:
                    drop_a_document(appender)
                if is_metadata:
                    with appender.writing_document(metadata=True) as document:
                        document.write_bytes(payloads[0])
                else:
                    write(appender, payloads)
    return queue


def read_as_java_did(golden: Path, queue: quire.JournalQueue) -> None:
    """Read with the named tailers of a golden queue, in the order of their keys."""
    table = Store((golden / "metadata.cq4t").read_bytes())
    keys = [key.removeprefix("index.") for key in table.entries() if key.startswith("index.")]
    for name in keys:
        if name.endswith((".version", ".lock")):
            continue
        stored = table.entries()[f"index.{name}"][1]
        with queue.tailer(name) as tailer:
            if name == "atEnd":
                tailer.to_end()
            elif name == "moved":
                assert tailer.move_to_index(stored)
            elif name == "startAfterRead":
                tailer.read_many(3)
                tailer.to_start()
            else:
                tailer.read_many(len([i for i in index_bounds(golden) if i < stored]))


def index_bounds(golden: Path) -> list[int]:
    roll_cycle, stores = open_queue(golden)
    return [
        roll_cycle.to_index(cycle, document.sequence)
        for cycle, store in sorted(stores.items())
        for document in store.documents
        if not document.is_metadata
    ]


def whole(file: Path, golden: Path) -> bytes:
    """Return a file's bytes; without the zeros at its end where the golden ones were cut off."""
    data = file.read_bytes()
    return data if MAIN in golden.parents and golden.name not in LONG else data.rstrip(b"\0")


@pytest.mark.parametrize("golden", ALIKE, ids=name_of)
@pytest.mark.parametrize("way", WAYS)
def test_the_same_messages_make_the_same_roll_files_as_java(
    golden: Path, way: str, tmp_path: Path
) -> None:
    rewrite(golden, tmp_path / "queue", WAYS[way]).close()

    java = sorted(golden.glob("*.cq4"))
    assert [file.name for file in sorted(tmp_path.rglob("*.cq4"))] == [file.name for file in java]
    for file in java:
        assert whole(tmp_path / "queue" / file.name, golden) == whole(file, golden)


def same_table(golden: Path, path: Path) -> None:
    """Compare tables byte by byte, but for the count of changes and for what Java lacks."""
    tables = [bytearray((home / "metadata.cq4t").read_bytes()) for home in (path, golden)]
    counts = [Store(bytes(table)).entries()[COUNT_KEY] for table in tables]
    for table, (offset, _) in zip(tables, counts, strict=True):
        struct.pack_into("<q", table, offset, 0)
    quire_bytes, java_bytes = tables
    quire_entries, java_entries = [Store(bytes(table)).entries() for table in tables]
    if (own := quire_entries.pop(HELD_SINCE, None)) is not None:  # docs/format.md, Table keys
        end = len(java_bytes.rstrip(b"\0"))
        assert own == (own[0], 0)
        assert own[0] >= end
        quire_bytes[end : own[0] + 8] = bytes(own[0] + 8 - end)
    assert quire_entries == java_entries
    assert quire_bytes.rstrip(b"\0") == java_bytes.rstrip(b"\0")
    assert len(quire_bytes) == 131_072


@pytest.mark.parametrize(
    "golden", [q for q in LATEST if q.name not in {*TAILERS, "n_normalise_eofs"}], ids=name_of
)
def test_the_same_messages_make_the_same_table_as_java(golden: Path, tmp_path: Path) -> None:
    rewrite(golden, tmp_path, one_by_one).close()

    same_table(golden, tmp_path)


@pytest.mark.parametrize("golden", [q for q in LATEST if q.name in TAILERS], ids=name_of)
def test_the_same_named_tailers_make_the_same_table_as_java(golden: Path, tmp_path: Path) -> None:
    with rewrite(golden, tmp_path, one_by_one) as queue:
        read_as_java_did(golden, queue)

    same_table(golden, tmp_path)


def test_normalising_makes_the_same_directory_as_java(tmp_path: Path) -> None:
    golden = MAIN / "n_normalise_eofs"
    with rewrite(golden, tmp_path, one_by_one) as queue, queue.appender() as appender:
        appender.normalise_eofs()

    same_table(golden, tmp_path)
    for file in golden.glob("*.cq4"):
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("golden", [q for q in ALIKE if MAIN in q.parents], ids=name_of)
def test_changes_are_counted_once_for_opening_and_twice_for_each_file(
    golden: Path, tmp_path: Path
) -> None:
    with rewrite(golden, tmp_path, one_by_one) as queue:
        with queue.tailer() as tailer:
            tailer.read_many(1000)
        assert queue.table_value(COUNT_KEY) == 1 + 2 * len(list(golden.glob("*.cq4")))
        assert queue.table_value(WRITE_LOCK) == UNLOCKED


@pytest.mark.parametrize(
    "golden",
    some([q for q in ALIKE if MAIN in q.parents and any(q.glob("*.cq4"))], keep=[0]),
    ids=name_of,
)
def test_a_queue_whose_table_was_lost_gets_the_same_one_again(golden: Path, tmp_path: Path) -> None:
    table = Store((golden / "metadata.cq4t").read_bytes())
    for file in golden.glob("*.cq4"):
        shutil.copyfile(file, tmp_path / file.name)

    with open_as(golden, tmp_path, quire.ManualClock()) as queue:
        assert queue.roll_cycle.name == open_queue(golden)[0].name

    found = Store((tmp_path / "metadata.cq4t").read_bytes())
    assert (found.numbers, found.texts) == (table.numbers, table.texts)
    listing = ["listing.highestCycle", "listing.lowestCycle"]
    assert [found.entries()[key] for key in listing] == [table.entries()[key] for key in listing]


def test_a_larger_block_makes_larger_files_of_the_same_content(tmp_path: Path) -> None:
    golden = MAIN / "f_rc_test4_daily"
    roll_cycle, stores = open_queue(golden)
    clock = quire.ManualClock()
    with (
        quire.open(tmp_path, roll_cycle=roll_cycle.name, clock=clock, block_bytes=2**20) as queue,
        queue.appender() as appender,
    ):
        for cycle, store in sorted(stores.items()):
            clock.now_ms = cycle * roll_cycle.length_ms
            appender.write_many([payload for payload, _ in messages(store)])

    for file in golden.glob("*.cq4"):
        data = (tmp_path / file.name).read_bytes()
        assert data.rstrip(b"\0") == file.read_bytes().rstrip(b"\0")
        assert len(data) == 2**20 + 2**18
        assert (tmp_path / file.name).stat().st_blocks * 512 < align(len(data), 2**18)


def test_the_golden_directory_holds_every_case_that_is_compared() -> None:
    cases = {golden.name for golden in ALIKE}

    assert {"a_text", "d_bytes", "j_empty_documents", "m_block64k", "n_padding_1_to_40"} <= cases
    assert cases >= {"g_index_test4_secondly", "g_index_test_daily", *ROLLBACKS, *TAILERS}
    assert len([golden for golden in ALIKE if golden.name.startswith("f_rc_")]) == 6
    assert len(list(GOLDEN.glob("java-*"))) == 6
