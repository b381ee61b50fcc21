"""Method readers: messages become calls of handlers."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from golden_calls import JAVA, Calls, Dto, make_calls, recorder
from queues import START_MS, copy_of, payloads
from quire.calls.method_reader import MethodReader
from talk import SAY, Call, Talk, Talker, read_all

pytestmark = pytest.mark.remote


@pytest.mark.parametrize("name", ["c_methods", "c_methods_history"])
def test_calls_that_java_wrote_are_made(tmp_path: Path, name: str) -> None:
    made: list[Call] = []
    make_calls(recorder(Calls, lambda *call: made.append(call)))
    found: list[Call] = []

    with quire.open(copy_of(JAVA / name, tmp_path / "copy"), read_only=True) as queue:
        reader = queue.tailer().method_reader(recorder(Calls, lambda *call: found.append(call)))
        assert read_all(reader) == len(list(queue.tailer()))

    more = [("strArg", "with source"), ("via", "x"), ("done", "y")] if "history" in name else []
    assert found == made + more


def test_a_handler_sees_the_history_that_is_to_be_carried_on(tmp_path: Path) -> None:
    seen: list[quire.MessageHistory] = []
    handler = recorder(Calls, lambda *_: seen.append(quire.MessageHistory.current()))
    path = copy_of(JAVA / "c_methods_history", tmp_path / "copy")
    with quire.open(path, read_only=True) as queue:
        tailer = queue.tailer()
        reader = tailer.method_reader(handler)
        for index in (excerpt.index for excerpt in queue.tailer()):
            seen.clear()
            assert reader.read_one()
            history = tailer.history
            assert history is not None
            assert {it.sources for it in seen} == {(*history.sources, (5, index))}
            [timings] = {it.timings for it in seen}
            assert timings[:-1] == history.timings
            assert timings[-1] > 0

    assert quire.MessageHistory.current() == quire.MessageHistory()


def test_events_of_one_document_are_handled_in_their_order(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    talker = Talker()
    reader = tailer.method_reader(talker)
    appender.write_bytes(SAY + b"a" + b"\xb9\x03num\xa5\x39\x30" + SAY + b"b")

    assert reader.read_one()
    assert not reader.read_one()
    assert talker.calls == [("say", "a"), ("num", 12345), ("say", "b")]


@pytest.mark.parametrize(
    ("payload", "calls"),
    [
        (b"\xc3say\xe1a", [("say", "a")]),  # a field name
        (b"\xb7\x03say\xe1a", [("say", "a")]),
        (b"\xbe\x02hi" + SAY + b"a", [("say", "a")]),  # a comment in front
        (b"\x8f\x8f" + SAY + b"a\x8f", [("say", "a")]),  # padding
        (b"\xb9\x04none", [("none",)]),  # no value at all
        (b"\xb9\x04none\xe0", [("none",)]),
        (b"\xb9\x04none\x82\x02\0\0\0\xa1\1", [("none",)]),  # more than it takes
        (b"\xb9\x04none" + SAY + b"a", [("none",), ("say", "a")]),
        (b"\xb9\x03num\xa7\x05\0\0\0\0\0\0\0", [("num", 5)]),  # of another width
        (b"\xb9\x03num\xe15", [("num", 5)]),  # a text
        (b"\xb9\x03say\xa1\5", [("say", "5")]),  # a number
        (b"\xb9\x05other\x82\x02\0\0\0\xa1\1" + SAY + b"a", [("say", "a")]),  # nobody's
        (b"\xb9\x05other", []),
        (b"\xba\x63\xa1\1" + SAY + b"a", [("say", "a")]),  # a number nobody has
        (b"\xbd\xa1\1\xa1\2" + SAY + b"a", [("say", "a")]),  # a key that is no name
        (b"\xe5hello", []),  # no call at all
        (b"\x8f", []),
    ],
)
def test_what_a_document_may_hold(
    appender: quire.JournalAppender, tailer: quire.JournalTailer, payload: bytes, calls: list[Call]
) -> None:
    talker = Talker()
    reader = tailer.method_reader(talker)
    appender.write_bytes(payload)

    assert reader.read_one()
    assert not reader.read_one()
    assert talker.calls == calls


def test_metadata_is_passed_over_unless_somebody_handles_it(queue: quire.JournalQueue) -> None:
    talker, metadata = Talker(), Talker()
    with queue.appender() as appender:
        appender.method_writer(Talk, metadata=True).say("meta")
        appender.method_writer(Talk).say("data")

    plain = queue.tailer().method_reader(talker)
    with_metadata = queue.tailer().method_reader(talker, metadata_handler=metadata)

    assert read_all(plain) == 1
    assert read_all(with_metadata) > 2, "a file begins with metadata"
    assert talker.calls == [("say", "data")] * 2
    assert metadata.calls == [("say", "meta")]


def test_a_scan_reads_on_until_something_was_handled(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    writer = appender.method_writer(Talk)
    for number in range(5):
        writer.num(number)
        appender.method_writer(Talk, metadata=True).num(9)
    writer.say("found")
    writer.num(6)

    class OnlySay:
        def say(self, text: str) -> None:
            found.append(text)

    found: list[str] = []
    tailer = queue.tailer()
    reader = tailer.method_reader(OnlySay(), scanning=True)

    assert reader.read_one()
    assert found == ["found"]
    assert tailer.last_read_index == list(queue.tailer())[5].index
    assert not reader.read_one()
    assert found == ["found"]


def test_what_nobody_handles_goes_to_the_default(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    others: list[Call] = []
    talker = Talker()
    reader = tailer.method_reader(talker, default=lambda name, value: others.append((name, value)))
    appender.write_map({"say": "a", "other": {"k": [1, 2]}, "none": ""})
    appender.write_bytes(b"\xba\x63\xa1\1\xb9\5alone")

    assert read_all(reader) == 2
    assert talker.calls == [("say", "a"), ("none",)]
    assert others == [("other", {"k": [1, 2]}), (0x63, 1), ("alone", None)]


def test_a_filter_keeps_calls_from_the_handler(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    @quire.message(alias="filter.Order")
    @dataclass
    class Order:
        price: float

    class Orders:
        def order(self, symbol: str, order: Order) -> None:
            made.append((symbol, order))

        def end(self) -> None:
            made.append(("end",))

    def is_wanted(name: str, first: object) -> bool:
        asked.append((name, first))
        return first in ("yes", None)

    made: list[Call] = []
    asked: list[Call] = []
    reader = tailer.method_reader(Orders(), filter=is_wanted)
    not_an_order = b"\xb9\x05order\x82\x06\0\0\0\xe2no\x8b\0\0"
    appender.write_bytes(not_an_order + b"\xb9\x03end\xe0")
    appender.write_bytes(b"\xb9\x05order\x82\x12\0\0\0\xe3yes\x82\x09\0\0\0\xc5price\x92\x96\x01")

    read_all(reader)
    assert made == [("end",), ("yes", Order(1.5))]
    assert asked == [("order", "no"), ("end", None), ("order", "yes")]


def test_arguments_may_be_missing_where_there_is_a_default(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    class Orders:
        def order(self, symbol: str = "?", price: float = 1.5, count: int = 7) -> None:
            made.append((symbol, price, count))

        def one(self, value: int = 3) -> None:
            made.append((value,))

    made: list[Call] = []
    reader = tailer.method_reader(Orders())
    appender.write_bytes(b"\xb9\5order\xb9\3one")
    appender.write_bytes(b"\xb9\5order\x82\2\0\0\0\xe1x\xb9\3one\xa1\5")
    appender.write_bytes(b"\xb9\5order\x82\x08\0\0\0\xe1x\xa1\1\xa1\5\xa1\6")

    read_all(reader)
    assert made == [("?", 1.5, 7), (3,), ("x", 1.5, 7), (5,), ("x", 1.0, 5)]


def test_types_come_from_the_class_a_handler_derives_from_or_the_interface(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    class Derived(Talk):
        def num(self, number):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            made.append(number)

        def say(self, text: str) -> None: ...
        def none(self) -> None: ...

    class Loose:
        def num(self, number):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
            made.append(number)  # pyright: ignore[reportUnknownArgumentType]

        def say(self, text: str) -> None:
            made.append(text)

        none = helper = say

    made: list[object] = []
    appender.write_bytes(b"\xb9\3num\xe15\xb9\6helper\xe1x")
    for handler, interface in ((Derived(), None), (Loose(), Talk), (Loose(), None)):
        tailer.to_start()
        tailer.method_reader(handler, interface=interface).read_one()

    assert made == [5, 5, "5", "x"]


def test_of_several_handlers_the_first_that_has_the_method_is_called(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    class OnlySay:
        def say(self, text: str) -> None:
            made.append(text)

    made: list[str] = []
    talker = Talker()
    writer = appender.method_writer(Talk)
    writer.say("a")
    writer.num(1)

    read_all(tailer.method_reader(OnlySay(), talker))
    assert made == ["a"]
    assert talker.calls == [("num", 1)]


def test_what_a_handler_returns_handles_the_next_event(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    class Destination(Protocol):
        def deliver(self, text: str) -> None: ...
        @quire.calls.method_id(9)
        def hop(self, name: str) -> Destination: ...

    class Place:
        def __init__(self, name: str) -> None:
            self.name = name

        def deliver(self, text: str) -> None:
            made.append((self.name, text))

        def hop(self, name: str) -> Destination:
            return Place(f"{self.name}/{name}")

    class Router:
        def to(self, name: str) -> Destination | None:
            return Place(name) if name else None

        def deliver(self, text: str) -> int:
            made.append(("router", text))
            return 7

    made: list[Call] = []
    reader = tailer.method_reader(Router())
    deliver = b"\xb9\x07deliver\xe1"
    appender.write_bytes(b"\xb9\2to\xe1x" + deliver + b"a" + deliver + b"b")
    appender.write_bytes(b"\xb9\2to\xe1x\xba\x09\xe1y" + deliver + b"c")
    appender.write_bytes(b"\xb9\2to\xe0" + deliver + b"d" + deliver + b"e")

    read_all(reader)
    assert made == [("x", "a"), ("router", "b"), ("x/y", "c"), ("router", "d"), ("router", "e")]


class Store:
    """What handlers return that is no concern of messages."""

    wiped = 0

    def get(self, key: str) -> str:
        return key

    def wipe(self) -> None:
        Store.wiped += 1


class Getting(Protocol):
    def get(self, key: str) -> Any: ...  # noqa: ANN401 - nothing that goes on


class Getter(Protocol):
    def locate(self, key: str) -> Getting: ...


def undeclared(_self: object, _key: str):  # type: ignore[no-untyped-def] # noqa: ANN201
    return Store()


def concrete(_self: object, _key: str) -> Store:
    return Store()


def declared(_self: object, _key: str) -> Getting:
    return Store()


def standard(_self: object, _key: str) -> MutableMapping[str, int]:
    return {}


@pytest.mark.parametrize("locate", [undeclared, concrete, declared, standard])
@pytest.mark.parametrize("interface", [None, Getter])
def test_messages_call_nothing_on_what_a_handler_returned_but_what_it_declared(
    appender: quire.JournalAppender,
    tailer: quire.JournalTailer,
    locate: object,
    interface: type | None,
) -> None:
    class Locating:
        def get(self, key: str) -> None:
            got.append(key)

    got: list[str] = []
    handler: Any = Locating()
    Locating.locate = locate  # type: ignore[attr-defined]
    Store.wiped = 0
    for name in ("get", "wipe", "clear"):
        appender.write_map({"locate": "a", name: "x"})
    read_all(tailer.method_reader(handler, interface=interface))

    assert Store.wiped == 0
    assert got == ([] if locate is declared or interface else ["x"])


def test_static_and_class_methods_of_a_handler_are_called(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    class Static:
        @staticmethod
        def one(number: int) -> None:
            made.append(("one", number))

        @classmethod
        def two(cls, number: int) -> None:
            made.append((cls.__name__, number))

    made: list[Call] = []
    appender.write_map({"one": "1"})
    appender.write_map({"two": "2"})
    read_all(tailer.method_reader(Static()))
    assert made == [("one", 1), ("Static", 2)]


def test_a_writer_is_a_handler(tmp_path: Path, queue: quire.JournalQueue) -> None:
    with queue.appender() as appender:
        make_calls(appender.method_writer(Calls))
    with quire.open(tmp_path / "copy", clock=quire.ManualClock(START_MS)) as copy:
        read_all(queue.tailer().method_reader(copy.appender().method_writer(Calls)))

        assert payloads(copy) == payloads(queue)


def test_a_handler_may_use_the_reader_and_the_queue_it_reads(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    class Nested(Talker):
        def num(self, number: int) -> None:
            super().num(number)
            if number == 2:
                assert reader.read_one()
                writer.num(1)
            self.calls.append(("end", number))

    writer = appender.method_writer(Talk)
    nested = Nested()
    reader = queue.tailer().method_reader(nested)
    writer.num(2)
    writer.say("next")
    read_all(reader)

    calls = [("num", 2), ("say", "next"), ("end", 2), ("num", 1), ("end", 1)]
    assert nested.calls == calls


def test_a_closed_reader_reads_no_more(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    class Closing(Talker):
        def none(self) -> None:
            reader.close()

    writer = appender.method_writer(Talk)
    writer.none()
    writer.say("a")
    closing = Closing()
    reader = tailer.method_reader(closing)

    reader.run()
    assert reader.closed
    assert closing.calls == []
    with pytest.raises(quire.errors.ClosedError, match="method reader"):
        reader.read_one()
    assert tailer.read_bytes() == SAY + b"a", "its tailer is open"


def test_a_reader_runs_until_it_is_closed_by_another_thread(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    talker = Talker()
    reader = queue.tailer().method_reader(talker)
    thread = threading.Thread(target=reader.run, args=(quire.pausers.millis(10_000, 10_000),))
    thread.start()
    appender.method_writer(Talk).say("a")
    reader.close()
    thread.join(300)

    assert not thread.is_alive()


def test_a_run_ends_when_there_is_no_more_and_enough(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    writer = appender.method_writer(Talk)
    for number in range(3000):
        writer.num(number)
    talker = Talker()
    queue.tailer().method_reader(talker).run(until=lambda: len(talker.calls) == 3000)

    assert talker.calls == [("num", number) for number in range(3000)]
    with pytest.raises(quire.errors.WaitTimeoutError):
        queue.tailer().method_reader(talker).run(quire.pausers.timeout(0.01))


def test_a_reader_runs_beside_others_in_an_event_loop(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    talker = Talker()
    reader = queue.tailer().method_reader(talker)
    writer = appender.method_writer(Talk)

    async def write() -> None:
        for number in range(10):
            writer.num(number)
            await asyncio.sleep(0)
        while len(talker.calls) < 10:  # noqa: ASYNC110 - the reader has no event to wait for
            await asyncio.sleep(0.001)
        reader.close()

    async def both() -> None:
        await asyncio.gather(reader.arun(), write())

    asyncio.run(asyncio.wait_for(both(), 300))
    assert talker.calls == [("num", number) for number in range(10)]


def test_threads_share_a_reader_and_each_message_is_handled_once(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    writer = appender.method_writer(Talk)
    for number in range(2000):
        writer.num(number)
    talker = Talker()
    reader = queue.tailer().method_reader(talker)
    threads = [threading.Thread(target=read_all, args=(reader,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(talker.calls) == [("num", number) for number in range(2000)]


def test_messages_are_handled_backward(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    writer = appender.method_writer(Talk)
    for number in range(5):
        writer.num(number)
    talker = Talker()
    tailer = queue.tailer()
    tailer.direction = "backward"
    tailer.to_end()
    read_all(tailer.method_reader(talker))

    assert talker.calls == [("num", number) for number in reversed(range(5))]


values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=40), st.binary()
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[quire.JournalQueue]:
    with quire.open(tmp_path_factory.mktemp("shared") / "queue") as queue:
        yield queue


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("strArg"), st.none() | st.text()),
            st.tuples(st.just("longArg"), st.integers(-(2**63), 2**63 - 1)),
            st.tuples(st.just("two"), st.text(), st.integers(-(2**31), 2**31 - 1)),
            st.tuples(
                st.just("dto"),
                st.builds(
                    Dto,
                    st.none() | st.text(),
                    st.integers(-(2**31), 2**31 - 1),
                    st.integers(-(2**31), 2**53),
                    st.floats(allow_nan=False).filter(lambda it: it or str(it) == "0.0"),
                    st.booleans(),
                    st.lists(st.text()),
                ),
            ),
            st.tuples(st.just("mapArg"), st.dictionaries(st.text("abcé", min_size=1), values)),
            st.tuples(st.just("bytesArg"), st.binary()),
        )
    )
)
def test_calls_come_back_as_they_were_made(shared: quire.JournalQueue, calls: list[Call]) -> None:
    found: list[Call] = []
    with shared.appender() as appender, shared.tailer() as tailer:
        tailer.to_end()
        writer = appender.method_writer(Calls)
        for name, *arguments in calls:
            getattr(writer, str(name))(*arguments)
        read_all(tailer.method_reader(recorder(Calls, lambda *call: found.append(call))))

    assert found == calls


def test_a_handler_that_holds_its_reader_is_collected(queue: quire.JournalQueue) -> None:
    class Handler:
        reader: MethodReader

        def say(self, text: str) -> None: ...

    def made() -> weakref.ref[Handler]:
        handler = Handler()
        handler.reader = queue.tailer().method_reader(handler)
        return weakref.ref(handler)

    gone = made()
    gc.collect()

    assert gone() is None
