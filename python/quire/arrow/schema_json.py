"""Schemas as text: JSON, with the columns as Arrow's own description of a schema in base64."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa

from quire.arrow.content import Content
from quire.arrow.plan import Method


def text_of(content: Content) -> str:
    """Return what a schema is made of as one line of JSON."""
    parts = content.parts
    told: dict[str, Any] = {"shape": content.shape}
    if isinstance(parts, tuple):
        told["methods"] = [
            {**method._asdict(), "columns": _columns_text(method.columns)} for method in parts
        ]
    else:
        told["columns"] = _columns_text(parts)
    told |= {
        "history": content.history,
        "index": content.index_name,
        "types": [*content.types],
    }
    return json.dumps(told)


def content_of(text: str) -> Content:
    """
    Return what :func:`text_of` told.

    Raises:
        ValueError: The text is no such thing.

    """
    try:
        told: dict[str, Any] = json.loads(text)
        methods = told.get("methods")
        parts = (
            _columns(told["columns"])
            if methods is None
            else tuple(
                Method(one["name"], one["id"], one["takes"], _columns(one["columns"]))
                for one in methods
            )
        )
        return Content(
            told["shape"], parts, bool(told["history"]), told["index"], (*told["types"],)
        )
    except (ValueError, TypeError, KeyError, AttributeError, OSError, pa.ArrowException):
        raise ValueError(f"not the text of a schema: text={text!r:.80}") from None


def _columns_text(columns: pa.Schema) -> str:
    return base64.b64encode(columns.serialize()).decode("ascii")


def _columns(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
