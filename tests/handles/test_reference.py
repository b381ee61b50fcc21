from __future__ import annotations

from pathlib import Path

import pytest

from golden_sets import CRASHED, JAVA, MAIN, QUEUES, delivered, found, listing, messages, name_of
from paths import GOLDEN
from reference import (
    LENGTH,
    META_DATA,
    NOT_COMPLETE,
    ROLL_CYCLES,
    Store,
    check_store,
    open_queue,
)
from reference_writer import RollFile, table_data, v4_files, write_queue, write_v4

FIELDLESS = "e_wt_fieldless_binary"
BARE_INTS = {"java-5.20.123", "java-5.22.28"}  # docs/format.md §3.6
SAME_FILES = [
    file
    for queue in JAVA
    for file in sorted(queue.glob("*.cq4"))
    if queue.name not in {*CRASHED, FIELDLESS} and queue.parent.name not in BARE_INTS
]
SAME_TABLES = [queue for queue in JAVA if queue.parent.name in {"java-5.27ea11", "java-2026.4"}]


@pytest.mark.parametrize("queue", QUEUES, ids=name_of)
def test_the_reference_reads_what_was_listed(queue: Path) -> None:
    assert found(queue) == delivered(queue, "list.jsonl")


@pytest.mark.parametrize("queue", JAVA, ids=name_of)
def test_the_reference_reads_metadata_as_it_was_listed(queue: Path) -> None:
    assert found(queue, metadata=True) == delivered(queue, "list-meta.jsonl")


@pytest.mark.parametrize("queue", JAVA, ids=name_of)
def test_the_reference_tells_metadata_from_messages_as_java_does(queue: Path) -> None:
    _, stores = open_queue(queue)
    expected = [row.get("meta", False) for row in listing(queue, "list-meta.jsonl")]

    assert expected == [d.is_metadata for _, s in sorted(stores.items()) for d in s.documents]


@pytest.mark.parametrize("queue", QUEUES, ids=name_of)
def test_a_settled_queue_breaks_no_rule(queue: Path) -> None:
    _, stores = open_queue(queue)
    problems = [problem for store in stores.values() for problem in check_store(store)]

    assert bool(problems) == (queue.name in CRASHED)


def test_a_writer_killed_inside_a_document_leaves_bytes_after_the_end() -> None:
    (store,) = open_queue(MAIN / "l_crash_open")[1].values()

    assert ["bytes behind the end: position=824"] == list(check_store(store))


def test_a_writer_killed_before_the_sequence_word_leaves_word_and_index() -> None:
    (store,) = open_queue(MAIN / "l_crash_pos")[1].values()

    word, index = check_store(store)

    assert word == "sequence word: found=0x34800000007 expected=0x35000000008"
    assert index.startswith("index: found={0: 784, 4: 816} expected={0: 784, 4: 816, 8: 848}")


@pytest.mark.parametrize("queue", JAVA, ids=name_of)
def test_only_the_newest_file_of_a_queue_has_no_end_marker(queue: Path) -> None:
    _, stores = open_queue(queue)

    assert [cycle for cycle in sorted(stores) if not stores[cycle].has_eof] == sorted(stores)[-1:]


@pytest.mark.parametrize("file", SAME_FILES, ids=name_of)
def test_the_same_messages_make_the_same_roll_file_as_java(file: Path) -> None:
    roll_cycle, stores = open_queue(file.parent)
    store = stores[roll_cycle.cycle_of_file(file.name)]
    roll_file = RollFile(roll_cycle)

    for payload, is_metadata in messages(store):
        roll_file.append(payload, metadata=is_metadata)
    written = roll_file.data(eof=store.has_eof)

    assert written.rstrip(b"\0") == file.read_bytes().rstrip(b"\0")
    if MAIN in file.parents:  # these have the smallest block
        assert len(written) == file.stat().st_size


@pytest.mark.parametrize("queue", SAME_TABLES, ids=name_of)
def test_the_same_entries_make_the_same_table_as_java(queue: Path) -> None:
    data = (queue / "metadata.cq4t").read_bytes()
    store, (roll_cycle, _) = Store(data), open_queue(queue)
    entries = {key: value for key, (_, value) in store.entries().items()}
    time, zone = store.texts.get("rollTime", ""), store.texts.get("rollTimeZone", "")

    written = table_data(roll_cycle, entries, (time, zone), store.numbers["sourceId"])

    assert written.rstrip(b"\0") == data.rstrip(b"\0")


@pytest.mark.parametrize("case", ["f_rc_test_secondly", "g_index_test4_secondly"])
def test_the_same_messages_make_the_same_directory_as_java(case: str, tmp_path: Path) -> None:
    queue = MAIN / case
    roll_cycle, stores = open_queue(queue)
    files = {cycle: [data for data, _ in messages(store)] for cycle, store in stores.items()}

    write_queue(tmp_path, roll_cycle, files)

    for file in [*queue.glob("*.cq4"), queue / "metadata.cq4t"]:
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()
    assert len(list(tmp_path.iterdir())) == len(stores) + 1


def test_a_queue_without_a_table_is_read_by_its_names(tmp_path: Path) -> None:
    queue = MAIN / "f_rc_five_minutely"
    for file in queue.glob("*.cq4"):
        tmp_path.joinpath(file.name).write_bytes(file.read_bytes())

    assert found(tmp_path) == delivered(queue, "list.jsonl")


@pytest.mark.parametrize("left", [0x80000000, 0x80001234, 0x80000064, 0xC0000010])
def test_an_incomplete_header_ends_the_reading(left: int) -> None:
    roll_file = RollFile(ROLL_CYCLES["TEST4_DAILY"])
    roll_file.append(b"one")
    data = bytearray(roll_file.data())
    tail = Store(bytes(data)).tail

    data[tail : tail + 4] = left.to_bytes(4, "little")

    assert left & NOT_COMPLETE
    assert len(messages(Store(bytes(data)))) == 1


def test_the_masks_share_no_bit() -> None:
    assert LENGTH ^ META_DATA ^ NOT_COMPLETE == 0xFFFFFFFF


def test_the_older_layout_is_written_again_as_it_lies_there(tmp_path: Path) -> None:
    write_v4(tmp_path)

    for file in tmp_path.iterdir():
        assert file.read_bytes() == (GOLDEN / "v4" / file.name).read_bytes()


def test_the_older_layout_is_not_aligned() -> None:
    stores = [Store(data) for data in v4_files(ROLL_CYCLES["DAILY"]).values()]

    assert {store.alignment for store in stores} == {1}
    assert [store.has_eof for store in stores] == [True, False]
    assert any(document.position % 4 for store in stores for document in store.documents)
