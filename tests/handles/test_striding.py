"""Tailers that stride: backward from one message that the index names to the one before."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from queues import DAY_MS


@pytest.fixture
def spaced(path: Path, clock: quire.ManualClock) -> quire.JournalQueue:
    """Two days of 10 and 21 messages, of which every eighth is in the index."""
    queue = quire.open(
        path,
        roll_cycle="TEST4_DAILY",
        clock=clock,
        block_bytes=2**16,
        layout=quire.LayoutOptions(index_spacing=8),
    )
    with queue.appender() as appender:
        for count in (10, 21):
            appender.write_many([b"%d" % number for number in range(count)])
            clock.advance(DAY_MS)
    return queue


def backward(queue: quire.JournalQueue) -> quire.JournalTailer:
    tailer = queue.tailer()
    tailer.direction, tailer.striding = "backward", True
    tailer.to_end()
    return tailer


VISITED = [b"20", b"16", b"8", b"0", b"9", b"8", b"0"]


def test_only_what_the_index_names_is_visited(spaced: quire.JournalQueue) -> None:
    with spaced:
        assert [*backward(spaced).payloads()] == VISITED
        assert backward(spaced).read_many(100) == VISITED
        assert [excerpt.data for excerpt in backward(spaced)] == VISITED


def test_documents_are_visited_the_same_way(spaced: quire.JournalQueue) -> None:
    visited: list[bytes] = []
    with spaced, backward(spaced) as tailer:
        for _ in VISITED:
            with tailer.reading_document() as document:
                visited.append(bytes(document.bytes))
        with tailer.reading_document() as document:
            assert not document.is_present

    assert visited == VISITED


def test_a_tailer_strides_from_where_it_is(spaced: quire.JournalQueue) -> None:
    with spaced, spaced.tailer() as tailer:
        assert not tailer.striding
        tailer.direction = "backward"
        assert tailer.move_to_index(spaced.roll_cycle.to_index(spaced.cycles[1], 19))
        assert tailer.read_many(2) == [b"19", b"18"]
        tailer.striding = True
        assert tailer.striding
        assert tailer.read_many(3) == [b"17", b"16", b"8"]
        tailer.striding = False
        assert tailer.read_many(3) == [b"0", b"9", b"8"]


def test_reads_forward_do_not_stride(spaced: quire.JournalQueue) -> None:
    with spaced, spaced.tailer() as tailer:
        tailer.striding = True
        assert len(tailer.read_many(100)) == 31


def test_a_tailer_that_let_go_strides_on(spaced: quire.JournalQueue) -> None:
    with spaced, backward(spaced) as tailer:
        for payload in VISITED:
            tailer.release_resources()
            assert tailer.read_bytes() == payload


def test_anything_but_a_bool_is_refused(spaced: quire.JournalQueue) -> None:
    with spaced, spaced.tailer() as tailer:
        with pytest.raises(TypeError, match="invalid striding: expected True or False, found str"):
            tailer.striding = "yes"  # type: ignore[assignment] # pyright: ignore[reportAttributeAccessIssue]
        tailer.close()
        with pytest.raises(quire.errors.ClosedError):
            tailer.striding = True
