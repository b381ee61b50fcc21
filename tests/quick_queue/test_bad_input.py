"""Damaged and hostile directories: each its own error, nothing lost, nothing made by readers."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import quire

PAGE = 256
COUNT = 100


@pytest.fixture
def single(tmp_path: Path) -> Path:
    with quire.quick_queue.open(tmp_path / "q", page_bytes=PAGE) as queue:
        queue.appender().write_many([b"message %d" % number for number in range(COUNT)])
    return tmp_path / "q"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    with quire.quick_queue.open(tmp_path / "m", page_bytes=PAGE) as queue:
        appenders = [queue.appender("AA0"), queue.appender("BB1")]
        for number in range(COUNT):
            appenders[number % 2].write_bytes(b"message %d" % number)
    return tmp_path / "m"


def read(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [*tailer.payloads()]


def tree(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def cut(file: Path, length: int) -> None:
    os.truncate(file, length)


def poke(file: Path, position: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(position)
        opened.write(data)


def entry(begin: int, length: int, name: bytes = bytes(3), flag: int = 0x7F) -> bytes:
    return struct.pack("<qi3sB", begin, length, name, flag)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "short index page": (lambda q: cut(q / "2.qx", 100), "another length"),
    "long index page": (lambda q: cut(q / "2.qx", 2 * PAGE), "another length"),
    "missing index page": (lambda q: (q / "2.qx").unlink(), "index page is missing"),
    "short data page": (lambda q: cut(q / "2.qd", 100), "another length"),
    "missing data page": (lambda q: (q / "2.qd").unlink(), "data page is missing"),
    "empty data page": (lambda q: cut(q / "2.qd", 0), "data page is missing"),
    "negative length": (lambda q: poke(q / "0.qx", 32, entry(0, -1)), "names no message"),
    "negative address": (lambda q: poke(q / "0.qx", 32, entry(-1, 9)), "names no message"),
    "address far away": (lambda q: poke(q / "0.qx", 32, entry(2**38, 9)), "data page is missing"),
    "address beyond all": (lambda q: poke(q / "0.qx", 32, entry(2**40, 9)), "names no message"),
    "a long way over pages": (
        lambda q: poke(q / "0.qx", 32, entry(0, 2**31 - 1)),
        "data page is missing",
    ),
    "a producer's name": (lambda q: poke(q / "0.qx", 32, entry(0, 9, b"0AA")), "no message"),
    "unknown flag": (lambda q: poke(q / "0.qx", 32, entry(0, 9, flag=1)), "names no message"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_an_error_and_the_rest_is_read(single: Path, damage: str) -> None:
    make, expected = DAMAGE[damage]
    make(single)
    before = tree(single)
    with quire.open(single, read_only=True) as queue, queue.tailer() as tailer:
        found: list[bytes] = []
        for _ in range(2):  # the position stays
            with pytest.raises(quire.errors.CorruptError, match=expected):
                found.extend(tailer.payloads())
        assert found == [b"message %d" % number for number in range(len(found))]
        assert tailer.index == 16 * len(found) < 16 * (COUNT - 1)
        assert tailer.move_to_index(16 * (COUNT - 1))
        assert tailer.read_bytes() == b"message 99"
        tailer.to_start()
        assert tailer.read_many(COUNT) == found
        with pytest.raises(quire.errors.CorruptError, match=expected):
            tailer.read_many(COUNT)
        tailer.to_start()
        if found:
            assert tailer.read_batch().num_rows == len(found)
        with pytest.raises(quire.errors.CorruptError, match=expected):
            tailer.read_batch()
    assert tree(single) == before


SHARED_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a name that leaves the queue": (
        lambda q: poke(q / "0.qmx", 32, entry(0, 9, b"/..")),
        "names no message",
    ),
    "no name": (lambda q: poke(q / "0.qmx", 32, entry(0, 9)), "names no message"),
    "a producer without data": (
        lambda q: poke(q / "0.qmx", 32, entry(0, 9, b"9ZZ")),
        "data page is missing",
    ),
    "a pending name that leaves the queue": (
        lambda q: poke(q / "0.qmx", 32, entry(0, 9, b"/..", 0)),
        "names no message",
    ),
    "data that is gone": (lambda q: shutil.rmtree(q / "AA0"), "data page is missing"),
    "missing index page": (lambda q: (q / "2.qmx").unlink(), "index page is missing"),
    "missing first index page": (lambda q: (q / "0.qmx").unlink(), "index page is missing"),
    "short index page": (lambda q: cut(q / "2.qmx", 100), "another length"),
    "missing data page": (lambda q: (q / "BB1/1.qd").unlink(), "data page is missing"),
    "short data page": (lambda q: cut(q / "BB1/1.qd", 100), "another length"),
}


@pytest.mark.parametrize("damage", SHARED_DAMAGE)
def test_damage_of_shared_queues(shared: Path, damage: str) -> None:
    make, expected = SHARED_DAMAGE[damage]
    make(shared)
    before = tree(shared)
    with pytest.raises(quire.errors.CorruptError, match=expected):
        read(shared)
    assert tree(shared) == before


def last_page(queue: Path, kind: str) -> Path:
    return max(queue.rglob(f"*.{kind}"), key=lambda file: int(file.stem))


@pytest.mark.parametrize("damage", ["missing", "empty", "short"])
@pytest.mark.parametrize("form", ["single", "shared"])
def test_a_writer_makes_no_page_in_place_of_a_lost_one(
    form: str, damage: str, request: pytest.FixtureRequest
) -> None:
    """A new page would turn the messages in it into zeros."""
    path: Path = request.getfixturevalue(form)
    producer = ["AA0"] if form == "shared" else []
    page = last_page(path / "".join(producer), "qd")
    if damage == "missing":
        page.unlink()
    else:
        cut(page, 0 if damage == "empty" else 100)
    expected = "another length" if damage == "short" else "data page is missing"
    before = tree(path)
    with (
        quire.open(path, format="quick-queue") as queue,
        pytest.raises(quire.errors.CorruptError, match=expected) as caught,
    ):
        queue.appender(*producer).write_bytes(b"after")
    assert caught.value.file == str(page)
    after = tree(path)
    assert {name: after[name] for name in before if name.endswith("qd")} == {
        name: data for name, data in before.items() if name.endswith("qd")
    }
    with pytest.raises(quire.errors.CorruptError, match=expected):
        read(path)


@pytest.mark.parametrize("form", ["single", "shared"])
def test_a_writer_goes_on_after_the_last_page_where_an_index_page_is_lost(
    form: str, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(form)
    kind, producer = ("qmx", ["AA0"]) if form == "shared" else ("qx", [])
    (path / f"2.{kind}").unlink()
    with quire.open(path, format="quick-queue") as queue, queue.appender(*producer) as appender:
        assert appender.write_bytes(b"after") == 16 * COUNT
        assert queue.tailer(start=16 * COUNT).read_bytes() == b"after"
    with pytest.raises(quire.errors.CorruptError, match="index page is missing"):
        read(path)


def test_no_link_is_followed(shared: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.move(shared / "AA0", outside)
    (shared / "AA0").symlink_to(outside)
    with pytest.raises(quire.errors.NotAQueueError, match="directory of a producer"):
        read(shared)
    with quire.open(shared) as queue, pytest.raises(quire.errors.NotAQueueError):
        queue.appender("AA0")  # type: ignore[arg-type, call-arg]
    index = shared / "0.qmx"
    shutil.move(index, outside / "index")
    index.symlink_to(outside / "index")
    with pytest.raises(quire.errors.NotAQueueError, match="symbolic link"):
        read(shared)


def test_a_dead_producers_entry_is_passed_over_once(
    shared: Path, caplog: pytest.LogCaptureFixture
) -> None:
    poke(shared / "0.qmx", 32, entry(0, 9, b"9ZZ", 0))
    expected = [b"message %d" % number for number in range(COUNT) if number != 2]
    before = tree(shared)
    assert read(shared) == expected
    assert caplog.text.count("producer=ZZ9 index=0x20") == 1
    with quire.open(shared, read_only=True) as queue:
        tailer = queue.tailer(on_dead="raise")  # type: ignore[call-arg]
        assert tailer.read_many(COUNT) == expected[:2]
        with pytest.raises(quire.errors.ProducerDiedError, match="producer=ZZ9") as died:
            tailer.read_many(COUNT)
        assert (died.value.producer, died.value.index) == ("ZZ9", 32)
        assert tailer.read_many(COUNT) == expected[2:]
    assert tree(shared) == before


@pytest.mark.parametrize("name", ["", "A", "AAAA", "A_^", "A/B", "..", "ÄÄÄ", "A\0A"])
def test_names_of_producers(tmp_path: Path, name: str) -> None:
    queue = quire.open(tmp_path, format="quick-queue")
    with pytest.raises(ValueError, match="3 ASCII letters or digits"):
        queue.appender(name)
    assert [file.name for file in tmp_path.iterdir()] == ["quick-queue.lock"]


@pytest.mark.parametrize("page_bytes", [0, 8, 15, 100, 4097, 2**31])
def test_page_sizes(tmp_path: Path, page_bytes: int) -> None:
    with pytest.raises(ValueError, match="page_bytes"):
        quire.quick_queue.open(tmp_path / "q", page_bytes=page_bytes)
    assert not [*tmp_path.iterdir()]


def test_a_page_of_an_odd_length_is_no_queue(tmp_path: Path) -> None:
    (tmp_path / "0.qx").write_bytes(bytes(100))
    with pytest.raises(quire.errors.CorruptError, match="power of two"):
        quire.open(tmp_path)
    (tmp_path / "0.qx").write_bytes(bytes(64))
    (tmp_path / "0.qd").write_bytes(bytes(128))
    with pytest.raises(quire.errors.CorruptError, match=r"found=128 expected=64 bytes, as .*0\.qx"):
        quire.open(tmp_path)


def test_a_directory_of_two_kinds_is_no_queue(single: Path, shared: Path) -> None:
    shutil.copy(single / "0.qx", shared)
    with pytest.raises(quire.errors.NotAQueueError, match="single writer"):
        quire.open(shared)
    (single / "metadata.cq4t").write_bytes(b"")
    with pytest.raises(quire.errors.NotAQueueError):
        quire.open(single, format="quick-queue")


def test_what_is_no_queue(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    for path in (file, tmp_path / "none", tmp_path):
        with pytest.raises(quire.errors.NotAQueueError):
            quire.open(path, format="quick-queue", read_only=True)
        if path != tmp_path / "none":
            continue
        with pytest.raises(quire.errors.NotAQueueError):
            quire.open(path, format="quick-queue", create=False)
    assert [*tmp_path.iterdir()] == [file]


def test_read_only_writes_nothing(shared: Path) -> None:
    before = tree(shared)
    with quire.open(shared, format="quick-queue", read_only=True) as queue:
        assert len(queue.tailer().read_many(1000)) == COUNT
        for write in (queue.appender, lambda: queue.appender("CC2"), queue.force):
            with pytest.raises(quire.errors.ReadOnlyError):
                write()
    assert tree(shared) == before


def test_other_kinds_of_writers_are_refused(single: Path, shared: Path) -> None:
    queue = quire.open(single, format="quick-queue")
    with pytest.raises(quire.errors.UnsupportedError, match=r"use queue\.appender\(\)"):
        queue.appender("AA0")
    queue = quire.open(shared, format="quick-queue")
    with pytest.raises(quire.errors.UnsupportedError, match=r'use queue\.appender\("AA0"\)'):
        queue.appender()


def test_a_lost_profile_overwrites_nothing(shared: Path) -> None:
    before = read(shared)
    for damage in (bytes(32), b"", struct.pack("<4q", 3, 2, 0, 0)):
        (shared / "AA0.qm").write_bytes(damage)
        with quire.open(shared, format="quick-queue") as queue, queue.appender("AA0") as appender:
            appender.write_bytes(b"message after")
        before.append(b"message after")
        assert read(shared) == before


def test_hostile_profiles_are_no_end_of_the_world(shared: Path) -> None:
    before = read(shared)
    for words in ((-1, -1, -1, -1), (2**62, 2**62, 17, 5), (2**63 - 1, 0, 2**63 - 16, 2**62)):
        (shared / "AA0.qm").write_bytes(struct.pack("<4q", *words))
        queue = quire.open(shared, format="quick-queue")
        with pytest.raises(quire.errors.CorruptError, match="beyond the queue"):
            queue.appender("AA0")
        assert read(shared) == before
