"""Appends that had begun when a queue was closed to them, as for a handover."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

import quire
from pause_points import Party
from queues import payloads
from quire._native import BatchWriter
from quire.errors import AppendLockedError

WAIT_S: Final = 60.0
APPENDS: Final = """
way = sys.argv[2]
with quire.open(sys.argv[1]) as queue, queue.appender() as appender:
    if sys.argv[3] == "later":
        appender.write_bytes(b"before")  # by the way that waits for nothing
    arm()
    try:
        if way == "bytes":
            appender.write_bytes(b"late")
        elif way == "many":
            appender.write_many([b"late", b"later"])
        else:
            with appender.writing_document(metadata=way == "metadata") as document:
                document.write("late", 1)
        say("appended")
    except quire.errors.AppendLockedError as error:
        say("locked")
"""


def payloads_of(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue:
        return payloads(queue)


@pytest.mark.parametrize("first", ["first", "later"])
@pytest.mark.parametrize("way", ["bytes", "many", "document", "metadata"])
def test_one_that_waits_for_the_write_lock_finds_the_queue_closed(
    path: Path, way: str, first: str
) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_bytes(b"one")
        with Party(APPENDS, path, way, first, point="lock.take.cas") as party:
            party.wait_until_stopped()
            with quire.open(path) as sink, BatchWriter(sink) as writer:
                writer.settle()
                end = writer.end
                party.go_on()
                assert party.result() == ["locked"]
                writer.settle()
                assert writer.end == end
                writer.promote()
            appender.write_bytes(b"two")  # it left no lock
        assert payloads(queue)[-1] == b"two"
        assert b"late" not in payloads(queue)


@pytest.mark.parametrize("is_empty", [True, False])
def test_one_that_has_begun_is_waited_for(path: Path, is_empty: bool) -> None:  # noqa: FBT001
    with quire.open(path) as queue, queue.appender() as appender:
        if not is_empty:
            appender.write_bytes(b"one")
    with Party(APPENDS, path, "bytes", "first", point="publish.header.cas") as party:
        party.wait_until_stopped()
        with quire.open(path) as sink, BatchWriter(sink) as writer, ThreadPoolExecutor(1) as other:
            before = writer.end
            settled = other.submit(writer.settle)
            assert not settled.done()
            party.go_on()
            settled.result(WAIT_S)
            assert party.result() == ["appended"]
            assert writer.end != before
            writer.promote()
    assert payloads_of(path)[-1] == b"late"


def test_a_replicated_tailer_stores_nothing_in_what_became_a_replica(path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for text in ("one", "two", "three"):
            appender.write_text(text)
        with queue.tailer("replicated:x") as tailer:
            assert tailer.read_text() == "one"
            with quire.open(path) as sink, BatchWriter(sink) as writer:
                before = dict(queue.table_entries())
                with pytest.raises(AppendLockedError):
                    tailer.read_text()
                after = dict(queue.table_entries())
                writer.promote()
            assert {it: after[it] for it in after if "replicated" in it} == {
                it: before[it] for it in before if "replicated" in it
            }
            assert tailer.read_text() == "two"
