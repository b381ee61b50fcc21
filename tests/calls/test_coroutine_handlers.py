"""Handlers that are coroutine functions: awaited in order, one message at a time."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import pytest

import quire
from event_loops import ticking, until

pytestmark = pytest.mark.remote


class Talk(Protocol):
    def say(self, text: str) -> None: ...
    def num(self, number: int) -> None: ...
    def to(self, name: str) -> Deliver: ...


class Deliver(Protocol):
    def deliver(self, text: str) -> None: ...


class Awaited(Protocol):
    async def deliver(self, text: str) -> None: ...


class Notes(Protocol):
    def note(self, text: str) -> None: ...


class Talker:
    """Notes when each call begins and ends."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: BaseException | None = None

    async def say(self, text: str) -> None:
        self.calls.append(f"begins {text}")
        await asyncio.sleep(0)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.calls.append(f"ends {text}")

    def num(self, number: int) -> None:
        self.calls.append(number)

    async def to(self, name: str) -> Awaited:
        await asyncio.sleep(0)
        return Box(name, self.calls)


class Box:
    def __init__(self, name: str, calls: list[Any]) -> None:
        self.name, self.calls = name, calls

    async def deliver(self, text: str) -> None:
        await asyncio.sleep(0)
        self.calls.append((self.name, text))


def read_until_end(tailer: quire.JournalTailer, *handlers: object, **options: Any) -> None:  # noqa: ANN401 - those of a reader
    asyncio.run(tailer.method_reader(*handlers, **options).arun(until=lambda: True))


def test_messages_are_handled_one_after_the_other(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    writer = appender.method_writer(Talk)
    writer.say("a")
    writer.num(1)
    writer.say("b")
    talker = Talker()
    read_until_end(queue.tailer(), talker)
    assert talker.calls == ["begins a", "ends a", 1, "begins b", "ends b"]


def test_the_events_of_one_document_are_handled_in_their_order(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with appender.writing_document() as document:
        writer = appender.method_writer(Talk, document=document)
        writer.num(1)
        writer.say("a")
        writer.num(2)
        writer.say("b")
        writer.to("x").deliver("c")
        writer.num(3)
    talker = Talker()
    reader = queue.tailer().method_reader(talker)
    assert asyncio.run(reader.aread_one())
    assert talker.calls == [1, "begins a", "ends a", 2, "begins b", "ends b", ("x", "c"), 3]
    assert not asyncio.run(reader.aread_one())


def test_a_chain_goes_on_with_what_a_coroutine_returned(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.method_writer(Talk).to("x").deliver("hello")
    talker = Talker()
    read_until_end(queue.tailer(), talker)
    assert talker.calls == [("x", "hello")]


def test_other_tasks_run_while_a_handler_waits(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    writer = appender.method_writer(Talk)
    writer.say("a")
    writer.num(1)

    async def main() -> list[Any]:
        talker = Talker()
        talker.gate.clear()
        reader = queue.tailer().method_reader(talker)
        async with ticking() as ticks, reader:
            task = asyncio.create_task(reader.arun())
            await ticks.more()
            assert talker.calls == ["begins a"]
            with pytest.raises(RuntimeError, match="still running: read with one task"):
                await reader.aread_one()
            with pytest.raises(RuntimeError, match="still running"):
                reader.read_one()
            talker.gate.set()
            await until(lambda: len(talker.calls) == 3)
            reader.close()
            await task
        return talker.calls

    assert asyncio.run(main()) == ["begins a", "ends a", 1]


def test_the_message_of_a_cancelled_handler_is_read_again(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.method_writer(Talk).say("a")
    talker = Talker()

    async def main() -> None:
        talker.gate.clear()
        async with queue.tailer("risk") as tailer:
            reader = tailer.method_reader(talker, on_error="skip")  # a cancellation is no error
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.arun(), 0.01)
            talker.gate.set()
            assert await reader.aread_one()

    asyncio.run(main())
    assert talker.calls == ["begins a", "begins a", "ends a"]
    assert queue.tailer("risk").read() is None


def test_the_message_of_a_handler_that_raises_is_read_again(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.method_writer(Talk).say("a")
    talker = Talker()
    talker.error = LookupError("no such order")
    tailer = queue.tailer()
    reader = tailer.method_reader(talker)
    with pytest.raises(LookupError, match="no such order"):
        asyncio.run(reader.aread_one())
    talker.error = None
    assert asyncio.run(reader.aread_one())
    assert talker.calls == ["begins a", "begins a", "ends a"]


def test_errors_of_coroutines_are_skipped_or_become_dead_letters(
    queue: quire.JournalQueue, appender: quire.JournalAppender, caplog: pytest.LogCaptureFixture
) -> None:
    writer = appender.method_writer(Talk)
    writer.say("a")
    writer.num(1)
    talker = Talker()
    talker.error = LookupError("no such order")
    read_until_end(queue.tailer(), talker, on_error="skip")
    assert talker.calls == ["begins a", 1]
    assert "a message that failed is skipped" in caplog.text

    with quire.open(f"{queue.path}-letters") as letters:
        read_until_end(queue.tailer(), talker, on_error="dead_letter", dead_letter=letters)
        letter = letters.tailer().read_map()
    assert letter is not None
    assert letter["error"] == "LookupError: no such order"
    assert letter["index"] == queue.first_index


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("read", ["read_one", "run"])
def test_reading_without_an_event_loop_refuses_a_coroutine(
    on_error: Any,  # noqa: ANN401 - of a literal type
    read: str,
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
) -> None:
    appender.method_writer(Talk).say("a")
    tailer = queue.tailer()
    reader = tailer.method_reader(Talker(), on_error=on_error)
    with pytest.raises(TypeError, match=r"arun\(\) or aread_one\(\): handler=Talker\.say"):
        getattr(reader, read)()
    assert tailer.read() is not None  # it is still there


def test_a_default_and_a_metadata_handler_may_be_coroutines(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    calls: list[Any] = []

    class Metadata:
        async def note(self, text: str) -> None:
            await asyncio.sleep(0)
            calls.append(text)

    async def default(name: str | int, value: Any) -> None:  # noqa: ANN401 - any value
        await asyncio.sleep(0)
        calls.append((name, value))

    appender.method_writer(Notes, metadata=True).note("meta")
    appender.write_map({"unknown": 1, "other": 2})
    read_until_end(queue.tailer(), Metadata(), metadata_handler=Metadata())
    read_until_end(queue.tailer(), default=default)
    assert calls == ["meta", ("unknown", 1), ("other", 2)]


def test_the_history_is_that_of_the_message_whenever_a_handler_runs(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    found: list[Any] = []

    def at_hand() -> list[int]:
        return [index for _, index in quire.MessageHistory.current().sources]

    class Handler:
        async def say(self, text: str) -> None:
            before = at_hand()
            await asyncio.sleep(0)
            found.append((text, before == at_hand(), before))

    writer = appender.method_writer(Talk)
    writer.say("a")
    writer.say("b")

    async def main() -> None:
        beside: list[int] = []
        readers = [queue.tailer().method_reader(Handler()) for _ in range(3)]

        async def look() -> None:
            while len(found) < 6:
                beside.extend(at_hand())
                await asyncio.sleep(0)

        runs = [reader.arun(until=lambda: True) for reader in readers]
        await asyncio.gather(look(), *runs)
        assert beside == []  # other tasks handle no message

    asyncio.run(main())
    first, last = queue.first_index, queue.last_index
    assert sorted(found) == sorted([("a", True, [first]), ("b", True, [last])] * 3)


def test_a_reader_that_is_closed_meanwhile_lets_the_handler_end(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    writer = appender.method_writer(Talk)
    writer.say("a")
    writer.say("b")

    async def main() -> list[Any]:
        talker = Talker()
        talker.gate.clear()
        reader = queue.tailer().method_reader(talker)
        async with ticking() as ticks:
            task = asyncio.create_task(reader.arun())
            await ticks.more()
            await reader.aclose()
            talker.gate.set()
            await task
        with pytest.raises(quire.errors.ClosedError):
            await reader.aread_one()
        return talker.calls

    assert asyncio.run(main()) == ["begins a", "ends a"]


@pytest.mark.parametrize("leave", ["close", "drop"])
def test_an_abandoned_coroutine_has_its_message_read_again(
    leave: str, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.method_writer(Talk).say("a")
    talker = Talker()
    talker.gate.clear()
    reader = queue.tailer().method_reader(talker)
    coroutine = reader.aread_one()
    coroutine.send(None)
    if leave == "close":
        coroutine.close()
    del coroutine
    talker.gate.set()
    assert asyncio.run(reader.aread_one())
    assert talker.calls == ["begins a", "begins a", "ends a"]
