"""The types of values in a pipeline file."""

from __future__ import annotations

import json
from typing import Annotated, Final, TypeAlias, TypeVar, cast

from annotated_types import Len
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    StrictStr,
    ValidationInfo,
)

from quire._common.units import duration_us
from quire.pipeline.spec.schedule import Schedule, schedule_of
from quire.pipeline.spec.yaml_lines import Document

NAME: Final = "^[A-Za-z][A-Za-z0-9_]*$"
FUNCTION: Final = "^[^:]+:[A-Za-z_][A-Za-z0-9_]*$"


def is_url(path: str) -> bool:
    """Whether a path is a URL, such as ``s3://bucket/folder``."""
    return ":/" in path


def _absolute(path: str, info: ValidationInfo) -> str:
    document: Document | None = info.context
    if document is None or is_url(path):
        return path
    return str((document.path.parent / path).resolve())


def _duration(text: str) -> str:
    duration_us(text)
    return text


def _schedule(value: object) -> Schedule:
    if not isinstance(value, str):
        raise ValueError(f"found={value!r:.60} expected: text")  # noqa: TRY004 - pydantic reports it
    return schedule_of(value)


def _names(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        raise ValueError(f"found={value!r:.60} expected: text or a list")  # noqa: TRY004
    return cast("object", value)


def _not_null(value: object) -> object:
    if value is None:
        raise ValueError("found=None expected: a value, or no key for the default")
    return value


def _option(value: object) -> str:
    try:
        return value if isinstance(value, str) else json.dumps(_not_null(value))
    except TypeError:
        raise ValueError(
            f"found={value!r:.60} expected: text, a number, true or false, a mapping or a list"
        ) from None


T = TypeVar("T")
OptionalKey: TypeAlias = Annotated[T | None, BeforeValidator(_not_null)]
Text: TypeAlias = Annotated[StrictStr, Field(min_length=1)]
Name: TypeAlias = Annotated[StrictStr, Field(pattern=NAME)]
Location: TypeAlias = Annotated[Text, AfterValidator(_absolute)]
Duration: TypeAlias = Annotated[
    Text, AfterValidator(_duration), Field(examples=["30s", "10 minutes", "1 h"])
]
Names: TypeAlias = Annotated[
    tuple[Text, ...],
    Field(min_length=1),
    BeforeValidator(_names, json_schema_input_type=Text | Annotated[list[Text], Len(1)]),
]
Options: TypeAlias = dict[
    StrictStr,
    Annotated[
        str, BeforeValidator(_option, json_schema_input_type=str | float | bool | dict | list)
    ],
]
When: TypeAlias = Annotated[Schedule, PlainValidator(_schedule, json_schema_input_type=str)]
