"""Forms and queries of the page, within limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.datastructures import QueryParams
from starlette.requests import Request

from quire.errors import QuireError, RefusedError
from quire.formats.adapters import adapter_of
from quire.server.creation import NUMBERS, TEXTS, creation_option
from quire.server.served_queue import ServedQueue
from quire.server.topic_names import topic_of
from quire.server.web.message_pages import MOST, PAGE, Asked, index_of
from quire.server.web.message_views import VIEWS, View
from quire.types import parse_json, parse_yaml

_FIELDS: Final = 12
_LONGEST: Final = 1000
UNKNOWN_BYTES: Final = 16 << 10
"""The longest form from a client that has not presented a token."""
FORM_BYTES: Final = 1 << 20


async def form_of(request: Request, limit: int, timeout_s: float) -> dict[str, str]:
    """
    Return the fields of a form.

    Raises:
        RefusedError: The body is too long, arrives too slowly, or is not a form.

    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise RefusedError("not a form: expected application/x-www-form-urlencoded")
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for piece in request.stream():
                body += piece
                if len(body) > limit:
                    raise RefusedError(f"the form is too long: limit={limit} bytes")
    except TimeoutError:
        raise RefusedError("the form arrived too slowly") from None
    try:
        found = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=_FIELDS,
        )
    except ValueError:
        raise RefusedError("not a form, or not in UTF-8") from None
    return dict(found)


def asked_of(query: QueryParams) -> Asked:
    """
    Return the request for messages in a query.

    Raises:
        RefusedError: The query is invalid.

    """
    if any(len(value) > _LONGEST for value in query.values()):
        raise RefusedError(f"the search is too long: limit={_LONGEST} characters for each field")
    count = query.get("count", "") or str(PAGE)
    if not (count.isascii() and count.isdecimal() and 1 <= int(count[:9]) <= MOST):
        raise RefusedError(f"not a number of messages: {count!r:.60} (1 to {MOST})")
    before = query.get("before", "")
    return Asked(
        query.get("from", "").strip(),
        index_of(before) if before else None,
        int(count),
        view_of(query),
        query.get("field", ""),
        query.get("value", ""),
        query.get("regex", ""),
        query.get("time_field", ""),
    )


def creation_of(form: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """
    Return the name and the options of the queue that a form describes.

    Raises:
        RefusedError: The name or an option is invalid.

    """
    topic = topic_of(form.get("name", "").strip().encode("utf-8", "replace"))
    given = {name: form.get(name, "").strip() for name in (*TEXTS, *NUMBERS)}
    return topic, {name: creation_option(name, text) for name, text in given.items() if text}


def view_of(query: QueryParams) -> View:
    """
    Return the form in which messages are to be shown.

    Raises:
        RefusedError: The view is unknown.

    """
    found = query.get("as", "") or "yaml"
    if found not in VIEWS:
        raise RefusedError(f"no such view: {found!r:.60} (one of {', '.join(VIEWS)})")
    return found


def message_of(queue: ServedQueue, kind: str, text: str) -> bytes:
    """
    Return the bytes of a message that was entered in a form.

    Args:
        queue: The queue to which it will be appended.
        kind: ``text``, ``yaml`` or ``json``.
        text: The text that was entered.

    Raises:
        RefusedError: The text is not valid as *kind*, or the message is empty or too long.

    """
    text = text.replace("\r\n", "\n")  # browsers send CR LF
    is_wire = adapter_of(queue.queue).is_wire
    try:
        match kind:
            case "text" if not is_wire:
                message = text.encode()
            case "text":
                message = parse_json(json.dumps(text))
            case "yaml":
                message = parse_yaml(text)
            case "json":
                message = parse_json(text)
            case _:
                raise RefusedError(f"no such kind of message: {kind!r:.60}")
    except (QuireError, ValueError, RecursionError) as error:
        if isinstance(error, RefusedError):
            raise
        raise RefusedError(f"not a valid message as {kind}: {error}") from None
    if not message:
        raise RefusedError("the message is empty")
    if len(message) > queue.longest:
        raise RefusedError(f"the message is too long: length={len(message)} limit={queue.longest}")
    return message
