"""The fields of message classes, as each library declares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from quire.types import is_typed_dict

ABSENT: Final = 3
"""Instead of a default: an object may be without the field."""


class Field(NamedTuple):
    """A field, and its default."""

    attribute: str
    has_default: int  # 0: none, 1: a value, 2: what makes one, 3: it may be absent
    default: Any


def fields_of(cls: Any) -> list[Field] | None:  # noqa: ANN401, PLR0911 - a class of some library
    """Return the fields that its objects are made of; None for an enum."""
    import dataclasses
    import enum

    if issubclass(cls, enum.Enum):
        return None
    if is_typed_dict(cls):
        return [Field(name, 0, None) for name in cls.__annotations__]
    _check_extra(cls)
    if dataclasses.is_dataclass(cls):
        arguments = [it for it in cls.__annotations__.items() if "InitVar" in str(it[1])]
        if arguments:
            names = [name for name, _ in arguments]
            raise TypeError(f"an InitVar is not a field, and cannot be read back: names={names}")
        return [*_of_dataclass(dataclasses.fields(cls), dataclasses.MISSING)]
    if hasattr(cls, "__attrs_attrs__"):
        return [*_of_attrs(cls)]
    if hasattr(cls, "__struct_fields__"):
        return [*_of_struct(cls)]
    if hasattr(cls, "_field_defaults") and hasattr(cls, "_make"):  # a NamedTuple
        return [Field(name, int(name in cls._field_defaults), None) for name in cls._fields]
    if hasattr(cls, "__pydantic_fields__"):
        return [*_of_model(cls)]
    raise TypeError(
        "not a dataclass, an enum, a NamedTuple, a TypedDict, or a class of attrs, msgspec or "
        "pydantic: "
        f"class={cls.__qualname__} "
        "(put @dataclass below @quire.message)"
    )


def _of_dataclass(fields: tuple[Any, ...], missing: object) -> Iterator[Field]:
    for field in fields:
        if field.default is not missing:
            yield Field(field.name, 1, field.default)
        elif field.default_factory is not missing:
            yield Field(field.name, 2, field.default_factory)
        else:
            yield Field(field.name, 0, None)


def _of_attrs(cls: Any) -> Iterator[Field]:  # noqa: ANN401 - attrs is not imported
    is_called = runs_code_of_attrs(cls)
    for attribute in cls.__attrs_attrs__:
        if is_called and (not attribute.init or attribute.alias != attribute.name):
            raise TypeError(
                "a class with validators, converters or __attrs_post_init__ takes each field by "
                f"its name: field={attribute.name} init={attribute.init} alias={attribute.alias} "
                f'(declare it with init=True and alias="{attribute.name}")'
            )
        default = attribute.default
        if type(default).__name__ == "Factory":
            if default.takes_self:
                raise TypeError(f"a default that takes self: field={attribute.name}")
            yield Field(attribute.name, 2, default.factory)
        elif type(default).__name__ == "_Nothing":
            yield Field(attribute.name, 0, None)
        else:
            yield Field(attribute.name, 1, default)


def runs_code_of_attrs(cls: Any) -> bool:  # noqa: ANN401 - as above
    """Whether making an object of a class of attrs does more than to set its fields."""
    attributes = getattr(cls, "__attrs_attrs__", ())
    has_own = any(it.validator is not None or it.converter is not None for it in attributes)
    return has_own or hasattr(cls, "__attrs_post_init__")


def _of_struct(cls: Any) -> Iterator[Field]:  # noqa: ANN401 - msgspec is not imported
    required = len(cls.__struct_fields__) - len(cls.__struct_defaults__)
    for place, name in enumerate(cls.__struct_fields__):
        yield Field(name, int(place >= required), None)


def _check_extra(cls: Any) -> None:  # noqa: ANN401 - pydantic is not imported
    """Check that objects have no fields beyond those of their class."""
    config: Any = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None)
    if hasattr(cls, "__pydantic_validator__") and (config or {}).get("extra") == "allow":
        raise TypeError(
            "fields beyond those of the class would not be written: extra='allow' "
            f"class={cls.__qualname__} (declare them, for example one of dict[str, Any]; "
            'quire.message(unknown="keep") keeps those that other writers added)'
        )


def _of_model(cls: Any) -> Iterator[Field]:  # noqa: ANN401 - pydantic is not imported
    config = cls.model_config
    takes_names = config.get("populate_by_name") or config.get("validate_by_name")
    for name, field in cls.__pydantic_fields__.items():
        if field.validation_alias is not None and not takes_names:
            raise TypeError(
                f"a field with an alias needs validate_by_name=True in model_config: field={name}"
            )
        yield Field(name, int(not field.is_required()), None)
