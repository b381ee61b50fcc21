"""Loads schemas from a name in a module, a file, or text."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from quire.arrow.schema import Schema

REFERENCE: Final = re.compile(r"([\w.]+):([\w.]+)")


def load_reference(module: str, name: str) -> Schema:
    """
    Return the schema of an interface, of a message class, or a schema itself, by its name.

    Raises:
        ImportError: The module does not exist.
        AttributeError: The module has no such name.
        TypeError: The named object cannot be made into a schema.
        ValueError: A field or argument has no column type.

    """
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, Schema):
        return found
    if "__quire_codec__" in vars(found):
        return Schema.from_message(found)
    return Schema.from_methods(found)


def load_schema(place: str) -> Schema:
    """
    Load a schema.

    Args:
        place: ``module:Name``, the text of :meth:`quire.Schema.to_text`, or a file that contains
            either this text or a JSON object of names and types for :class:`quire.Schema`.

    Raises:
        OSError: The file does not exist.
        ImportError: The module does not exist.
        AttributeError: The module has no such name.
        TypeError: The named object cannot be made into a schema.
        ValueError: The text is not a schema.

    """
    if found := REFERENCE.fullmatch(place):
        return load_reference(found[1], found[2])
    text = place if place.lstrip().startswith("{") else Path(place).read_text("utf-8")
    values: Any = json.loads(text)
    if isinstance(values.get("shape"), str) and {"columns", "methods"} & values.keys():
        return Schema.from_text(text)
    return Schema(values)
