"""Excerpts: values as text, words that others swap, and messages that are changed in place."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire
from any_format import open_vanilla

SMALL: dict[str, Any] = {"tid_bits": 16, "index_block_bytes": 1024, "data_block_bytes": 4096}


def opened(path: Path, **options: Any) -> quire.vanilla.VanillaQueue:  # noqa: ANN401 - any option
    queue: quire.vanilla.VanillaQueue = open_vanilla(path / "queue", **(SMALL | options))
    return queue


def first_of(queue: quire.vanilla.VanillaQueue) -> quire.vanilla.VanillaExcerpt:
    excerpt = queue.tailer().read()
    assert excerpt is not None
    return excerpt


def appended(path: Path, *values: Any, **options: Any) -> bytes:  # noqa: ANN401 - what append takes
    with opened(path) as queue, queue.appender() as appender:
        with appender.writing_excerpt() as writer:
            for value in values:
                writer.append(value, **options)
        return first_of(queue).data


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, b"true"),
        (0.1 + 0.2, b"0.30000000000000007"),
        (1e300, b"1" + b"0" * 300),
        (-0.0, b"-0"),
        (Decimal("-1.50"), b"-1.50"),
        (Decimal("1E+3"), b"1000"),
        (date(2023, 11, 14), b"2023/11/14"),
        (date(5, 1, 2), b"0005/01/02"),
        (time(22, 13, 20, 123_999), b"22:13:20.123"),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), b"1969/12/31T23:59:59.999"),
        (
            datetime(2023, 11, 14, 23, tzinfo=timezone(timedelta(hours=1))),
            b"2023/11/14T22:00:00.000",
        ),
    ],
)
def test_values_are_appended_as_text(tmp_path: Path, value: object, text: bytes) -> None:
    assert appended(tmp_path, value) == text


def test_floats_are_rounded(tmp_path: Path) -> None:
    assert appended(tmp_path, 123.456, precision=1) == b"123.5"


@pytest.mark.parametrize(
    ("value", "options", "error"),
    [
        (None, {}, TypeError),
        (b"bytes", {}, TypeError),
        (1, {"precision": 2}, TypeError),
        (1.5, {"precision": 19}, ValueError),
        (1.5, {"precision": -1}, ValueError),
        (1 << 63, {}, ValueError),
        (Decimal("NaN"), {}, ValueError),
        (datetime(2023, 11, 14), {}, ValueError),  # noqa: DTZ001 - what is refused
        (time(1, tzinfo=UTC), {}, ValueError),
    ],
)
def test_what_has_no_text_is_refused(
    tmp_path: Path,
    value: Any,  # noqa: ANN401 - of any type
    options: dict[str, Any],
    error: type[Exception],
) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        writer = appender.writing_excerpt()
        with pytest.raises(error):
            writer.append(value, **options)
        assert writer.position == 0


def test_texts_are_parsed_up_to_a_character(tmp_path: Path) -> None:
    long = "x" * 5000
    times = (date(2023, 11, 14), time(22, 13, 20, 123_000))
    both = datetime.combine(*times, UTC)
    with opened(tmp_path, data_block_bytes=65536) as queue, queue.appender() as appender:
        with appender.writing_excerpt() as writer:
            writer.append(f"EUR/USD,é;{long}|{Decimal('1.50')} yes,")
            for value in (*times, both):
                writer.append(value)
                writer.append(" ")
            writer.append("end")
        excerpt = first_of(queue)
    assert [excerpt.parse_text(",;|") for _ in range(3)] == ["EUR/USD", "é", long]
    assert str(excerpt.parse_decimal()) == "1.50"
    assert excerpt.parse_boolean(",")
    assert (excerpt.parse_date(), excerpt.parse_time(), excerpt.parse_datetime()) == (*times, both)
    assert (excerpt.parse_text(","), excerpt.parse_text(",")) == ("end", "")


def test_what_is_no_text_of_the_kind_leaves_the_position(tmp_path: Path) -> None:
    with opened(tmp_path) as queue:
        queue.appender().write_bytes(b"2023/02/30T24:00:00.000 maybe \xff")
        excerpt = first_of(queue)
    for parse in (excerpt.parse_datetime, excerpt.parse_date, excerpt.parse_time):
        with pytest.raises(quire.errors.WireError):
            parse()
    with pytest.raises(quire.errors.WireError, match="no boolean"):
        excerpt.parse_boolean(" ")
    with pytest.raises(quire.errors.WireError, match="no text"):
        excerpt.parse_text("~")
    assert excerpt.position == 0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_as_text_is_that_float(
    tmp_path_factory: pytest.TempPathFactory, value: float
) -> None:
    path = tmp_path_factory.mktemp("floats")
    text = appended(path, value)
    assert b"E" not in text.upper()
    with opened(path, read_only=True) as queue:
        assert struct.pack("<d", first_of(queue).parse_float()) == struct.pack("<d", value)


def test_words_are_aligned_whatever_comes_before(tmp_path: Path) -> None:
    lengths = range(20)
    with opened(tmp_path, data_block_bytes=256) as queue, queue.appender() as appender:
        for length in lengths:
            appender.write_bytes(bytes(length))
            with appender.writing_excerpt() as writer:
                writer.write_bytes(b"head!")
                assert (writer.align(), writer.position) == (8, 8)
                writer.write_int64(length)
                writer.write_int8(1)
                assert writer.align(4) == 20
                writer.write_int32(-1)
        counted = [it for it in queue.tailer() if len(it.data) == 24 and it.data[:5] == b"head!"]
        for length, excerpt in zip(lengths, counted, strict=True):
            assert excerpt.compare_and_swap_int64(8, length, 7)
            assert excerpt.compare_and_swap_int32(20, -1, 7)
        [folder] = {Path(queue.directory_for_cycle(cycle)) for cycle in queue.cycles}
        before = [(it.index, it.data) for it in queue.tailer()]
    # Padding is no record, and hides none.
    (folder / "index-0").unlink()
    [rebuilt] = quire.vanilla.rebuild_index(
        tmp_path / "queue", files=quire.vanilla.FileOptions(**(SMALL | {"data_block_bytes": 256}))
    )
    assert (rebuilt.messages, rebuilt.recovered) == (40, 40)
    with opened(tmp_path, data_block_bytes=256, read_only=True) as queue:
        assert [(it.index, it.data) for it in queue.tailer()] == before


def test_a_word_after_a_claim_word_is_aligned_too(tmp_path: Path) -> None:
    with opened(tmp_path, consumption="queue") as queue, queue.appender() as appender:
        for _ in range(3):
            with appender.writing_excerpt() as writer:
                assert writer.align() == 8
                writer.write_int64(0)
        for excerpt in iter(lambda: queue.tailer().claim(7), None):
            assert excerpt.compare_and_swap_int64(8, 0, 1)


def test_an_aligned_message_may_fill_a_file_but_for_its_padding(tmp_path: Path) -> None:
    with opened(tmp_path, data_block_bytes=64) as queue, queue.appender() as appender:
        for length in (56, 57):
            excerpt = appender.writing_excerpt()
            excerpt.align()
            if length == 56:
                excerpt.write_bytes(bytes(length))
                excerpt.finish()
                continue
            with pytest.raises(quire.errors.MessageTooLargeError):
                excerpt.write_bytes(bytes(length))
        assert queue.entry_count == 1


def test_an_excerpt_is_written_in_place(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        appender.write_bytes(bytes(40))
        excerpt = first_of(queue)
        assert excerpt.try_lock(0, 7)
        excerpt.write_int64_at(4, -2)
        excerpt.write_int32_at(12, 1 << 30)
        excerpt.write_int16_at(17, -3)
        excerpt.write_int8_at(19, -4)
        excerpt.write_float64_at(20, 1.1)
        excerpt.write_float32_at(29, 1.5)
        excerpt.write_bytes_at(36, b"tail")
        excerpt.unlock(0, 7)
        again = first_of(queue)
        again.position = 4
        assert (again.read_int64(), again.read_int32()) == (-2, 1 << 30)
        again.position = 17
        assert (again.read_int16(), again.read_int8(), again.read_float64()) == (-3, -4, 1.1)
        again.position = 29
        assert (again.read_float32(), again.data[36:]) == (1.5, b"tail")


def test_nothing_outside_the_message_is_written(tmp_path: Path) -> None:
    with opened(tmp_path) as queue, queue.appender() as appender:
        appender.write_many([bytes(8), b"next"])
        excerpt = first_of(queue)
        for offset in (5, 8, 1 << 63):
            with pytest.raises(ValueError, match="outside the message"):
                excerpt.write_int32_at(offset, 1)
        with pytest.raises(ValueError, match="offset"):
            excerpt.write_int8_at(-1, 1)
        with pytest.raises(ValueError, match="value"):
            excerpt.write_int8_at(0, 128)
        assert [*queue.tailer().payloads()] == [bytes(8), b"next"]
        with opened(tmp_path, read_only=True) as reader, pytest.raises(quire.errors.ReadOnlyError):
            first_of(reader).write_int8_at(0, 1)
