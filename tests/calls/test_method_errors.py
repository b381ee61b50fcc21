"""Messages that fail, handlers that fail, and readers that could not work."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import quire
from queues import START_MS
from talk import SAY, Talk, Talker, read_all

pytestmark = pytest.mark.remote


class Failing(Talker):
    """Fails at one text."""

    def say(self, text: str) -> None:
        super().say(text)
        if text == "bad":
            raise LookupError(f"not {text}")


@pytest.mark.local("a position is stored after each message")
def test_an_error_is_raised_and_its_message_read_again(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    writer = appender.method_writer(Talk)
    for text in ("a", "bad", "b"):
        writer.say(text)
    failing = Failing()
    with queue.tailer("named") as tailer:
        reader = tailer.method_reader(failing)
        read = [True]
        while read[-1]:
            try:
                read.append(reader.read_one())
            except LookupError:
                if len(failing.calls) == 4:
                    break
        bad = list(queue.tailer())[1].index
        assert tailer.index == bad
        assert queue.table_value("index.named") == bad, "what was not done is not stored as done"

    assert failing.calls == [("say", "a"), ("say", "bad"), ("say", "bad"), ("say", "bad")]
    with queue.tailer("named") as tailer:
        assert tailer.read_bytes() == b"\xb9\3say\xe3bad"


BAD_PAYLOADS = [
    (b"\xb9\3num\xe1x", "field=num.number .* found=.*x"),
    (b"\xb9\3say\xe5ab", r"field=say.text"),
    (b"\xb9\3say\x8b", "field=say.text .*U16_ARRAY"),
    (b"\xb9\3say", "field=say.text expected=an argument found=the end"),
    (b"\xb9\3two\xa1\1", "field=two expected=a list of arguments found=0xa1"),
    (b"\xb9\3two\x82\2\0\0\0\xe1a", "field=two.number expected=an argument found=the end"),
    (SAY + b"a\xa1\1", "expected=a name found=0xa1"),
    (b"\xb9\x07history\xa1\1", "field=history"),
    (b"\xba\x80\0\x81\4\0\x86\2\0\0", "field=history"),
    (b"\xb9\5other\x82\xff\xff\xff\x7f", "offset="),
]


@pytest.mark.local("its place is a file")
@pytest.mark.parametrize(("payload", "text"), BAD_PAYLOADS)
def test_a_message_that_does_not_decode_names_its_place_and_stays(
    queue: quire.JournalQueue, appender: quire.JournalAppender, payload: bytes, text: str
) -> None:
    class Two(Talker):
        def two(self, text: str, number: int) -> None:
            raise AssertionError(text, number)

    index = appender.write_bytes(payload)
    tailer = queue.tailer()
    reader = tailer.method_reader(Two())
    for _ in range(2):
        with pytest.raises(quire.errors.WireError, match=text) as caught:
            read_all(reader)
        assert f" index={index:#x} file={queue.path}" in str(caught.value)
        assert " position=0x" in str(caught.value)
        assert tailer.index == index


def test_an_error_may_be_skipped(
    queue: quire.JournalQueue, appender: quire.JournalAppender, caplog: pytest.LogCaptureFixture
) -> None:
    writer = appender.method_writer(Talk)
    for text in ("bad", "a"):
        writer.say(text)
    index = appender.write_bytes(BAD_PAYLOADS[0][0])
    failing = Failing()
    with caplog.at_level(logging.WARNING, "quire"):
        read_all(queue.tailer().method_reader(failing, on_error="skip"))

    assert failing.calls == [("say", "bad"), ("say", "a")]
    assert "error=LookupError: not bad" in caplog.text
    assert f"skipped: index={index:#x} error=WireError: " in caplog.text


def test_an_error_may_go_to_the_dead_letters(
    tmp_path: Path, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    writer = appender.method_writer(Talk)
    writer.say("bad")
    writer.say("a")
    failing = Failing()
    with quire.open(tmp_path / "dead", clock=quire.ManualClock(START_MS)) as dead:
        read_all(queue.tailer().method_reader(failing, on_error="dead_letter", dead_letter=dead))
        [letter] = [dead.tailer().read_map()]

    assert failing.calls == [("say", "bad"), ("say", "a")]
    assert letter == {
        "index": next(queue.tailer()).index,
        "queue": queue.path,
        "error": "LookupError: not bad",
        "payload": b"\xb9\3say\xe3bad",
    }


@pytest.mark.local("the queue's path is one of this machine")
def test_dead_letters_have_paths_and_errors_that_are_not_utf8_escaped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="quire")  # no report can hold the text of this error

    class Opening(Talker):
        def say(self, text: str) -> None:
            raise LookupError(text + os.fsdecode(b" \xff"))

    path = os.fsdecode(os.fsencode(tmp_path) + b"/odd \xff")
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock) as queue, quire.open(tmp_path / "dead", clock=clock) as dead:
        queue.appender().method_writer(Talk).say("a")
        read_all(queue.tailer().method_reader(Opening(), on_error="dead_letter", dead_letter=dead))
        letter = dead.tailer().read_map()

    assert letter is not None
    assert letter["queue"] == f"{tmp_path}/odd \\udcff"
    assert letter["error"] == "LookupError: a \\udcff"


@pytest.mark.local("the path is one of this machine")
@pytest.mark.parametrize("kind", ["vanilla", "quick-queue"])
def test_a_queue_of_another_format_takes_no_dead_letters(
    tmp_path: Path, queue: quire.JournalQueue, kind: str
) -> None:
    path = tmp_path / "other"
    with quire.open(path, format=kind) as other, other.appender() as appender:  # type: ignore[call-overload]
        appender.write_bytes(b"a")
    before = sorted(path.iterdir())
    with pytest.raises(quire.errors.NotAQueueError, match=f"another format .* format={kind}"):
        queue.tailer().method_reader(Failing(), on_error="dead_letter", dead_letter=path)

    assert sorted(path.iterdir()) == before


def test_a_dead_letter_that_cannot_be_written_leaves_the_message(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.method_writer(Talk).say("bad")
    dead = queue.appender()
    tailer = queue.tailer()
    reader = tailer.method_reader(Failing(), on_error="dead_letter", dead_letter=dead)
    dead.close()
    with pytest.raises(quire.errors.ClosedError):
        read_all(reader)

    assert tailer.index == next(queue.tailer()).index


@pytest.mark.parametrize("on_error", ["skip", "dead_letter"])
def test_an_interrupt_is_never_dealt_with(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    on_error: Literal["skip", "dead_letter"],
) -> None:
    class Interrupted:
        def say(self, text: str) -> None:
            raise KeyboardInterrupt(text)

    appender.method_writer(Talk).say("a")
    tailer = queue.tailer()
    dead_letter = appender if on_error == "dead_letter" else None
    reader = tailer.method_reader(Interrupted(), on_error=on_error, dead_letter=dead_letter)
    with pytest.raises(KeyboardInterrupt):
        read_all(reader)

    assert tailer.index == next(queue.tailer()).index


class Coroutine:
    async def say(self, text: str) -> None: ...


class Variable:
    def say(self, *texts: str) -> None: ...


class OnlySay:
    def say(self, text: str) -> None: ...


class Unencoded:
    def say(self, text: complex) -> None: ...


class TwoIds:
    @quire.calls.method_id(7)
    def one(self) -> None: ...
    @quire.calls.method_id(7)
    def two(self) -> None: ...


BAD_READERS: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (lambda tailer: tailer.method_reader(), TypeError, "needs a handler"),
    (lambda tailer: tailer.method_reader(5), TypeError, "no method: handler=5"),
    (
        lambda tailer: tailer.method_reader(OnlySay(), filter=Coroutine().say),
        TypeError,
        "filter .* coroutine function",
    ),
    (lambda tailer: tailer.method_reader(Variable()), TypeError, "handler=Variable method=say"),
    (lambda tailer: tailer.method_reader(Unencoded()), TypeError, "complex.* parameter=text"),
    (lambda tailer: tailer.method_reader(TwoIds()), TypeError, "method_id=7"),
    (
        lambda tailer: tailer.method_reader(OnlySay(), interface=Talk),
        TypeError,
        "lacks a method: .* method=num",
    ),
    (
        lambda tailer: tailer.method_reader(Talker(), on_error="ignore"),
        ValueError,
        "invalid on_error=.ignore.: expected",
    ),
    (
        lambda tailer: tailer.method_reader(Talker(), on_error="dead_letter"),
        ValueError,
        "on_error=dead_letter dead_letter=None",
    ),
]


@pytest.mark.parametrize(("make", "error", "text"), BAD_READERS)
def test_a_reader_that_could_not_work_is_refused_at_once(
    tailer: quire.JournalTailer,
    make: Callable[[Any], object],
    error: type[Exception],
    text: str,
) -> None:
    with pytest.raises(error, match=text):
        make(tailer)
