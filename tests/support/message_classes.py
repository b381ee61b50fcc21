"""One message as a class of each kind that :func:`quire.message` takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NotRequired, TypedDict

import attrs
import msgspec
import pydantic
from pydantic.dataclasses import dataclass as pydantic_dataclass

import quire


@quire.message(alias="KindPlain")
@dataclass
class Plain:
    symbol: str
    lots: int
    price: float
    at: str | None
    legs: list[int]


@quire.message(alias="KindTuple")
class Tuple(NamedTuple):
    symbol: str
    lots: int
    price: float
    at: str | None
    legs: list[int]


@quire.message(alias="KindDict")
class Dict(TypedDict):
    symbol: str
    lots: int
    price: float
    at: NotRequired[str | None]
    legs: list[int]


@quire.message(alias="KindModel")
class Model(pydantic.BaseModel):
    symbol: str
    lots: int
    price: float
    at: str | None
    legs: list[int]


@quire.message(alias="KindChecked")
@pydantic_dataclass
class Checked:
    symbol: str
    lots: int
    price: float
    at: str | None
    legs: list[int]


@quire.message(alias="KindAttrs")
@attrs.define
class Attrs:
    symbol: str
    lots: int
    price: float
    at: str | None
    legs: list[int]


@quire.message(alias="KindStruct")
class Struct(msgspec.Struct):
    symbol: str
    lots: int
    price: float
    at: str | None
    legs: list[int]


BY_KIND: Final[dict[str, tuple[type[Any], Callable[..., Any]]]] = {
    "dataclass": (Plain, Plain),
    "NamedTuple": (Tuple, Tuple),
    "TypedDict": (Dict, dict),
    "model": (Model, Model),
    "pydantic dataclass": (Checked, Checked),
    "attrs": (Attrs, Attrs),
    "Struct": (Struct, Struct),
}
ROWS: Final[list[dict[str, Any]]] = [
    {"symbol": "EURUSD", "lots": 1, "price": 1.25, "at": "noon", "legs": [1, 2]},
    {"symbol": "GBPUSD", "lots": -7, "price": 1.5, "at": None, "legs": [3]},
]
