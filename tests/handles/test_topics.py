"""Sub-topics: what a routing key looks like, and who sees which messages."""

from __future__ import annotations

import collections
import dataclasses
import random
import tempfile
from typing import Any, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from queues import DAY_MS
from quire import _native

KEYS: list[Any] = [
    "EURUSD",
    "",
    "x" * 40,
    "€",
    7,
    -1,
    2**40,
    True,
    1.5,
    ["a", 1],
    {"a": 1},
    b"\x00k",
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_message_comes_without_its_key(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    key: Any,  # noqa: ANN401
) -> None:
    topic = appender.topic(key)
    assert topic.key == key
    index = topic.write_bytes(b"raw")
    appender.topic("another").write_bytes(b"other")
    appender.write_bytes(b"without")
    topic.write_map({"price": 1.5, "side": "buy"})

    tailer = queue.tailer().topics([key])

    assert tailer.topic is None
    assert tailer.read() == quire.Excerpt(index, b"raw")
    assert tailer.topic == key
    assert tailer.read_map() == {"price": 1.5, "side": "buy"}
    assert tailer.read() is None


@quire.message(alias="Side")
@dataclasses.dataclass
class Side:
    name: str = "buy"
    price: float = 1.5


def test_every_kind_of_message_has_a_key(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    topic = appender.topic(Side("key"))
    topic.write_text("hello")
    appender.topic(Side("other")).write_text("other")
    topic.write_message(Side("sell"))
    topic.write_message(Side("sell", 2.5), typed=True)

    tailer = queue.tailer().topics(Side("key"))

    assert tailer.read_text() == "hello"
    assert tailer.topic == Side("key")
    assert tailer.read_message(Side) == Side("sell")
    assert tailer.read_message() == Side("sell", 2.5)
    assert tailer.read() is None


class Market(Protocol):
    def say(self, text: str) -> None: ...
    def level(self, symbol: str, price: float) -> None: ...


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("key", [*KEYS, Side("key")], ids=repr)
def test_calls_have_a_key(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    key: Any,  # noqa: ANN401
    history: bool,  # noqa: FBT001
) -> None:
    market = appender.topic(key).method_writer(Market, record_history=history)
    market.say("hello")
    appender.topic("another").method_writer(Market).say("other")
    market.level("EURUSD", price=1.5)
    called: list[tuple[Any, ...]] = []

    class Handler:
        def say(self, text: str) -> None:
            called.append((tailer.topic, text))

        def level(self, symbol: str, price: float) -> None:
            called.append((tailer.topic, symbol, price))

    tailer = queue.tailer().topics([key])
    reader = tailer.method_reader(Handler())
    while reader.read_one():
        pass
    assert called == [(key, "hello"), (key, "EURUSD", 1.5)]


def test_the_key_is_the_first_event_of_the_document(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.topic("EURUSD").write_bytes(b"\xe5hello")
    appender.topic(7, event="via").write_map({"say": "hello"})

    first, second = queue.tailer().payloads()

    assert first == b"\xb9\x02to\xe6EURUSD\xe5hello"
    assert second == b"\xb9\x03via\xa6\x07\0\0\0\xb9\x03say\xe5hello"
    assert queue.tailer().topics(7, event="via").read_map() == {"say": "hello"}
    assert queue.tailer().topics(7).read_map() is None


def test_every_way_of_reading_is_filtered(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    a, b = appender.topic("a"), appender.topic("b")
    indexes = [topic.write_bytes(b"%d" % n) for n, topic in enumerate([a, b, b, a, b, a])]

    def narrowed() -> quire.JournalTailer:
        return queue.tailer().topics("a")

    wanted = [b"0", b"3", b"5"]
    assert [excerpt.data for excerpt in narrowed()] == wanted
    assert [excerpt.index for excerpt in narrowed()] == [indexes[n] for n in (0, 3, 5)]
    assert list(narrowed().payloads()) == wanted
    assert narrowed().read_many(2) == wanted[:2]
    assert narrowed().read_many(9) == wanted
    assert [e.data for e in narrowed().follow(timeout_s=0)] == wanted
    assert narrowed().read_batch()["payload"].to_pylist() == wanted
    tailer = narrowed()
    documents: list[bytes] = []
    while True:
        with tailer.reading_document() as document:
            if not document.is_present:
                break
            assert tailer.topic == "a"
            documents.append(bytes(document.bytes))
    assert documents == wanted


def test_backward_and_after_a_move_it_is_filtered_too(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    topics = appender.topic("a"), appender.topic("b")
    indexes: list[int] = []
    for number in range(8):
        indexes.append(topics[number % 2].write_bytes(b"%d" % number))
        clock.advance(DAY_MS // 3)
    tailer = queue.tailer().topics("b")
    tailer.direction = "backward"
    tailer.to_end()
    assert list(tailer.payloads()) == [b"7", b"5", b"3", b"1"]

    tailer.direction = "forward"
    assert tailer.move_to_index(indexes[4])
    assert tailer.read() == quire.Excerpt(indexes[5], b"5")
    tailer.direction = "none"
    assert tailer.move_to_index(indexes[4])
    assert tailer.read() is None
    assert tailer.read_many(2) == []
    assert tailer.move_to_index(indexes[5])
    assert tailer.read_many(2) == [b"5", b"5"]


def test_several_topics_and_all_again(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    for key in ("a", 2, "c", 2, "a"):
        appender.topic(key).write_bytes(b"message")
    tailer = queue.tailer()

    assert [tailer.topic for _ in tailer.topics("a", 2)] == ["a", 2, 2, "a"]

    tailer.to_start()
    assert len(list(tailer.topics())) == 5
    assert tailer.topic is None


def test_history_in_front_of_the_key_is_seen_past(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    history = b"\xb9\x07history\x81\x02\x00\xe1x"
    appender.write_bytes(history + b"\xb9\x02to\xe1a\xb9\x03say\xe1b")
    appender.write_bytes(history + b"\xb9\x02to\xe1b\xb9\x03say\xe1b")

    tailer = queue.tailer().topics("a")

    assert tailer.read_bytes() == history + b"\xb9\x02to\xe1a\xb9\x03say\xe1b"
    assert tailer.topic == "a"
    assert tailer.read_bytes() is None


def test_a_named_tailer_gets_what_it_did_not_finish(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    a, b = appender.topic("a"), appender.topic("b")
    for _ in range(5):
        b.write_bytes(b"other")
        a.write_bytes(b"mine")

    def first_of(name: str) -> quire.Excerpt | None:
        tailer = queue.tailer(name).topics("a")
        found = tailer.read()
        del tailer
        return found

    assert first_of("risk") == first_of("risk")
    with queue.tailer("risk").topics("a") as tailer:
        first = tailer.read()
    assert first == first_of("other")
    assert first_of("risk") != first


def test_a_long_way_to_the_next_message_of_a_topic(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    other = b"\xb9\x02to\xe5other"
    appender.write_many([other] * 2000)
    appender.topic("rare").write_bytes(b"found")
    appender.write_many([other] * 2000)

    tailer = queue.tailer().topics("rare")

    assert tailer.read_many(5) == [b"found"]
    tailer.to_start()
    assert tailer.read_bytes() == b"found"
    assert tailer.read_bytes() is None
    tailer.to_start()
    tailer.wait(0)


@given(
    st.lists(
        st.one_of(st.text("abé€😀", max_size=40), st.integers(-(2**63), 2**63 - 1)),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    st.integers(),
)
def test_any_text_or_number_is_a_key(keys: list[str | int], seed: int) -> None:
    routes = [_native.entry_bytes("to", key) for key in keys]
    chance = random.Random(seed)  # noqa: S311 - repeatable
    assert len(set(routes)) == len(routes)
    with (
        tempfile.TemporaryDirectory() as folder,
        quire.open(folder, block_bytes=2**16) as queue,
        queue.appender() as appender,
    ):
        sent = [chance.choice(keys) for _ in range(12)]
        for number, key in enumerate(sent):
            appender.topic(key).write_bytes(b"%d" % number)
        for key in keys:
            wanted = [b"%d" % n for n, other in enumerate(sent) if other == key]
            assert list(queue.tailer().topics([key]).payloads()) == wanted


def test_empty_messages_and_keys_without_an_encoding_are_refused(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    with pytest.raises(ValueError, match="length=0"):
        appender.topic("a").write_bytes(b"")
    unknown: Any = object()
    with pytest.raises(quire.errors.WireError):
        appender.topic(unknown)
    with pytest.raises(quire.errors.WireError):
        tailer.topics(unknown)
    with pytest.raises(quire.errors.WireError, match="does not read back"):
        tailer._set_topics([b"\xe1a"])


def test_a_document_that_fails_is_not_written(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    topic = appender.topic("a")
    with pytest.raises(KeyError), topic.writing_document():
        raise KeyError
    assert collections.Counter(queue.tailer()) == {}
