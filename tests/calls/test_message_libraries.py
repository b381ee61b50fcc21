"""Messages of the classes that other libraries make: NamedTuple, pydantic's, attrs'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import attrs
import pydantic
import pytest
from pydantic.dataclasses import dataclass as pydantic_dataclass

import quire


@quire.message(alias="LibPoint")
class Point(NamedTuple):
    x: int
    y: float = 0.5


@quire.message(alias="LibTrade")
class Trade(pydantic.BaseModel):
    symbol: str
    price: Annotated[float, pydantic.Field(gt=0)]
    tags: list[str] = pydantic.Field(default_factory=list)
    at: Point = Point(1)


@quire.message(alias="LibStrict")
@pydantic_dataclass
class Strict:
    name: str
    count: int = 1

    @pydantic.field_validator("name")
    @classmethod
    def _upper(cls, name: str) -> str:
        if not name:
            raise ValueError("a name is needed")
        return name.upper()


@quire.message(alias="LibQuote")
@attrs.define
class Quote:
    symbol: str
    bid: float = 1.5


OBJECTS: list[Any] = [
    Point(1, 2.5),
    Trade(symbol="EURUSD", price=1.1, tags=["a"], at=Point(3)),
    Strict("book", 2),
    Quote("EURUSD"),
]


@pytest.mark.parametrize("message", OBJECTS, ids=lambda it: type(it).__name__)
@pytest.mark.parametrize("typed", [False, True])
def test_objects_are_read_as_they_were_written(
    message: Any,  # noqa: ANN401 - of several classes
    typed: bool,  # noqa: FBT001 - a parameter of the test
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
) -> None:
    appender.write_message(message, typed=typed)
    cls: Any = message.__class__
    found = queue.tailer().read_message(None if typed else cls)
    assert found == message
    assert type(found) is type(message)


DEFAULTS: list[tuple[type[Any], str, Any]] = [
    (Point, "x: 7", Point(7)),
    (Trade, "symbol: X\nprice: 2.0", Trade(symbol="X", price=2.0)),
    (Strict, "name: x", Strict("x")),
    (Quote, "symbol: X", Quote("X")),
]


@pytest.mark.parametrize(("cls", "text", "expected"), DEFAULTS)
def test_missing_fields_take_their_defaults(
    cls: type[Any],
    text: str,
    expected: Any,  # noqa: ANN401 - of several classes
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
) -> None:
    appender.write_yaml(text)
    assert queue.tailer().read_message(cls) == expected


@pytest.mark.parametrize(("cls", "text"), [(Trade, "symbol: X\nprice: -1.0"), (Strict, "name: ''")])
def test_validators_run_when_a_message_is_read(
    cls: type[Any], text: str, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    index = appender.write_yaml(text)
    tailer = queue.tailer()
    place = f"index={index:#x} file={queue.current_file} position="
    for _ in range(2):  # the position stays
        with pytest.raises(pydantic.ValidationError) as caught:
            tailer.read_message(cls)
        assert [note.startswith(place) for note in caught.value.__notes__] == [True]
    assert tailer.read_map() is not None


def test_a_field_that_is_missing_is_reported_as_of_any_class(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_yaml("price: 1.0")
    with pytest.raises(quire.errors.WireError, match="field=symbol class=LibTrade"):
        queue.tailer().read_message(Trade)


def test_a_validator_may_change_a_value(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_yaml("name: book")
    found = queue.tailer().read_message(Strict)
    assert found is not None
    assert found.name == "BOOK"


def test_fields_with_an_alias_need_their_names(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with pytest.raises(TypeError, match=r"validate_by_name=True .*field=last"):

        @quire.message(alias="LibAliased")
        class Aliased(pydantic.BaseModel):
            last: float = pydantic.Field(alias="lastPrice")

    @quire.message(alias="LibNamed", rename="camel")
    class Named(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(validate_by_name=True)
        last_price: float = pydantic.Field(alias="lastPrice")

    appender.write_yaml("lastPrice: 1.0")
    found = queue.tailer().read_message(Named)
    assert found is not None
    assert found.last_price == 1.0


def test_columns_have_the_fields(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    written: list[tuple[type[Any], list[Any]]] = [
        (Trade, [Trade(symbol="EURUSD", price=1.1)]),
        (Point, [Point(1), Point(2)]),
        (Strict, [Strict("a")]),
    ]
    for cls, rows in written:
        tailer = queue.tailer()
        tailer.to_end()
        for row in rows:
            appender.write_message(row)
        batch = tailer.read_batch(schema=cls)
        assert batch.num_rows == len(rows)
        assert {*batch.schema.names} == {"index", *cls.__annotations__}


HANDLED: list[tuple[type[Any], Callable[[], Any]]] = [
    (Point, lambda: Point(1)),
    (Trade, lambda: Trade(symbol="X", price=1.0)),
]


@pytest.mark.parametrize(("cls", "make"), HANDLED)
def test_they_are_arguments_of_calls(
    cls: type[Any],
    make: Callable[[], Any],
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
) -> None:
    found: list[Any] = []

    class Handler:
        def on(self, message: cls) -> None:  # type: ignore[valid-type]
            found.append(message)

    appender.method_writer(Handler).on(make())
    assert queue.tailer().method_reader(Handler()).read_one()
    assert found == [make()]


def _upper(text: str) -> str:
    return text.upper()


@quire.message(alias="LibChecked")
@attrs.frozen
class Checked:
    lots: int = attrs.field(validator=attrs.validators.gt(0))
    side: str = attrs.field(default="buy", converter=_upper)


def test_validators_and_converters_of_attrs_run_when_a_message_is_read(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_yaml("lots: 3\nside: sell")
    appender.write_yaml("lots: 4")
    index = appender.write_yaml("lots: -3")
    tailer = queue.tailer()
    assert tailer.read_messages(Checked, 2) == [Checked(3, "sell"), Checked(4)]
    for _ in range(2):  # the position stays
        with pytest.raises(ValueError, match="'lots' must be > 0: -3") as caught:
            tailer.read_message(Checked)
        assert [f"index={index:#x}" in note for note in caught.value.__notes__] == [True]


def test_checked_fields_of_attrs_are_taken_by_their_names() -> None:
    with pytest.raises(TypeError, match=r'field=_lots .*alias=lots .*alias="_lots"'):

        @quire.message(alias="LibPrivate")
        @attrs.define
        class Private:
            _lots: int = attrs.field(validator=attrs.validators.gt(0))

    with pytest.raises(TypeError, match="field=made init=False"):

        @quire.message(alias="LibMade")
        @attrs.define
        class Made:
            lots: int = attrs.field(converter=int)
            made: int = attrs.field(default=1, init=False)

    @quire.message(alias="LibPrivateNamed")
    @attrs.define
    class Named:
        _lots: int = attrs.field(validator=attrs.validators.gt(0), alias="_lots")


def test_fields_beyond_those_of_the_class_are_refused_with_the_class() -> None:
    with pytest.raises(TypeError, match=r"extra='allow' class=.*Open .*dict\[str, Any\]"):

        @quire.message(alias="LibOpen")
        class Open(pydantic.BaseModel):
            model_config = pydantic.ConfigDict(extra="allow")
            x: int

    with pytest.raises(TypeError, match="extra='allow'"):

        @quire.message(alias="LibOpenClass")
        @pydantic_dataclass(config=pydantic.ConfigDict(extra="allow"))
        class OpenClass:
            x: int


def test_fields_that_a_forbidding_class_lacks_are_skipped(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    @quire.message(alias="LibClosed")
    class Closed(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="forbid")
        x: int

    appender.write_yaml("x: 1\ny: 2")  # of a writer with a later class
    assert queue.tailer().read_message(Closed) == Closed(x=1)
