"""Self-describing messages: Python classes that are encoded under a type name."""

from __future__ import annotations

import contextlib
import keyword
import types
import typing
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeVar, overload

from quire._native import Codec, Kind
from quire.calls.message_fields import ABSENT, Field, fields_of, runs_code_of_attrs
from quire.types import is_required_key, is_typed_dict, kind_of, names_around

_T = TypeVar("_T")

# How objects are made without calling `__init__`; the binding imports the second.
new_object: Any = object.__new__
set_attribute: Any = object.__setattr__


class Typed(NamedTuple):
    """
    A value under a type name that no class is registered for.

    It is written back under the same name.

    Examples:
        >>> _ = appender.write_yaml("!Position {symbol: EURUSD}")
        >>> tailer.read_message()
        Typed(name='Position', value={'symbol': 'EURUSD'})

    """

    name: str
    value: Any


class TypeLiteral(NamedTuple):
    """
    The name of a type, as a value: Java's ``Class``.

    Examples:
        >>> _ = appender.write_map({"of": quire.TypeLiteral("java.lang.String")})
        >>> tailer.read_map()["of"].name
        'java.lang.String'

    """

    name: str


@overload
def message(cls: type[_T], /) -> type[_T]: ...
@overload
def message(
    *,
    alias: str | None = None,
    bytes_layout: bool = False,
    unknown: Literal["ignore", "keep"] = "ignore",
    rename: Callable[[str], str] | Literal["camel"] | None = None,
) -> Callable[[type[_T]], type[_T]]: ...
def message(
    cls: type[_T] | None = None,
    /,
    *,
    alias: str | None = None,
    bytes_layout: bool = False,
    unknown: Literal["ignore", "keep"] = "ignore",
    rename: Callable[[str], str] | Literal["camel"] | None = None,
) -> type[_T] | Callable[[type[_T]], type[_T]]:
    """
    Register a class whose objects stand in messages.

    It is a dataclass, also one of pydantic, a class of attrs, msgspec or pydantic, a
    ``NamedTuple``, a ``TypedDict``, or an ``Enum``. Only registered classes are ever made from a
    file. Their fields are written in their order and read in any; a missing one takes its default.
    Validators and converters of pydantic and attrs run when a message is read. ``from_`` stands
    for a field named ``from``. The objects of a ``TypedDict`` are dictionaries, without the keys
    that are missing, and are written with ``write_message(message, cls)``.

    Args:
        cls: The class, when used as a decorator without arguments.
        alias: The name in messages; the class's own by default. Java's side gives its class the
            same alias, or full name.
        bytes_layout: Write the fields one after the other without names or types, as Java's
            ``BytesInBinaryMarshallable`` classes: faster, and both sides must agree on all fields.
        unknown: What becomes of fields that the class does not have: ``ignore`` them, or ``keep``
            them with the object and write them again after its own.
        rename: Makes the names in messages of those of the class: ``camel`` for ``lastPrice``.

    Raises:
        TypeError: The class is of an unsupported kind, a field's type has no encoding, or another
            class has this name.

    Examples:
        >>> from dataclasses import dataclass
        >>> @quire.message(alias="com.example.Quote", rename="camel")
        ... @dataclass
        ... class Quote:
        ...     symbol: str
        ...     last_price: float = 0.0
        >>> _ = appender.write_message(Quote("EURUSD", 1.1), typed=True)
        >>> print(tailer.read().to_yaml(), end="")
        !com.example.Quote {
          symbol: EURUSD,
          lastPrice: 1.1
        }

    """
    around = names_around(module=False)

    def register(cls: type[_T]) -> type[_T]:
        fields = fields_of(cls)
        if bytes_layout and is_typed_dict(cls):
            raise TypeError(f"a TypedDict has no fixed layout: class={cls.__qualname__}")
        renamed = _camel if rename == "camel" else rename or _plain
        resolve = _Resolver(cls, fields, renamed, around).rows
        codec = Codec(
            cls,
            alias or cls.__name__,
            resolve,
            build=_build_of(cls),
            members=None if fields is not None else Kind.enumeration(cls),
            keep_unknown=unknown == "keep",
            bytes_layout=bytes_layout,
        )
        if unknown == "keep" and not hasattr(cls, "__dict__"):
            raise TypeError(
                f"unknown fields need a class with a __dict__: class={cls.__qualname__}"
            )
        before = cls.__dict__.get("__quire_codec__")
        cls.__quire_codec__ = codec  # type: ignore[attr-defined] # it may name itself
        try:
            with contextlib.suppress(NameError):  # of a class further down: when it is used
                codec.check()
        except BaseException:
            cls.__quire_codec__ = before  # type: ignore[attr-defined]
            raise
        if fields is not None:
            cls.__quire_fields__ = _Resolver(cls, fields, renamed, around)  # type: ignore[attr-defined]
        if (other := codec.register()) is not None:
            raise TypeError(
                f"another class has this alias: alias={codec.alias} class={_named(cls)}"
                f" other={_named(other)} (give one of them another alias=)"
            )
        return cls

    return register if cls is None else register(cls)


def described_codec(cls: type, codec: Codec, look: Callable[[Any], Any]) -> Codec:
    """
    Return another codec of a registered class, whose objects have the names of their fields.

    Args:
        cls: The class.
        codec: Its own.
        look: Returns what stands for the annotation of a field.

    """
    resolver: _Resolver = vars(cls)["__quire_fields__"]
    return Codec(
        cls, codec.alias, resolver._replace(look=look).rows, build=_build_of(cls), members=None,
        keep_unknown=False, bytes_layout=False,
    )  # fmt: skip


def _named(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


class _Resolver(NamedTuple):
    """Resolves the kinds of a class's fields, once all classes they name are defined."""

    cls: type
    fields: list[Field] | None
    rename: Callable[[str], str]
    names: dict[str, Any]
    """What the function around the class knows, where it is local to one."""
    look: Callable[[Any], Any] | None = None
    """Returns what stands for an annotation."""

    def rows(self) -> tuple[list[tuple[str, str, Kind, int, Any]], bool]:
        names = self.names | {self.cls.__name__: self.cls}
        hints = typing.get_type_hints(self.cls, localns=names, include_extras=True)
        rows = [
            (
                self.rename(field.attribute),
                field.attribute,
                self.kind(field, hints),
                self.has_default(field, hints),
                field.default,
            )
            for field in self.fields or []
        ]
        names_of_fields = [row[0] for row in rows]
        twice = {name for name in names_of_fields if names_of_fields.count(name) > 1}
        if twice:
            raise TypeError(
                f"fields with one name: names={sorted(twice)} class={self.cls.__name__}"
            )
        has_post_init = hasattr(self.cls, "__post_init__") or hasattr(
            self.cls, "__attrs_post_init__"
        )
        return rows, has_post_init

    def has_default(self, field: Field, hints: dict[str, Any]) -> int:
        if not is_typed_dict(self.cls):
            return field.has_default
        # The class itself does not know where annotations are texts.
        is_required = is_required_key(hints.get(field.attribute))
        if is_required is None:
            is_required = field.attribute in self.cls.__required_keys__  # type: ignore[attr-defined]
        return 0 if is_required else ABSENT

    def kind(self, field: Field, hints: dict[str, Any]) -> Kind:
        try:
            found = hints[field.attribute]
            return kind_of(found if self.look is None else self.look(found))
        except TypeError as error:
            name = f"{self.cls.__qualname__}.{field.attribute}"
            raise TypeError(f"{error}: field={name}") from None


def _build_of(cls: type) -> str:
    """Return the fastest way in which the binding can make complete objects."""
    if is_typed_dict(cls):
        return "items"
    build = _build_by_attributes(cls)
    is_bare = build in {"set", "force"} or (build == "args" and _only_sets_fields(cls))
    return "slots" if is_bare and _keeps_fields_in_slots(cls) else build


def _build_by_attributes(cls: type) -> str:
    own_making = cls.__new__ is not new_object or hasattr(cls, "__struct_fields__")
    own_making = own_making or hasattr(cls, "__pydantic_validator__")  # its validators run
    if own_making or runs_code_of_attrs(cls):
        return "call"
    if cls.__setattr__ is set_attribute:
        return "args" if _takes_all_in_order(cls) else "set"
    return "dict" if cls.__dictoffset__ and not _has_slots(cls) else "force"


def _takes_all_in_order(cls: Any) -> bool:  # noqa: ANN401 - a dataclass, or not
    """Whether its ``__init__`` is that of a dataclass, and takes just the fields."""
    parameters = cls.__dict__.get("__dataclass_params__")
    if parameters is None or not parameters.init:
        return False
    import dataclasses

    fields = dataclasses.fields(cls)
    has_others = len(fields) < len(cls.__dict__["__dataclass_fields__"])  # only for `__init__`
    code = getattr(cls.__init__, "__code__", None)  # its own, where the class has one
    names = code.co_varnames[1 : code.co_argcount] if code else ()
    plain = all(field.init and not field.kw_only for field in fields)
    return plain and not has_others and names == tuple(field.name for field in fields)


def _keeps_fields_in_slots(cls: type) -> bool:
    fields = fields_of(cls) or ()
    found = [getattr(cls, field.attribute, None) for field in fields]
    return bool(found) and all(type(slot) is types.MemberDescriptorType for slot in found)


_CODE: Final = (
    *("co_code", "co_names", "co_consts", "co_varnames", "co_freevars", "co_cellvars", "co_flags"),
    *("co_argcount", "co_posonlyargcount", "co_kwonlyargcount"),
)


def _only_sets_fields(cls: Any) -> bool:  # noqa: ANN401 - a dataclass
    """Whether calling it runs the ``__init__`` of a dataclass, and that only sets the fields."""
    import dataclasses

    names = [field.name for field in dataclasses.fields(cls)]
    plain: Any = dataclasses.make_dataclass("plain", names)
    own, generated = cls.__init__.__code__, plain.__init__.__code__
    is_generated = all(getattr(own, part) == getattr(generated, part) for part in _CODE)
    others = type(cls).__call__ is not type.__call__ or hasattr(cls, "__post_init__")
    return is_generated and not others


def _has_slots(cls: type) -> bool:
    return any("__slots__" in base.__dict__ for base in cls.__mro__[:-1])


def _plain(name: str) -> str:
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def _camel(name: str) -> str:
    first, *rest = _plain(name).split("_")
    return first + "".join(map(str.capitalize, rest))
