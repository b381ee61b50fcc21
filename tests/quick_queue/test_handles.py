"""Quick-Queues through their handles."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from quick_reference import QuickReference, decimal_of

PAGE = 4096


@pytest.fixture
def queue(tmp_path: Path) -> quire.quick_queue.QuickQueue:
    return quire.quick_queue.open(tmp_path / "book", page_bytes=PAGE)


def test_it_counts_as_a_queue(queue: quire.quick_queue.QuickQueue) -> None:
    handles = (queue, queue.appender(), queue.tailer())
    for handle, common in zip(handles, (quire.Queue, quire.Appender, quire.Tailer), strict=True):
        assert isinstance(handle, common)
        assert issubclass(type(handle), common)


def test_a_directory_tells_its_format(tmp_path: Path) -> None:
    quire.open(tmp_path / "quick", format="quick-queue").close()
    quire.open(tmp_path / "journal").close()
    kinds = {name: type(quire.open(tmp_path / name)) for name in ("quick", "journal")}
    assert kinds == {"quick": quire.quick_queue.QuickQueue, "journal": quire.JournalQueue}
    with pytest.raises(quire.errors.NotAQueueError, match="another format: asked=chronicle"):
        quire.open(tmp_path / "quick", format="chronicle")
    with pytest.raises(quire.errors.NotAQueueError, match="another format: asked=quick-queue"):
        quire.open(tmp_path / "journal", format="quick-queue")
    with pytest.raises(ValueError, match="invalid format"):
        quire.open(tmp_path / "quick", format="parquet")  # type: ignore[call-overload]


def test_options_of_another_format_are_refused(tmp_path: Path) -> None:
    options: Any = {"roll_cycle": "DAILY"}
    with pytest.raises(quire.errors.UnsupportedError, match="roll_cycle='DAILY'"):
        quire.open(tmp_path / "quick", format="quick-queue", **options)
    options = {"timeout_s": 3}
    with pytest.raises(quire.errors.UnsupportedError, match="timeout_s"):
        quire.open(tmp_path / "quick", format="quick-queue", **options)
    options = {"page_bytes": PAGE}
    with pytest.raises(TypeError, match=r"it belongs to quire.quick_queue.open\(page_bytes=...\)"):
        quire.open(tmp_path / "journal", **options)
    assert not [*tmp_path.iterdir()]


def test_every_reader_sees_every_message(queue: quire.quick_queue.QuickQueue) -> None:
    payloads = [os.urandom(1 + number % 300) for number in range(1000)]
    with queue.appender() as appender:
        assert appender.write_many(payloads[:500]) == 16 * 499
        assert appender.write_many(iter(payloads[500:])) == 16 * 999
        assert appender.write_many([]) is None
    assert [*queue.tailer().payloads()] == payloads
    assert [excerpt.data for excerpt in queue.tailer()] == payloads
    tailer = queue.tailer()
    assert tailer.read_many(400) + tailer.read_many(1_000_000) == payloads
    batch = queue.tailer().read_batch()
    assert batch.column("payload").to_pylist() == payloads
    assert batch.column("index").to_pylist() == [*range(0, 16_000, 16)]
    assert QuickReference(Path(queue.path)).messages() == [
        (16 * number, None, payload) for number, payload in enumerate(payloads)
    ]


def test_batches_end_before_they_are_too_large(queue: quire.quick_queue.QuickQueue) -> None:
    queue.appender().write_many([bytes([number]) * 100 for number in range(1, 11)])
    tailer = queue.tailer()
    rows = [tailer.read_batch(max_bytes=250).num_rows for _ in range(6)]
    assert rows == [2, 2, 2, 2, 2, 0]
    tailer.to_start()
    assert tailer.read_batch(max_bytes=1).num_rows == 1
    assert [tailer.read_batch(4).num_rows for _ in range(4)] == [4, 4, 1, 0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"one", b"two", b"three"]),
        pa.array(["one", "two", "three"]),
        pa.array([b"zero", b"one", b"two", b"three"], pa.large_binary())[1:],
        pa.chunked_array([[b"one"], [b"two", b"three"]]),
        pa.table({"payload": [b"one", b"two", b"three"], "other": [1, 2, 3]}),
        pa.record_batch({"text": ["one", "two", "three"]}),
    ],
    ids=lambda column: type(column).__name__,
)
def test_columns_are_written(queue: quire.quick_queue.QuickQueue, column: object) -> None:
    assert queue.appender().write_batch(column) == 32
    assert [*queue.tailer().payloads()] == [b"one", b"two", b"three"]


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (pa.array([b"one", None]), ValueError),
        (pa.array([b"one", b""]), ValueError),
        (pa.array([1, 2]), TypeError),
        ([b"one"], TypeError),
        (pa.table({"a": [b"one"], "b": [b"two"]}), quire.errors.UnsupportedError),
    ],
)
def test_columns_that_are_no_messages_are_refused(
    queue: quire.quick_queue.QuickQueue, column: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        queue.appender().write_batch(column)
    assert queue.last_index is None


def test_excerpts_are_values(queue: quire.quick_queue.QuickQueue) -> None:
    appender = queue.appender("AA0")
    appender.write_bytes(b"x" * 4000)
    appender.write_bytes(b"y" * 4000)  # crosses a page
    view = memoryview(b"")
    for excerpt, letter in zip(queue.tailer(), (b"x", b"y"), strict=True):
        view = excerpt.view
        assert view.readonly
        assert bytes(view) == excerpt.data == letter * 4000
        assert excerpt.producer == "AA0"
        again = pickle.loads(pickle.dumps(excerpt))
        assert (again, hash(again)) == (excerpt, hash(excerpt))
        assert again != quire.quick_queue.QuickExcerpt(excerpt.index + 16, excerpt.data, "AA0")
    queue.close()
    assert bytes(view[:2]) == b"yy"


def test_a_queue_pickles(queue: quire.quick_queue.QuickQueue) -> None:
    queue.appender().write_text("é")
    with pickle.loads(pickle.dumps(queue)) as again:
        assert again.tailer().read_text() == "é"


def test_moves(queue: quire.quick_queue.QuickQueue) -> None:
    appender = queue.appender()
    offsets = [appender.write_bytes(b"%d" % number) for number in range(600)]
    tailer = queue.tailer()
    for offset in (offsets[300], offsets[5], offsets[599]):
        assert tailer.move_to_index(offset)
        assert tailer.read_bytes() == b"%d" % (offset // 16)
    assert not tailer.move_to_index(16 * 10_000)
    assert tailer.index == queue.end_index == 9600
    assert tailer.read() is None
    for wrong in (1, 8, 17):
        with pytest.raises(ValueError, match="a multiple of 16"):
            tailer.move_to_index(wrong)
        with pytest.raises(ValueError, match="a multiple of 16"):
            queue.tailer(start=wrong)
    with pytest.raises(ValueError, match="invalid index"):
        tailer.move_to_index(-16)
    assert queue.tailer(start=offsets[42]).read_bytes() == b"42"
    assert (queue.first_index, queue.last_index) == (0, 9584)
    tailer.to_end()
    appender.write_bytes(b"new")
    assert tailer.read_bytes() == b"new"


def test_an_empty_queue(queue: quire.quick_queue.QuickQueue) -> None:
    assert (queue.first_index, queue.last_index, queue.end_index, queue.form) == (None,) * 2 + (
        0,
        None,
    )
    tailer = queue.tailer()
    assert tailer.read() is None
    assert tailer.read_many(10) == []
    assert tailer.read_batch().num_rows == 0
    queue.appender("AA0").write_bytes(b"first")
    assert tailer.read_bytes() == b"first"
    assert queue.form == "shared"


def test_following(queue: quire.quick_queue.QuickQueue) -> None:
    appender = queue.appender()
    appender.write_many([b"one", b"two"])
    tailer = queue.tailer()
    found = []
    for excerpt in tailer.follow(timeout_s=0.2):
        found.append(excerpt.data)
        if excerpt.data == b"two":
            appender.write_bytes(b"three")
    assert found == [b"one", b"two", b"three"]
    with pytest.raises(quire.errors.WaitTimeoutError):
        tailer.wait(timeout_s=0.01)

    async def first() -> bytes:
        async for excerpt in queue.tailer():
            return excerpt.data
        raise AssertionError

    assert asyncio.run(first()) == b"one"


UNSUPPORTED: list[Callable[[Any], object]] = [
    lambda queue: queue.tailer("risk"),
    lambda queue: queue.roll_cycle,
    lambda queue: queue.cycles,
    lambda queue: queue.dump,
    lambda queue: queue.table_entries,
    lambda queue: queue.appender().write_map,
    lambda queue: queue.appender().method_writer,
    lambda queue: queue.appender().writing_document,
    lambda queue: queue.tailer().read_map,
    lambda queue: queue.tailer().commit,
    lambda queue: queue.tailer().direction,
]


@pytest.mark.parametrize("ask", UNSUPPORTED)
def test_what_it_cannot_do_says_why(
    queue: quire.quick_queue.QuickQueue, ask: Callable[[Any], object]
) -> None:
    with pytest.raises(
        quire.errors.UnsupportedError, match=r"not supported in a Quick-Queue: .+ \(.+\)"
    ):
        ask(queue)


def test_nobody_has_an_attribute_of_any_name(queue: quire.quick_queue.QuickQueue) -> None:
    for handle in (queue, queue.appender(), queue.tailer()):
        assert not hasattr(handle, "nonsense")


def test_closed_handles_say_so(queue: quire.quick_queue.QuickQueue) -> None:
    appender, tailer = queue.appender(), queue.tailer()
    tailer.close()
    with pytest.raises(quire.errors.ClosedError, match="tailer is closed"):
        tailer.read()
    queue.close()
    with pytest.raises(quire.errors.ClosedError):
        appender.write_bytes(b"1")
    with pytest.raises(quire.errors.ClosedError):
        queue.tailer()
    assert (queue.closed, appender.closed, tailer.closed) == (True, True, True)


def test_messages_hold_something(queue: quire.quick_queue.QuickQueue) -> None:
    appender = queue.appender()
    with pytest.raises(ValueError, match="at least one byte"):
        appender.write_bytes(b"")
    with pytest.raises(ValueError, match="at least one byte"):
        appender.new_message().write_message()
    assert queue.last_index is None


def test_a_packer_starts_over(queue: quire.quick_queue.QuickQueue) -> None:
    message = queue.appender().new_message()
    message.pack_int(1).discard()
    message.pack_int(2).write_message()
    message.pack_int(3)
    with pytest.raises(ValueError, match="character='é'"):
        message.pack_string("é")
    assert len(message) == 4
    message.write_message()
    assert [it.unpack().unpack_int() for it in queue.tailer()] == [2, 3]


@pytest.mark.parametrize("length", [3, 5000])
def test_fields_that_could_not_be_written_are_still_there(
    queue: quire.quick_queue.QuickQueue, length: int
) -> None:
    appender = queue.appender()
    message = appender.new_message().pack_raw(bytes(length))
    appender.close()
    with pytest.raises(quire.errors.ClosedError):
        message.write_message()
    assert len(message) == length
    assert queue.last_index is None


def test_one_packer_writes_messages_of_every_length_over_many_pages(
    queue: quire.quick_queue.QuickQueue,
) -> None:
    written = [bytes([number % 251]) * (1 + number * 37 % 6000) for number in range(500)]
    message = queue.appender().new_message()
    for payload in written:
        message.pack_raw(payload[:1]).pack_raw(payload[1:]).write_message()
    assert queue.tailer().read_many(501) == written


def test_fields_are_read_in_place_after_the_queue_was_closed(
    queue: quire.quick_queue.QuickQueue,
) -> None:
    message = queue.appender().new_message()
    message.pack_int(7).pack_string("A").pack_raw(b"rest").write_message()
    fields = queue.tailer().read().unpack()  # type: ignore[union-attr]
    queue.close()
    assert (fields.unpack_int(), fields.unpack_string(), fields.remaining) == (7, "A", 4)
    with pytest.raises(quire.errors.WireError, match="the message ends before"):
        fields.unpack_raw(5)
    assert fields.unpack_raw(4) == b"rest"


PACKS: list[tuple[str, object, type[Exception]]] = [
    ("byte", 128, ValueError),
    ("short", -32_769, ValueError),
    ("int", 2**31, ValueError),
    ("long", 2**63, ValueError),
    ("int", "1", TypeError),
    ("char", "ab", ValueError),
    ("char", "\U0001f600", ValueError),
    ("float", 1e300, ValueError),
    ("string", "é", ValueError),
    ("string", "a\0b", ValueError),
    ("unicode", "a\0b", ValueError),
    ("decimal", Decimal("NaN"), ValueError),
    ("decimal", Decimal("-Infinity"), ValueError),
    ("decimal", Decimal((0, (1,), 2**31 + 1)), ValueError),
    ("decimal", 1.5, TypeError),
    ("big_integer", "1", TypeError),
    ("bytes", "text", TypeError),
]


@pytest.mark.parametrize(("field", "value", "error"), PACKS)
def test_what_has_no_encoding_is_refused(
    queue: quire.quick_queue.QuickQueue, field: str, value: object, error: type[Exception]
) -> None:
    message = queue.appender().new_message()
    with pytest.raises(error):
        getattr(message, f"pack_{field}")(value)
    assert len(message) == 0


def _decimal(digits: list[int], exponent: int) -> Decimal:
    return Decimal((0, tuple(digits), exponent))


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False) | st.builds(
    _decimal,
    st.lists(st.integers(0, 9), min_size=1, max_size=400),
    st.integers(-(2**31) + 1, 2**31 - 1),
)
TEXT = st.text().filter(lambda text: "\0" not in text)
VALUES = st.one_of(
    st.tuples(st.just("byte"), st.integers(-128, 127)),
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("short"), st.integers(-(2**15), 2**15 - 1)),
    st.tuples(st.just("char"), st.characters(max_codepoint=0xFFFF, categories=("L", "N", "Cs"))),
    st.tuples(st.just("int"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("long"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("float"), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just("double"), st.floats(allow_nan=False)),
    st.tuples(st.just("string"), TEXT.map(lambda text: text.encode("ascii", "ignore").decode())),
    st.tuples(st.just("unicode"), TEXT),
    st.tuples(st.just("decimal"), DECIMALS),
    st.tuples(st.just("big_integer"), st.integers()),
    st.tuples(st.just("bytes"), st.binary(max_size=300)),
)


@pytest.mark.check
@given(messages=st.lists(st.lists(VALUES, min_size=1), min_size=1, max_size=10))
def test_fields_come_back(
    tmp_path_factory: pytest.TempPathFactory, messages: list[list[tuple[str, Any]]]
) -> None:
    path = tmp_path_factory.mktemp("fields")
    with quire.quick_queue.open(path, page_bytes=64) as queue:
        message = queue.appender().new_message()
        for fields in messages:
            for name, value in fields:
                getattr(message, f"pack_{name}")(value)
            message.write_message()
        for fields, excerpt in zip(messages, queue.tailer(), strict=True):
            found = excerpt.unpack()
            for name, value in fields:
                read = getattr(found, f"unpack_{name}")()
                assert read == value
                if name == "decimal":
                    assert read.as_tuple().exponent == value.as_tuple().exponent
            assert found.remaining == 0


@pytest.mark.check
@given(DECIMALS)
def test_decimals_are_those_of_the_page(
    tmp_path_factory: pytest.TempPathFactory, value: Decimal
) -> None:
    path = tmp_path_factory.mktemp("decimals")
    with quire.quick_queue.open(path, page_bytes=64) as queue:
        queue.appender().new_message().pack_decimal(value).write_message()
        payload = queue.tailer().read_bytes()
    assert payload is not None
    found = decimal_of(payload)
    assert (found, found.as_tuple().exponent) == (value, value.as_tuple().exponent)


@given(st.binary(max_size=40), st.data())
def test_no_bytes_are_read_as_garbage(message: bytes, data: st.DataObject) -> None:
    names = [name for name in dir(quire.MessageUnpacker) if name.startswith("unpack_")]
    unpacker = quire.MessageUnpacker(message)
    for _ in range(10):
        name = data.draw(st.sampled_from(names))
        before = unpacker.position
        try:
            getattr(unpacker, name)(*([3] if name == "unpack_raw" else []))
        except quire.errors.WireError:
            assert unpacker.position == before
        assert before <= unpacker.position <= len(message)


def test_the_originals_long_decimals(queue: quire.quick_queue.QuickQueue) -> None:
    queue.appender().write_bytes(b"\x02" + (200).to_bytes(4, "little") + b"\x2a")
    with pytest.raises(quire.errors.WireError):
        queue.tailer().read().unpack().unpack_decimal()  # type: ignore[union-attr]
    for excerpt in queue.tailer():
        assert excerpt.unpack().unpack_decimal(legacy=True) == Decimal("42E-200")
