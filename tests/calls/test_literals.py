"""Fields of ``Literal``: only the declared values are written, and read."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import pytest

import quire
from quire.errors import WireError


class Venue(enum.Enum):
    LDN = 1
    NYC = 2


@quire.message(alias="LitOrder")
@dataclass
class Order:
    side: Literal["buy", "sell"] = "buy"
    lots: Literal[1, 10, None] = None  # noqa: PYI061 - both forms are read
    size: Literal[1, 10] | None = None
    flag: Literal[True, "maybe"] = True
    venue: Literal[Venue.LDN] = Venue.LDN
    tags: list[Literal["a", "b"]] | None = None


@quire.message(alias="LitFixed", bytes_layout=True)
@dataclass
class Fixed:
    side: Literal["buy", "sell"]
    lots: Literal[1, 10]


class Desk(Protocol):
    def order(self, side: Literal["buy", "sell"]) -> None: ...


FIT: list[Any] = [
    Order(),
    Order("sell", 10, 1, "maybe", Venue.LDN, ["a", "b", "a"]),
    Fixed("sell", 10),
]


@pytest.mark.parametrize("message", FIT)
def test_declared_values_come_back(
    message: Any,  # noqa: ANN401 - of two classes
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
) -> None:
    appender.write_message(message)
    cls: type[Any] = message.__class__
    assert queue.tailer().read_message(cls) == message


UNFIT: list[tuple[Any, str]] = [
    (Order("hold"), "field=side expected=Literal['buy', 'sell'] found='hold' type=str"),  # type: ignore[arg-type]
    (Order(None), "field=side expected=Literal['buy', 'sell'] found=None type=NoneType"),  # type: ignore[arg-type]
    (Order(lots=2), "field=lots expected=Literal[1, 10] found=2 type=int"),  # type: ignore[arg-type]
    (Order(lots=True), "field=lots expected=Literal[1, 10] found=True type=bool"),  # type: ignore[arg-type]
    (Order(flag=1), "field=flag expected=Literal[True, 'maybe'] found=1 type=int"),  # type: ignore[arg-type]
    (Order(venue=Venue.NYC), "field=venue expected=Literal[<Venue.LDN: 1>] found=<Venue.NYC: 2>"),  # type: ignore[arg-type]
    (Order(tags=["a", "c"]), "field=tags[1] expected=Literal['a', 'b'] found='c'"),  # type: ignore[list-item]
    (Fixed("hold", 1), "field=side expected=Literal['buy', 'sell'] found='hold'"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("message", "why"), UNFIT)
def test_others_are_refused_by_name_before_anything_is_written(
    message: Any,  # noqa: ANN401 - of two classes
    why: str,
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
) -> None:
    with pytest.raises(WireError) as raised:
        appender.write_message(message)
    assert f"the value does not fit: {why}" in str(raised.value)
    assert queue.entry_count == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("side: hold", "field=side expected=Literal['buy', 'sell'] found='hold' type=str offset=6"),
        ("lots: 2", "field=lots expected=Literal[1, 10] found=2"),
        ("venue: NYC", "field=venue expected=Literal[<Venue.LDN: 1>] found=<Venue.NYC: 2>"),
        ("tags: [a, z]", "field=tags[1] expected=Literal['a', 'b'] found='z'"),
    ],
)
def test_what_others_wrote_is_checked_when_it_is_read(
    text: str, why: str, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_yaml(text)
    tailer = queue.tailer()
    for _ in range(2):  # the position stays
        with pytest.raises(WireError) as raised:
            tailer.read_message(Order)
        assert f"the value does not fit: {why}" in str(raised.value)
        assert "index=0x" in str(raised.value)


def test_a_fixed_layout_is_checked_when_it_is_read(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    @quire.message(alias="LitWide", bytes_layout=True)
    @dataclass
    class Wide:
        side: str
        lots: int

    appender.write_message(Wide("hold", 1))
    appender.write_message(Wide("buy", 2))
    tailer = queue.tailer()
    with pytest.raises(WireError, match=r"field=side expected=Literal.* found='hold'"):
        tailer.read_message(Fixed)
    tailer.read()
    with pytest.raises(WireError, match=r"field=lots expected=Literal.* found=2"):
        tailer.read_message(Fixed)


def test_scalars_of_numpy_are_the_values_that_they_equal(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_message(Order(np.str_("sell"), np.int64(10)))  # type: ignore[arg-type]
    assert queue.tailer().read_message(Order) == Order("sell", 10)


def test_arguments_of_calls_are_checked(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with pytest.raises(WireError, match=r"side.*expected=Literal.* found='hold'"):
        appender.method_writer(Desk).order("hold")  # type: ignore[arg-type]
    assert queue.entry_count == 0
    appender.write_yaml("order: hold")

    class Handler:
        def order(self, side: Literal["buy", "sell"]) -> None:
            raise AssertionError(side)

    with pytest.raises(WireError, match=r"expected=Literal.* found='hold'"):
        queue.tailer().method_reader(Handler()).read_one()


def test_columns_have_the_type_of_the_values(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_message(Order("sell", 10))
    schema = quire.Schema.from_message(Order, types={"flag": "bool"})
    rows: list[dict[str, Any]] = queue.tailer().read_batch(schema=schema).to_pylist()
    assert rows[0]["side"] == "sell"
    assert rows[0]["lots"] == FIT[1].lots
