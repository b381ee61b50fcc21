"""The history in messages: read, followed back, and used to go on where a reader stopped."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import quire
from paths import GOLDEN
from queues import START_MS, copy_of
from quire import MessageHistory
from talk import Say

pytestmark = pytest.mark.remote

JAVA = GOLDEN / "java-5.27ea11"
FIELDS = (
    "b907686973746f7279812b00c7736f7572636573820b000000a101af02000000db4c0000"
    "c774696d696e67738206000000a55704a5ae08"
)


def packed(sources: list[tuple[int, int]], timings: list[int]) -> bytes:
    """Build the packed event from the page that describes it, by hand."""
    body = bytes([0x86, len(sources)])
    body += b"".join(source.to_bytes(4, "little") for source, _ in sources)
    body += b"".join(index.to_bytes(8, "little") for _, index in sources)
    body += bytes([len(timings)]) + b"".join(time.to_bytes(8, "little") for time in timings)
    return b"\xba\x80\x00\x81" + len(body).to_bytes(2, "little") + body


def test_the_history_of_each_message_of_java_is_read(tmp_path: Path) -> None:
    path = copy_of(JAVA / "c_methods_history", tmp_path / "copy")
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert tailer.history is None
        found = [tailer.history for _ in tailer]

    first = 1_700_000_000_000_000_000
    source = (9, 0x4D0500000001)
    assert found[:23] == [MessageHistory((), (first + 1000 * n,)) for n in range(1, 24)]
    assert found[23:] == [
        MessageHistory((source,), (first + 24_000, first + 25_000)),
        MessageHistory((source,), (first + 24_000, first + 26_000)),
    ]


def test_the_history_is_that_of_the_message_read_last(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_bytes(bytes.fromhex(FIELDS) + b"\xb9\x01a\xa1\x01")
    appender.write_text("without")
    appender.write_bytes(packed([(1, 7), (2, 8)], [5, 6, 7]) + b"\xb9\x01a\xa1\x01")

    tailer.read_bytes()
    assert tailer.history == MessageHistory(((1, 0x4CDB00000002),), (1111, 2222))
    tailer.read_many(1)
    assert tailer.history is None
    with tailer.reading_document() as document:
        assert document.is_present
    assert tailer.history == MessageHistory(((1, 7), (2, 8)), (5, 6, 7))
    tailer.to_start()
    assert tailer.history == MessageHistory(((1, 7), (2, 8)), (5, 6, 7)), "a move reads nothing"


@pytest.mark.local("its place is a file")
def test_a_history_that_does_not_decode_names_its_message(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    index = appender.write_bytes(packed([(1, 7)], [5])[:-3] + b"\xa1")
    tailer.read_bytes()

    with pytest.raises(
        quire.errors.WireError, match=f"history.* index={index:#x} file=.*position="
    ):
        _ = tailer.history


def test_a_history_is_a_value() -> None:
    history = MessageHistory(((1, 0x4CDB00000000),), (1, 2))

    assert repr(history) == "MessageHistory(sources=((1, 0x4cdb00000000),), timings=(1, 2))"
    assert repr(MessageHistory()) == "MessageHistory(sources=(), timings=())"
    assert repr(MessageHistory([(1, 2), (3, 4)])).endswith("((1, 0x2), (3, 0x4)), timings=())")
    assert pickle.loads(pickle.dumps(history)) == history
    assert hash(history) == hash(MessageHistory([(1, 0x4CDB00000000)], [1, 2]))
    assert history != MessageHistory(history.sources, (1, 3))
    assert eval(repr(history), {"MessageHistory": MessageHistory}) == history  # noqa: S307
    with pytest.raises(AttributeError):
        history.sources = ()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def open_source(path: Path, source_id: int) -> quire.JournalQueue:
    return quire.open(path, source_id=source_id, clock=quire.ManualClock(START_MS))


def test_a_tailer_skips_what_its_output_has_seen(tmp_path: Path) -> None:
    with open_source(tmp_path / "in", 1) as source, open_source(tmp_path / "out", 2) as output:
        with source.appender() as appender:
            indexes = [appender.write_text(f"{n}") for n in range(5)]
        tailer = source.tailer()
        tailer.after_last_written(output)
        assert tailer.read_text() == "0", "nothing seen yet: from the start"

        with output.appender() as appender:
            appender.write_bytes(packed([(1, indexes[1])], [1, 2, 3]) + b"\xb9\x01a\xa1\x01")
            appender.write_bytes(packed([(1, indexes[4]), (7, 99)], [1]) + b"\xb9\x01a\xa1\x01")
            appender.write_text("of nobody")
        tailer.after_last_written(output)

        assert [excerpt.index for excerpt in tailer] == indexes[2:]


def test_after_the_last_message_comes_the_next_one(tmp_path: Path) -> None:
    with open_source(tmp_path / "in", 1) as source, open_source(tmp_path / "out", 2) as output:
        index = source.appender().write_text("seen")
        output.appender().write_bytes(packed([(1, index)], [1]))
        tailer = source.tailer()
        tailer.after_last_written(output)

        assert tailer.read() is None
        source.appender().write_text("new")
        assert tailer.read_text() == "new"


def test_a_place_that_cannot_be_told_is_an_error(tmp_path: Path) -> None:
    with (
        open_source(tmp_path / "in", 1) as source,
        open_source(tmp_path / "out", 2) as output,
        open_source(tmp_path / "nameless", 0) as nameless,
    ):
        with pytest.raises(ValueError, match=r"source_id=0 path=.*nameless"):
            nameless.tailer().after_last_written(output)
        with pytest.raises(ValueError, match="not the one that is read"):
            source.tailer().after_last_written(source)
        at = output.appender().write_bytes(packed([(1, 0x4D0500000007)], [1]))
        with pytest.raises(
            quire.errors.IndexOutOfRangeError, match=f"index=0x4d0500000007 .* named_by={at:#x}"
        ):
            source.tailer().after_last_written(output)


def test_a_history_that_would_be_too_long_is_not_written(tmp_path: Path) -> None:
    class Out:
        def __init__(self, to: Say) -> None:
            self.to = to

        def say(self, text: str) -> None:
            self.to.say(text)

    sources = [(1, n) for n in range(126)]
    with open_source(tmp_path / "in", 1) as source, open_source(tmp_path / "out", 2) as output:
        appender = source.appender()
        appender.write_bytes(packed(sources, []) + b"\xb9\3say\xe1a")
        long = appender.write_bytes(packed(sources + sources[:2], []) + b"\xb9\3say\xe1b")
        tailer = source.tailer()
        reader = tailer.method_reader(Out(output.appender().method_writer(Say)))

        assert reader.read_one()
        with pytest.raises(
            quire.errors.WireError, match="too long: sources=129 timings=2 limit=128"
        ):
            reader.read_one()
        assert tailer.index == long
        outputs = output.tailer()
        assert len(list(outputs)) == 1
        history = outputs.history
        assert history is not None
        assert len(history.sources) == 127
