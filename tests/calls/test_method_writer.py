"""Method writers: calls become the messages that Java's generated writers write."""

from __future__ import annotations

import gc
import struct
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import pytest

import quire
from golden_calls import Calls, Dto, Side, golden, make_calls
from queues import payloads

pytestmark = pytest.mark.remote

T = TypeVar("T")


def test_calls_are_written_as_java_writes_them(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    make_calls(appender.method_writer(Calls))

    assert payloads(queue) == golden("c_methods")


def test_a_call_may_name_its_arguments_and_leave_defaults_out(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    class Market(Protocol):
        def trade(self, symbol: str, price: float = 1.5, side: Side = Side.BUY) -> None: ...

    market = appender.method_writer(Market)
    market.trade("x")
    market.trade("x", 1.5, Side.BUY)
    market.trade(price=1.5, symbol="x")
    market.trade("x", side=Side.BUY)

    assert payloads(queue) == [b"\xb9\x05trade\x82\x09\0\0\0\xe1x\x92\x96\x01\xe3BUY"] * 4


def test_an_abstract_class_and_its_bases_are_an_interface(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    class Saying(ABC):
        @abstractmethod
        def say(self, text: str) -> None: ...

        def helper(self, text: str) -> None:
            raise AssertionError(text)

    class Counting(Protocol):
        def count(self, number: int) -> None: ...

    class Both(Saying, Counting): ...

    for interfaces in ((Both,), (Saying, Counting), (Saying, Both)):
        writer: Any = appender.method_writer(*interfaces)
        assert issubclass(type(writer), Saying)
        writer.say("a")
        writer.count(1)
        writer.helper("b")

    assert (
        payloads(queue) == [b"\xb9\x03say\xe1a", b"\xb9\x05count\xa1\1", b"\xb9\6helper\xe1b"] * 3
    )


class Publisher(Protocol[T]):
    def publish(self, value: T, /) -> None: ...
    def publish_all(self, values: list[T], /) -> None: ...


class Sided(Publisher[float], Protocol): ...


class Source(Generic[T]):
    def source(self, name: str) -> Publisher[T]:
        raise NotImplementedError(name)


def test_type_variables_stand_for_what_they_are_given(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.method_writer(Publisher[Dto]).publish(Dto())
    appender.method_writer(Sided).publish(2.0)
    appender.method_writer(Source[float]).source("s").publish_all([2.0])
    appender.method_writer(Publisher[Any]).publish(2.0)

    found = payloads(queue)
    assert found[0].startswith(b"\xb9\7publish\x82\x24\0\0\0\xc4name\xbb")
    assert found[1] == b"\xb9\7publish\xa1\2", "a declared float: the shortest form"
    boxed = b"\x82\x09\0\0\0\x91" + struct.pack("<d", 2.0)
    assert found[2] == b"\xb9\6source\xe1s\xb9\x0bpublish_all" + boxed, "as Java's List<Double>"
    assert found[3][:10] == b"\xb9\7publish\x91", "undeclared: boxed"


def test_a_chain_may_return_its_own_interface(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    class Route(Protocol):
        def via(self, name: str) -> Self: ...
        def again(self, name: str) -> Route: ...
        def say(self, text: str) -> None: ...

    appender.method_writer(Route).via("a").again("b").via("c").say("d")

    assert payloads(queue) == [b"\xb9\3via\xe1a\xb9\5again\xe1b\xb9\3via\xe1c\xb9\3say\xe1d"]


def test_nothing_is_written_of_a_chain_without_its_last_call(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    calls = appender.method_writer(Calls)
    channel = calls.via("x")
    calls.strArg("in between")
    assert payloads(queue) == [b"\xb9\6strArg\xeain between"]

    with pytest.raises(quire.errors.WireError, match=r"field=done.text expected=str found=1"):
        channel.done(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    channel.done("a")
    channel.done("b")
    assert payloads(queue)[1:] == [b"\xb9\3via\xe1x\xb9\4done\xe1" + it for it in (b"a", b"b")]


BAD_CALLS: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (lambda calls: calls.two("a"), TypeError, r"method=two missing=count expected=\(text, count\)"),
    (lambda calls: calls.two("a", 1, 2), TypeError, "method=two given=3"),
    (lambda calls: calls.two("a", text="b"), TypeError, "method=two missing=count"),
    (lambda calls: calls.two("a", 1, more=1), TypeError, "method=two given=3"),
    (lambda calls: calls.two("a", mor=1), TypeError, "method=two missing=count"),
    (lambda calls: calls.noArg(1), TypeError, "method=noArg given=1"),
    (lambda calls: calls.strArg(), TypeError, "method=strArg missing=value"),
    (
        lambda calls: calls.intArg(1 << 31),
        quire.errors.WireError,
        "field=intArg.value expected=int32",
    ),
    (lambda calls: calls.two(1, 1), quire.errors.WireError, "field=two.text expected=str found=1"),
    (lambda calls: calls.dto(Dto(qty=1.5)), quire.errors.WireError, "field=dto.dto.qty"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    (lambda calls: calls.via("x").nothing, AttributeError, "name=nothing"),
    (lambda calls: calls.nothing, AttributeError, "nothing"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD_CALLS)
def test_a_wrong_call_says_so_writes_nothing_and_harms_nothing(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    call: Callable[[Any], object],
    error: type[Exception],
    text: str,
) -> None:
    calls = appender.method_writer(Calls)
    with pytest.raises(error, match=text):
        call(calls)
    calls.strArg("a")

    assert payloads(queue) == [b"\xb9\6strArg\xe1a"]


class Unencoded(Protocol):
    def take(self, value: complex) -> None: ...


class Unknown(Protocol):
    def take(self, value: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


class Returns(Protocol):
    def take(self, value: int) -> int: ...


class MayReturn(Protocol):
    def take(self, value: int) -> int | None: ...


class Varying(Protocol):
    def take(self, *values: int) -> None: ...


class ByName(Protocol):
    def take(self, *, value: int) -> None: ...


class OfClass(Protocol):
    @staticmethod
    def make(number: int) -> None: ...


class Empty(Protocol): ...


class SameId(Protocol):
    @quire.calls.method_id(7)
    def one(self) -> None: ...
    @quire.calls.method_id(7)
    def two(self) -> None: ...


class HistoryId(Protocol):
    @quire.calls.method_id(-1)
    def one(self) -> None: ...


class HistoryName(Protocol):
    def history(self) -> None: ...


class Greek(Protocol):
    def α(self) -> None: ...  # noqa: PLC2401


@pytest.mark.parametrize(
    ("interface", "text"),
    [
        (Unencoded, "no encoding: type=.*complex.* method=Unencoded.take parameter=value"),
        (Unknown, "annotation='Nowhere' .* method=Unknown.take"),
        (Returns, "returns nothing, or an interface that goes on: method=Returns.take"),
        (MayReturn, "returns nothing, or an interface that goes on: method=MayReturn.take"),
        (Varying, "method=Varying.take parameter="),
        (ByName, "method=ByName.take"),
        (Empty, "has no method: interface=.*Empty"),
        (OfClass, "method=OfClass.make found=staticmethod"),
        (SameId, "method_id=7 methods=one, two"),
        (HistoryId, "reserved for message history: method=one"),
        (HistoryName, "reserved for message history: method=history"),
        (3, "an interface is a class: found=3"),
    ],
)
def test_an_interface_that_cannot_stand_in_messages_is_refused_at_once(
    appender: quire.JournalAppender, interface: type, text: str
) -> None:
    with pytest.raises(TypeError, match=text):
        appender.method_writer(interface)


def test_a_name_outside_latin_1_is_refused(appender: quire.JournalAppender) -> None:
    with pytest.raises(quire.errors.WireError, match="Latin-1"):
        appender.method_writer(Greek)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_a_method_id_has_32_bits(number: int) -> None:
    with pytest.raises(ValueError, match=f"method_id={number}"):
        quire.calls.method_id(number)


def test_a_method_id_may_be_a_character(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    class Market(Protocol):
        @quire.calls.method_id("s")
        def say(self, text: str) -> None: ...
        @quire.calls.method_id(200)
        def none(self) -> None: ...

    market = appender.method_writer(Market)
    market.say("hello")
    market.none()

    assert payloads(queue) == [b"\xba\x73\xe5hello", b"\xba\xc8\x01\xe0"]


def test_calls_may_be_metadata(queue: quire.JournalQueue, appender: quire.JournalAppender) -> None:
    appender.method_writer(Calls, metadata=True).strArg("a")
    appender.method_writer(Calls).strArg("b")

    assert payloads(queue) == [b"\xb9\6strArg\xe1b"]
    metadata: list[bytes] = []
    tailer = queue.tailer()
    while not metadata or metadata[-1] != b"\xb9\6strArg\xe1a":
        with tailer.reading_document(include_metadata=True) as document:
            assert document.is_metadata
            metadata.append(bytes(document.bytes))


def test_several_calls_may_go_into_one_document(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q", source_id=3) as queue, queue.appender() as appender:
        with appender.writing_document() as document:
            calls = appender.method_writer(Calls, document=document)
            calls.strArg("a")
            with pytest.raises(quire.errors.WireError):
                calls.via("x").done(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            calls.via("x").done("y")
        with pytest.raises(quire.errors.ClosedError):
            calls.noArg()
        tailer = queue.tailer()
        [payload] = tailer.payloads()
        history = tailer.history

    assert payload.endswith(b"\xb9\6strArg\xe1a\xb9\3via\xe1x\xb9\4done\xe1y")
    assert payload.count(b"\xba\x80\0") == 1, "the history stands in front once"
    assert history is not None
    assert len(history.timings) == 1


def test_a_filter_keeps_calls_out(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    asked: list[object] = []

    def is_wanted(name: str, first: object) -> object:
        asked.append((name, first))
        return first in ("yes", 7, None)

    calls = appender.method_writer(Calls, filter=is_wanted)
    calls.strArg("no")
    calls.strArg("yes")
    calls.two("no", 7)
    calls.noArg()
    calls.via("no").done("yes")
    calls.via("yes").done("no")
    calls.via("yes").deeper(7).end(7)

    assert asked[:4] == [("strArg", "no"), ("strArg", "yes"), ("two", "no"), ("noArg", None)]
    assert payloads(queue) == [
        b"\xb9\6strArg\xe3yes",
        b"\xb9\5noArg\xe0",
        b"\xb9\3via\xe3yes\xb9\6deeper\xa1\7\xb9\3end\xa1\7",
    ]


def test_an_argument_may_call_while_it_is_written(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    class Market(Protocol):
        def take(self, value: dict[str, str]) -> None: ...

    class Calling(dict[str, str]):
        def items(self) -> Any:  # noqa: ANN401 - a type without a name
            calls.strArg("inner")
            return super().items()

    calls = appender.method_writer(Calls)
    value = Calling(a="b")
    appender.method_writer(Market).take(value)

    assert payloads(queue)[-1] == b"\xb9\4take\x82\5\0\0\0\xb9\1a\xe1b"


def test_a_closed_appender_closes_its_writers(appender: quire.JournalAppender) -> None:
    calls = appender.method_writer(Calls)
    appender.close()

    with pytest.raises(quire.errors.ClosedError):
        calls.noArg()


def test_threads_may_share_a_writer(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    calls = appender.method_writer(Calls)

    def work(number: int) -> None:
        for count in range(200):
            calls.two(f"{number}", count)
            calls.via(f"{number}").deeper(count).end(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    other = quire.open(queue.path + "-one", roll_cycle="TEST4_DAILY")
    with other, other.appender() as single:
        calls = single.method_writer(Calls)
        for number in range(4):
            work(number)
        assert sorted(payloads(queue)) == sorted(payloads(other))


def test_a_writer_that_is_let_go_leaves_nothing(appender: quire.JournalAppender) -> None:
    writer = appender.method_writer(Calls)
    gone = weakref.ref(type(writer))
    del writer
    gc.collect()

    assert gone() is None
