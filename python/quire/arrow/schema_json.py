"""Schemas as JSON text, with the columns as a serialised Arrow schema in Base64."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa

from quire.arrow.content import CallContent, Content, RowContent
from quire.arrow.plan import Method

# The words in stored texts, such as those of archives, that differ from the words in the code.
_STORED = {"skipped": "passed over"}
_READ = {stored: word for word, stored in _STORED.items()}


def text_of(content: Content) -> str:
    """Return the form of messages as one line of JSON."""
    values: dict[str, Any] = {"shape": content.shape}
    if isinstance(content, CallContent):
        values["methods"] = [
            {
                **method._asdict(),
                "takes": _STORED.get(method.takes, method.takes),
                "columns": _columns_text(method.columns),
            }
            for method in content.every
        ]
    else:
        values["columns"] = _columns_text(content.columns)
    values |= {
        "history": content.history,
        "index": content.index_name,
        "types": [*content.types],
    }
    return json.dumps(values)


def content_of(text: str) -> Content:
    """
    Parse the JSON of :func:`text_of`.

    Raises:
        ValueError: The text is not a schema.

    """
    try:
        values: dict[str, Any] = json.loads(text)
        common: dict[str, Any] = {
            "history": bool(values["history"]),
            "index_name": values["index"],
            "types": (*values["types"],),
        }
        if "methods" in values:
            return CallContent(tuple(_method(it) for it in values["methods"]), **common)
        is_value = {"fields": False, "value": True}[values["shape"]]
        return RowContent(_columns(values["columns"]), is_value, **common)
    except (ValueError, TypeError, KeyError, AttributeError, OSError, pa.ArrowException):
        raise ValueError(f"not the text of a schema: text={text!r:.80}") from None


def _method(values: dict[str, Any]) -> Method:
    stored: Any = values["takes"]
    takes: Any = _READ.get(stored, stored)
    return Method(values["name"], values["id"], takes, _columns(values["columns"]))


def _columns_text(columns: pa.Schema) -> str:
    return base64.b64encode(columns.serialize()).decode("ascii")


def _columns(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
