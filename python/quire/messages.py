"""Self-describing messages: values of types that are not known here stay inert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Typed:
    """
    A value under a type name that no class is registered for: it makes nothing happen.

    It is written back as it was read.
    """

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class TypeLiteral:
    """The name of a type, as a value: Java's ``Class``."""

    name: str
