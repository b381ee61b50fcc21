"""A damaged first header hides no message for good: what follows it proves what it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from damages import age, fill, lose_page, patch, spoil
from queues import START_MS, problems_of
from reference import Store, read_queue

COUNT = 300
FIRST_BYTES = 256


def flip(file: Path, bit: int) -> None:
    data = file.read_bytes()
    patch(file, bit // 8, bytes([data[bit // 8] ^ 1 << bit % 8]))


def read_all(path: Path) -> list[tuple[int, bytes]]:
    with (
        quire.open(path, read_only=True, wait=quire.WaitOptions(eof_grace_s=0.0)) as queue,
        queue.tailer() as tailer,
    ):
        return [(message.index, message.data) for message in tailer]


def found_from_outside(file: Path, places: dict[int, bytes]) -> int:
    """Count the messages that are still in a file, header and content, wherever a reader ends."""
    data = file.read_bytes()
    return sum(data[at : at + len(message)] == message for at, message in places.items())


def places_of(file: Path) -> dict[int, bytes]:
    store = Store(file.read_bytes())
    return {
        it.position: store.data[it.position : it.end]
        for it in store.documents
        if not it.is_metadata
    }


@pytest.mark.parametrize(
    ("days", "step"),
    [
        pytest.param(1, 1, marks=pytest.mark.slow),
        pytest.param(1, 11, marks=pytest.mark.slow),
        (2, 13),
    ],
    ids=["every bit", "alone", "with a neighbour"],
)
def test_no_bit_of_the_first_bytes_costs_a_message(
    path: Path, tmp_path: Path, days: int, step: int
) -> None:
    fill(path, days, COUNT)
    whole, name = read_queue(path), min(path.glob("*.cq4")).name
    places = places_of(path / name)
    for bit in range(0, FIRST_BYTES * 8, step):
        copy = tmp_path / f"copy-{bit}"
        shutil.copytree(path, copy)
        flip(copy / name, bit)
        assert found_from_outside(copy / name, places) == COUNT
        report = quire.repair(copy, dry_run=False)
        assert found_from_outside(copy / name, places) == COUNT, bit
        assert read_all(copy) == whole, (bit, report)
        assert quire.repair(copy, dry_run=False).actions == (), bit
        shutil.rmtree(copy)


@pytest.mark.parametrize("word", [0x400000D1, 0x400000C0, 0x400000E1, 0x40000081, 0xC1, 0x600000C1])
def test_a_first_header_is_restored(path: Path, word: int) -> None:
    (file,) = fill(path, 1, COUNT)
    whole = read_queue(path)
    before = file.read_bytes()
    patch(file, 0, word.to_bytes(4, "little"))
    (finding,) = quire.verify(path).findings
    assert (finding.kind, finding.severity) == ("lost-header", "error")
    report = quire.repair(path, dry_run=False)
    assert (report.ok, report.after.findings) == (True, ())
    assert file.read_bytes() == before
    assert read_all(path) == whole
    assert problems_of(path) == []


def fill_with_garbage(file: Path) -> None:
    patch(file, 4, b"\xff" * 0xC0)


@pytest.mark.parametrize("harm", [spoil, fill_with_garbage])
def test_a_header_of_garbage_is_restored(path: Path, harm: Callable[[Path], None]) -> None:
    (file,) = fill(path, 1, COUNT)
    whole = read_queue(path)
    harm(file)
    report = quire.repair(path, dry_run=False)
    assert report.ok, report.after.findings
    assert read_all(path) == read_queue(path) == whole
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_text("after")
    assert quire.verify(path).ok


@pytest.mark.parametrize("word", [0, 0x400000D1, 0xC00000C1])
def test_the_examination_after_a_restart_keeps_them_too(path: Path, word: int) -> None:
    (file,) = fill(path, 1, COUNT)
    whole = read_queue(path)
    patch(file, 0, word.to_bytes(4, "little"))
    age(file)
    with quire.open(path, clock=quire.ManualClock(START_MS)) as queue, queue.appender() as appender:
        appender.write_text("after")
    assert read_queue(path)[:COUNT] == whole
    assert not [*path.glob("*.discard")]


def test_a_header_without_proof_is_left_alone(path: Path) -> None:
    (file,) = fill(path, 1, COUNT)
    lose_page(file)
    before = file.read_bytes()
    report = quire.repair(path, dry_run=False)
    assert not report.ok
    assert file.read_bytes() == before
