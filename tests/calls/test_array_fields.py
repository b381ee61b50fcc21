"""Fields that are arrays of numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quire
from quire.errors import WireError


@quire.message(alias="ArBook")
@dataclass
class Book:
    prices: npt.NDArray[np.float64] | None = None
    sizes: npt.NDArray[np.int32] | None = None
    flags: npt.NDArray[np.bool_] | None = None
    names: npt.NDArray[np.str_] | None = None
    any: np.ndarray[Any, Any] | None = None
    bare: np.ndarray | None = None


ARRAYS: list[tuple[str, npt.NDArray[Any]]] = [
    ("prices", np.array([1.5, -0.0, np.inf, 1e300])),
    ("prices", np.zeros((2, 3, 1))),
    ("prices", np.array([], dtype=np.float64)),
    ("prices", np.arange(12.0).reshape(3, 4)[::2, 1:].T),  # neither contiguous nor its own
    ("sizes", np.array([-(2**31), 2**31 - 1], dtype=np.int32)),
    ("flags", np.array([[True], [False]])),
    ("names", np.array(["a", "bc", "\N{SNOWMAN}"])),
    ("any", np.arange(5)),
    ("any", np.array([[1.5, 2.5]])),
    ("bare", np.array(["x"])),
]


@pytest.mark.parametrize(("field", "array"), ARRAYS)
def test_arrays_come_back_with_their_type_and_shape(
    field: str,
    array: npt.NDArray[Any],
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
) -> None:
    appender.write_message(Book(**{field: array}))
    found = queue.tailer().read_message(Book)
    assert found is not None
    read = getattr(found, field)
    assert read.dtype == array.dtype
    assert read.shape == array.shape
    assert (read == array).all()
    assert np.signbit(read).all() == np.signbit(array).all() if field == "prices" else True


WIDTHS = ["int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32"]


@pytest.mark.parametrize("dtype", WIDTHS)
def test_every_width_has_an_encoding(
    dtype: str, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    scalar = getattr(np, dtype)

    @quire.message(alias=f"ArOf{dtype}")
    @dataclass
    class One:
        values: npt.NDArray[scalar]  # type: ignore[valid-type]

    appender.write_message(One(np.array([0, 1, 100], dtype=scalar)))
    found = queue.tailer().read_message(One)
    assert found is not None
    assert found.values.dtype == scalar
    assert found.values.tolist() == [0, 1, 100]


UNFIT: list[tuple[Any, str]] = [
    (Book(prices=[1.5]), "field=prices expected=ndarray[float64] found=[1.5] type=list"),  # type: ignore[arg-type]
    (Book(prices=np.array(1.5)), "field=prices expected=ndarray[float64] found=array(1.5)"),
    (Book(prices=np.array(["a"])), "field=prices[0] expected=float64 found='a'"),
    (Book(sizes=np.array([1, 2**40])), "field=sizes[1] expected=int32 found=1099511627776"),
    (Book(sizes=np.array([[1.5]])), "field=sizes[0][0] expected=int32 found=1.5"),
    (Book(prices=np.ma.masked_array([1.0], [True])), "field=prices[0] expected=float64 found=None"),
]


@pytest.mark.parametrize(("message", "why"), UNFIT)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    message: Book, why: str, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with pytest.raises(WireError) as raised:
        appender.write_message(message)
    assert f"the value does not fit: {why}" in str(raised.value)
    assert queue.entry_count == 0


STAMPS = np.array(["2026-01-02T03:04:05"], dtype="datetime64[ns]")
UNKNOWN: list[tuple[str, npt.NDArray[Any]]] = [
    ("bare", STAMPS),
    ("bare", STAMPS.astype("datetime64[us]")),
    ("bare", np.array([5], dtype="timedelta64[ns]")),
    ("any", np.array([5], dtype="timedelta64[us]")),
    ("any", np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])),
    ("bare", np.array([1 + 2j])),
    ("bare", np.array([{"a": 1}], dtype=object)),
    ("sizes", STAMPS),
]


@pytest.mark.parametrize(("field", "array"), UNKNOWN, ids=lambda it: str(getattr(it, "dtype", it)))
def test_arrays_that_would_come_back_as_others_are_refused(
    field: str,
    array: npt.NDArray[Any],
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
) -> None:
    with pytest.raises(WireError, match="arrays of this type have no encoding") as raised:
        appender.write_message(Book(**{field: array}))
    assert f"field={field} type={array.dtype}" in str(raised.value)
    assert queue.entry_count == 0


@pytest.mark.parametrize(("dtype", "wide"), [("int8", "int64"), ("float32", "float64")])
def test_an_array_of_any_type_comes_back_with_64_bits(
    dtype: str, wide: str, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_message(Book(bare=np.array([1, 2], dtype=dtype)))
    found = queue.tailer().read_message(Book)
    assert found is not None
    assert found.bare is not None
    assert str(found.bare.dtype) == wide
    assert found.bare.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("prices: [a]", r"field=prices\[0\] expected=a number"),
        ("prices: [[1.0], [1.0, 2.0]]", r"field=prices expected=ndarray\[float64\]"),
        ("prices: {a: 1}", "field=prices expected=a number found=a map"),
        ("sizes: [1.5]", r"field=sizes\[0\] expected=an integer"),
        ("sizes: [1099511627776]", r"field=sizes\[0\] expected=an integer"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_read(
    text: str, why: str, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_yaml(text)
    tailer = queue.tailer()
    for _ in range(2):  # the position stays
        with pytest.raises(WireError, match=why):
            tailer.read_message(Book)


def test_a_scalar_and_the_numbers_of_others_are_converted(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_yaml('prices: 5\nsizes: [1, "2"]\nany: !!null ""')
    found = queue.tailer().read_message(Book)
    assert found is not None
    assert found.prices is not None
    assert found.prices.tolist() == [5.0]
    assert found.sizes is not None
    assert found.sizes.tolist() == [1, 2]
    assert found.any is None


def test_types_without_an_encoding_are_refused_where_they_are_declared() -> None:
    with pytest.raises(TypeError, match=r"type=complex128 .*field=.*Waves.values"):

        @quire.message(alias="ArWaves")
        @dataclass
        class Waves:
            values: npt.NDArray[np.complex128]


def test_columns_are_lists(queue: quire.JournalQueue, appender: quire.JournalAppender) -> None:
    @quire.message(alias="ArRow")
    @dataclass
    class Row:
        values: npt.NDArray[np.float64]

    appender.write_message(Row(np.array([1.5, 2.5])))
    rows: list[dict[str, Any]] = queue.tailer().read_batch(schema=Row).to_pylist()
    assert rows[0]["values"] == [1.5, 2.5]
