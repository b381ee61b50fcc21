"""
Documents of remote queues: written value by value, read value by value, and read backward.

What calls of methods do is tested where it is for queues at home: tests marked `remote`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from quire.errors import (
    ClosedError,
    IndexNotAvailableError,
    IndexOutOfRangeError,
    MessageTooLargeError,
    ServerLostError,
    UnsupportedError,
)
from quire.remote.metadata import Documents
from served import serving

DAY_MS = 86_400_000


class Say(Protocol):
    def say(self, text: str) -> None: ...


class Shout:
    def __init__(self, out: Say) -> None:
        self.out = out

    def say(self, text: str) -> None:
        self.out.say(text.upper())


def far(server: str, name: str = "", **options: Any) -> Any:  # noqa: ANN401 - any handle
    open_any: Any = quire.open
    return open_any(f"{server}/{name or uuid4().hex}", **options)


def test_a_document_is_appended_when_its_block_ends(server: str) -> None:
    with far(server) as queue, queue.appender() as appender, queue.tailer() as tailer:
        with appender.writing_document() as document:
            document.write("symbol", "EURUSD")
            document.wire.write("price", 1.1)
            document.reserve(2)[:] = b"\x8f\x8f"
            assert not document.is_metadata
            with pytest.raises(IndexNotAvailableError):
                _ = document.index
            assert tailer.read() is None
            assert appender.write_text("first") < queue.last_index + 1
        assert document.index == queue.last_index == appender.last_index_appended
        assert tailer.read_text() == "first"
        assert tailer.read_map() == {"symbol": "EURUSD", "price": 1.1}
        with pytest.raises(ClosedError):
            document.write("late", 1)


def test_after_an_exception_nothing_is_appended(server: str) -> None:
    with far(server) as queue, queue.appender() as appender:
        with pytest.raises(ZeroDivisionError), appender.writing_document() as document:
            document.write("n", 1 // 0)
        with appender.writing_document() as document:
            document.write("n", 2)
            document.rollback_on_close()
        del document
        appender.writing_document().write("n", 3)  # nobody closes it
        assert queue.last_index is None


def test_documents_at_home_and_remotely_are_the_same(server: str, tmp_path: Path) -> None:
    def write(appender: Any) -> None:  # noqa: ANN401 - any handle
        with appender.writing_document(metadata=True) as document:
            document.write_bytes(b"note")
        with appender.writing_document() as document:
            document.wire.write_event("trade")
            document.wire.write_value({"symbol": "EURUSD", "price": 1.1})
        with appender.writing_document() as document:
            document.raw.write_int32(7)
        with appender.writing_document():
            pass
        with appender.writing_document() as document:
            say = appender.method_writer(Say, document=document)
            say.say("one")
            say.say("two")
        appender.method_writer(Say, metadata=True).say("aside")

    for wire_type in ("BINARY", "FIELDLESS_BINARY"):
        with (
            quire.open(tmp_path / wire_type, wire_type=wire_type) as home,
            far(server, wire_type=wire_type) as queue,
        ):
            write(home.appender())
            write(queue.appender())
            written = home.tailer().read_many(10)
            assert queue.tailer().read_many(10) == written
            assert len(written) == 4


def test_a_document_that_is_too_long_is_refused(server: str) -> None:
    with (
        far(server, block_bytes=2**16) as queue,
        pytest.raises(MessageTooLargeError),
        queue.appender().writing_document() as document,
    ):
        document.reserve(2**20)


def test_a_closed_appender_begins_no_document(server: str) -> None:
    with far(server) as queue:
        appender = queue.appender()
        appender.close()
        with pytest.raises(ClosedError):
            appender.writing_document()


def test_a_document_whose_server_is_gone_is_not_appended(tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, process):
        queue = far(f"quire://127.0.0.1:{port}", "orders", timeout_s=0.5)
        appender = queue.appender()
        document = appender.writing_document()
        document.write("n", 1)
        process.terminate()
        process.wait()
        with pytest.raises(ServerLostError):
            document.close()
        with pytest.raises(ClosedError):
            _ = document.index
        queue.close()


def test_the_next_document_is_read_value_by_value(server: str) -> None:
    with far(server) as queue, queue.tailer() as tailer:
        with tailer.reading_document() as document:
            assert not document.is_present
        index = queue.appender().write_map({"n": 1, "text": "x"})
        queue.appender().write_text("next")
        with tailer.reading_document() as document:
            assert (document.is_present, document.index, tailer.index) == (True, index, index)
            assert document.wire.read("text") == "x"
            assert document.to_dict() == {"n": 1, "text": "x"}
            assert bytes(document.bytes) == queue.tailer().read_bytes()
            document.rollback_on_close()
        with pytest.raises(LookupError), tailer.reading_document():
            raise LookupError
        assert tailer.read_map() == {"n": 1, "text": "x"}
        with tailer.reading_document() as document:
            assert document.text() == "next"
        with tailer.reading_document() as document:
            assert not document.is_present


def documents(tailer: Any) -> list[tuple[int, bool, bytes]]:  # noqa: ANN401 - any handle
    """Read the documents that there are, with metadata."""
    found: list[tuple[int, bool, bytes]] = []
    while True:
        with tailer.reading_document(include_metadata=True) as document:
            if not document.is_present:
                return found
            found.append((document.index, document.is_metadata, bytes(document.bytes)))


def test_metadata_is_read_when_it_comes_between_messages(server: str) -> None:
    name = uuid4().hex
    with far(server, name) as queue, queue.appender() as appender, queue.tailer() as tailer:

        def note(text: bytes) -> None:
            with appender.writing_document(metadata=True) as document:
                document.write_bytes(text)

        first = appender.write_bytes(b"0")
        *files, message = documents(tailer)
        assert message == (first, False, b"0")
        assert files, "a file begins with metadata"
        assert all(is_metadata for _, is_metadata, _ in files)
        for _ in range(2):
            note(b"after 0")
            assert documents(tailer) == [(first + 1, True, b"after 0")]
        note(b"before 1")
        appender.write_bytes(b"1")
        note(b"after 1")
        with tailer.reading_document(include_metadata=True) as document:
            assert bytes(document.bytes) == b"before 1"
            document.rollback_on_close()
        assert (tailer.index, tailer.last_read_index) == (first + 1, first)
        assert documents(tailer) == [
            (first + 1, True, b"before 1"),
            (first + 1, False, b"1"),
            (first + 2, True, b"after 1"),
        ]
        appender.write_many([b"2", b"3"])
        assert tailer.read_bytes() == b"2"
        note(b"after 3")
        assert documents(tailer) == [(first + 3, False, b"3"), (first + 4, True, b"after 3")]
        assert tailer.move_to_index(first + 1)
        assert documents(tailer)[0] == (first + 1, False, b"1"), "what is before it is left out"
        tailer.direction = "backward"
        tailer.to_end()
        assert [data for _, _, data in documents(tailer)] == [b"3", b"2", b"1", b"0"]


def test_a_named_tailer_keeps_its_place_between_metadata(server: str) -> None:
    with far(server) as queue, queue.appender() as appender:
        for text in (b"0", b"1"):
            appender.write_bytes(text)
            with appender.writing_document(metadata=True) as document:
                document.write_bytes(b"note")
        with queue.tailer("noting") as tailer:
            documents(tailer)
        appender.write_bytes(b"2")
        with queue.tailer("noting") as tailer:
            assert tailer.read_many(9) == [b"2"]


def test_without_direction_the_same_message_comes_again(server: str) -> None:
    with far(server) as queue, queue.tailer() as tailer:
        tailer.direction = "none"
        assert tailer.direction == "none"
        assert tailer.read_bytes() is None
        queue.appender().write_many([b"0", b"1", b"2"])
        assert [tailer.read_bytes() for _ in range(3)] == [b"0"] * 3
        tailer.direction = "forward"
        assert tailer.read_many(2) == [b"0", b"1"]
        tailer.direction = "none"
        assert tailer.read_many(3) == [b"2"] * 3
        with tailer.reading_document() as document:
            assert bytes(document.bytes) == b"2"
        assert tailer.read_bytes() == b"2"


def test_history_passes_through_a_server(server: str, tmp_path: Path) -> None:
    with (
        far(server, source_id=1) as inputs,
        far(server, source_id=2) as output,
        quire.open(tmp_path / "home", source_id=3) as home,
    ):
        for text in ("one", "two", "three"):
            inputs.appender().method_writer(Say).say(text)
        tailer = inputs.tailer()
        reader = tailer.method_reader(Shout(output.appender().method_writer(Say)))
        assert reader.read_many(2) == 2
        last = output.tailer()
        last.move_to_index(output.last_index)
        assert last.history is None
        last.read()
        history: Any = last.history
        assert history.sources == ((1, inputs.first_index + 1),)

        for missed in (output, output.path):
            again = inputs.tailer()
            again.after_last_written(missed)
            assert again.index == inputs.last_index
        again.method_reader(Shout(home.appender().method_writer(Say)), replay="missed", output=home)
        assert again.index == inputs.first_index, "nothing of it is in that queue yet"
        with pytest.raises(ValueError, match="not the one that is read"):
            tailer.after_last_written(inputs)
        with pytest.raises(ValueError, match="source id"):
            far(server).tailer().after_last_written(output)
        home.appender().method_writer(Say).say("a source that is not there")
        with far(server, source_id=3) as other:
            home.tailer().method_reader(Shout(output.appender().method_writer(Say))).read_one()
            with pytest.raises(IndexOutOfRangeError, match="a missing message"):
                other.tailer().after_last_written(output)


def test_dead_letters_go_to_queues_here_and_there(server: str, tmp_path: Path) -> None:
    class Failing:
        def say(self, text: str) -> None:
            raise LookupError(text)

    with far(server) as queue, quire.open(tmp_path / "home") as home, far(server) as dead:
        queue.appender().method_writer(Say).say("bad")
        addressed = f"{server}/{uuid4().hex}"
        for place in (dead, dead.appender(), dead.path, addressed, home, tmp_path / "home"):
            reader = queue.tailer().method_reader(
                Failing(), on_error="dead_letter", dead_letter=place
            )
            assert reader.read_one()
        assert (dead.entry_count, home.entry_count) == (3, 2)
        assert far(server, addressed.rpartition("/")[2]).entry_count == 1
        letter = dead.tailer().read_map()
        assert (letter["queue"], letter["index"]) == (queue.path, queue.first_index)
        with pytest.raises(UnsupportedError, match="another server"):
            queue.tailer().method_reader(
                Failing(), on_error="dead_letter", dead_letter="quire://127.0.0.1:1/x"
            )


MOVES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["read", "note"])),
        st.tuples(st.just("go"), st.sampled_from(["to_start", "to_end"])),
        st.tuples(st.just("turn"), st.sampled_from(["forward", "backward", "none"])),
        st.tuples(st.just("documents"), st.integers(1, 4)),
        st.tuples(st.just("many"), st.integers(1, 12)),
        st.tuples(st.just("move"), st.integers(0, 9)),
        st.tuples(st.just("append"), st.integers(1, 3)),
    ),
    max_size=20,
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401 - of both handles
    """One queue of several cycles, opened here and through its server."""
    folder = tmp_path_factory.mktemp("both") / "queues"
    with serving(folder) as (port, _):
        clock = quire.ManualClock(DAY_MS)
        home = quire.open(folder / "turned", clock=clock, roll_cycle="FAST_DAILY")
        appender = home.appender()
        for day, count in ((1, 3), (2, 1), (4, 6)):
            clock.now_ms = day * DAY_MS
            appender.write_many(b"%d.%d" % (day, number) for number in range(count))
        with far(f"quire://127.0.0.1:{port}", "turned") as remote:
            yield home, appender, remote
        home.close()


def next_document(tailer: Any) -> tuple[int, bool, bytes] | None:  # noqa: ANN401 - any handle
    with tailer.reading_document(include_metadata=True) as document:
        if not document.is_present:
            return None
        return document.index, document.is_metadata, bytes(document.bytes)


class Pair:
    """Tailers of one queue, at home and of its server, that have to do the same."""

    def __init__(self, queue: Any, near: Any, distant: Any, appender: Any) -> None:  # noqa: ANN401
        self.near, self.distant, self.appender = near, distant, appender
        self.indexes = [it.index for it in queue.tailer()][:10]

    def each(self, name: str, *given: object) -> None:
        assert getattr(self.near, name)(*given) == getattr(self.distant, name)(*given)

    def read(self) -> None:
        self.each("read_bytes")

    def many(self, count: int) -> None:
        self.each("read_many", count)

    def move(self, number: int) -> None:
        known, past = self.indexes, number - len(self.indexes)
        self.each("move_to_index", known[number] if past < 0 else known[-1] + past + 1)

    def append(self, count: int) -> None:
        self.appender.write_many([b"more"] * count)

    def note(self) -> None:
        with self.appender.writing_document(metadata=True) as document:
            document.write_bytes(b"note")

    def documents(self, count: int) -> None:
        if self.near.direction == "forward":
            for _ in range(count):
                assert next_document(self.near) == next_document(self.distant)

    def turn(self, direction: Any) -> None:  # noqa: ANN401 - one of three
        was_backward = self.near.direction == "backward"
        for it in (self.near, self.distant):
            it.direction = direction
        if was_backward and direction != "backward" and self.near.state == "CYCLE_NOT_FOUND":
            self.near.to_start()  # beyond the start, Java's first read finds nothing

    def go(self, name: str) -> None:
        self.each(name)


@given(moves=MOVES)
def test_turning_reads_what_it_does_at_home(both: Any, moves: list[Any]) -> None:  # noqa: ANN401
    home, appender, remote = both
    with home.tailer() as near, remote.tailer() as distant:
        pair = Pair(home, near, distant, appender)
        for name, *given in moves:
            getattr(pair, name)(*given)
            assert near.last_read_index == distant.last_read_index


def test_a_message_that_comes_where_metadata_stood_is_read() -> None:
    answers = [[(6, True, b"note")], [(6, False, b"message")], [(6, False, b"message")]]
    documents = Documents(lambda *_: (7, answers.pop(0)), "orders", 6, is_read=False)
    for data in (b"note", b"message"):
        assert documents.next() == (6, data, data == b"note")
        documents.step()
    assert documents.next() is None


def test_many_and_long_messages_are_read_backward(server: str) -> None:
    with far(server) as queue, queue.tailer() as tailer:
        expected = [b"%d" % number for number in range(20_000)]
        expected += [bytes([number]) * (3 << 20) for number in range(1, 6)]
        queue.appender().write_many(expected)
        tailer.direction = "backward"
        tailer.to_end()
        assert [*tailer.payloads()] == expected[::-1]
        assert tailer.read_bytes() is None
        assert not tailer.spin(timeout_s=0)
        with pytest.raises(ValueError, match="direction"):
            tailer.direction = "up"


def test_a_named_tailer_keeps_its_place_backward(server: str) -> None:
    with far(server) as queue:
        first = queue.appender().write_bytes(b"0")
        queue.appender().write_many([b"1", b"2", b"3"])
        with queue.tailer("back") as tailer:
            tailer.direction = "backward"
            tailer.to_end()
            assert tailer.read_many(2) == [b"3", b"2"]
        assert queue.named_tailers() == [("back", first + 1)]
