"""How handles show themselves: path, state and position, without raising and without waiting."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Protocol

import pytest

import quire
from queues import exit_code, fork


class Greeter(Protocol):
    def say(self, text: str) -> None: ...


class Silent:
    def say(self, text: str) -> None: ...


def test_a_queue_shows_its_state(tmp_path: Path) -> None:
    path = tmp_path / "q"
    queue = quire.open(path)
    assert repr(queue) == f"JournalQueue({path}, roll_cycle=FAST_DAILY)"
    queue.close()
    assert repr(queue) == f"JournalQueue({path}, roll_cycle=FAST_DAILY, closed)"
    with quire.open(path, read_only=True) as queue:
        assert repr(queue) == f"JournalQueue({path}, roll_cycle=FAST_DAILY, read_only)"


def test_an_appender_shows_what_it_wrote_last(queue: quire.JournalQueue, path: Path) -> None:
    appender = queue.appender()
    assert appender.path == str(path)
    assert repr(appender) == f"JournalAppender({path}, nothing appended)"
    index = appender.write_bytes(b"x")
    assert repr(appender) == f"JournalAppender({path}, last_index_appended={index:#x})"
    appender.close()
    assert repr(appender) == f"JournalAppender({path}, last_index_appended={index:#x}, closed)"


def test_a_tailer_shows_what_it_reads_next(queue: quire.JournalQueue, path: Path) -> None:
    index = queue.appender().write_bytes(b"x")
    tailer, named = queue.tailer(), queue.tailer("risk")
    payloads = tailer.payloads()
    assert repr(tailer) == f"JournalTailer({path}, not started)"
    tailer.read()
    assert repr(tailer) == f"JournalTailer({path}, index={index + 1:#x})"
    assert repr(payloads) == f"Payloads({path}, index={index + 1:#x})"
    tailer.direction = "backward"
    assert "direction=backward" in repr(tailer)
    named.read()
    named.close()
    assert repr(named) == f"JournalTailer({path}, name='risk', index={index + 1:#x}, closed)"
    queue.close()
    assert repr(tailer).endswith(", closed)")


def test_documents_show_where_they_are(queue: quire.JournalQueue, path: Path) -> None:
    appender, tailer = queue.appender(), queue.tailer()
    with appender.writing_document() as document:
        document.write_bytes(b"abc")
        at = f"{path}, index={document.index:#x}"
        assert repr(document) == f"WriteDocument({at}, open, length=3)"
        assert repr(document.wire) == f"WireOut({document!r})"
        assert repr(document.raw) == f"RawOut({document!r})"
    assert repr(document) == f"WriteDocument({at}, closed)"
    with appender.writing_document() as dropped:
        dropped.rollback_on_close()
    assert repr(dropped) == f"WriteDocument({path}, dropped, closed)"
    with tailer.reading_document() as read:
        assert repr(read).startswith(f"ReadDocument({at}, ")
        assert repr(read.wire) == f"WireIn({read!r})"
        assert repr(read.raw) == f"RawIn({read!r})"
    assert repr(read) == f"ReadDocument({at}, closed)"
    with tailer.reading_document() as nothing:
        assert repr(nothing).endswith(", not present)")


def test_readers_writers_and_topics_show_their_queue(queue: quire.JournalQueue, path: Path) -> None:
    appender = queue.appender()
    reader = queue.tailer("calls").method_reader(Silent())
    assert repr(reader) == f"MethodReader({path}, name='calls', not started)"
    reader.close()
    assert repr(reader).endswith(", closed)")
    writer: Any = appender.method_writer(Greeter)
    assert repr(writer) == f"GreeterWriter({appender!r})"
    topic = appender.topic("EURUSD")
    assert repr(topic) == f"Topic({appender!r}, key='EURUSD', event='to')"


def test_a_service_shows_its_queues(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    quire.open(target).close()
    with quire.open(source, source_id=1) as queue:
        service = quire.service(inputs=[queue], output=target, handler=Echo)
        assert repr(service) == f"Service({target}, inputs={source}, replaying=False)"
        service.close()
        assert repr(service) == f"Service({target}, inputs={source}, closed)"


class Echo:
    def __init__(self, out: Greeter) -> None:
        self._out = out

    def say(self, text: str) -> None:
        self._out.say(text)


def test_what_acts_on_a_terminal_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2J\u202eb"
    with quire.open(path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        for handle in (queue, appender, tailer):
            assert repr(handle).isprintable()
            assert "\\x1b[2J\\u202eb" in repr(handle)


def test_handles_of_the_parent_say_that_they_were_forked(
    queue: quire.JournalQueue, path: Path
) -> None:
    appender, tailer = queue.appender(), queue.tailer("risk")
    appender.write_bytes(b"x")
    reading = tailer.reading_document()
    writing = appender.writing_document()

    def child() -> None:
        assert repr(queue) == f"JournalQueue({path}, roll_cycle={queue.roll_cycle.name}, forked)"
        assert repr(appender) == f"JournalAppender({path}, forked)"
        assert repr(tailer) == f"JournalTailer({path}, name='risk', forked)"
        assert repr(writing) == f"WriteDocument({path}, forked)"
        assert repr(reading).endswith(", forked)")

    try:
        assert exit_code(fork(child)) == 0
    finally:
        writing.rollback_on_close()
        writing.close()


@pytest.mark.parametrize("kind", ["appender", "tailer"])
def test_reprs_beside_a_busy_thread_never_fail(tmp_path: Path, kind: str) -> None:
    with quire.open(tmp_path) as queue:
        appender, tailer = queue.appender(), queue.tailer()
        handle = appender if kind == "appender" else tailer
        appender.write_many([b"x"] * 50_000)

        def work() -> None:
            if kind == "appender":
                appender.write_many([b"x"] * 200_000)
            while tailer.read_many(100):
                pass

        worker = threading.Thread(target=work)
        worker.start()
        shown = {repr(handle)}
        while worker.is_alive():
            shown.add(repr(handle))
        worker.join()
    assert all(each.startswith(f"Journal{kind.capitalize()}({tmp_path}, ") for each in shown)
