"""Schemas by where they are: a name in a module, a file, or their own text."""

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
    Return the schema that a name stands for: of an interface, a message, or one as it is.

    Raises:
        ImportError: There is no such module.
        AttributeError: It has no such name.
        TypeError: That is nothing to make a schema of.
        ValueError: A field or argument has no type that a column could have.

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
    Return the schema at a place.

    Args:
        place: ``module:Name``, the text of :meth:`quire.Schema.to_text`, or a file that holds this
            text, or a JSON object of names and types as :class:`quire.Schema` takes them.

    Raises:
        OSError: There is no such file.
        ImportError: There is no such module.
        AttributeError: It has no such name.
        TypeError: That is nothing to make a schema of.
        ValueError: It is the text of no schema.

    """
    if found := REFERENCE.fullmatch(place):
        return load_reference(found[1], found[2])
    text = place if place.lstrip().startswith("{") else Path(place).read_text("utf-8")
    told: Any = json.loads(text)
    if isinstance(told.get("shape"), str) and {"columns", "methods"} & told.keys():
        return Schema.from_text(text)
    return Schema(told)
