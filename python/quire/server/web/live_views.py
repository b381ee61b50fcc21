"""Live pages in a browser, updated by server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from quire._common.terminal import escape_controls
from quire._waiting.sleeping import Sleep, sleep_async
from quire.errors import QuireError
from quire.formats.columns import Columns
from quire.server.client_shares import ClientShares, name_of
from quire.server.served_queue import ServedQueue
from quire.server.web.message_pages import Asked
from quire.server.web.message_rows import Row, rows_of
from quire.server.web.shown_queues import ShownQueues
from quire.server.web.visitors import Visitor
from quire.server.web.web_forms import asked_of
from quire.server.web.web_templates import count, rate, size, url

_EVERY_S: Final = 2.0
_AT_ONCE: Final = 50
_BYTES: Final = 1 << 20
_PAUSE_S: Final = 0.25
_AGAIN_S: Final = 5.0
_CHARACTERS: Final = 1500


class LiveViews:
    """
    The live pages.

    Args:
        shown: The queues that the pages show.

    """

    def __init__(self, shown: ShownQueues) -> None:
        self._shown, limits = shown, shown.context.limits
        refusal = "too many live pages are open"
        self._shares = ClientShares(refusal, limits.live_views, limits.live_views_of_one)
        self._ended = asyncio.Event()
        self._sleeps: set[Sleep] = set()

    def end(self) -> None:
        """End all live pages."""
        self._ended.set()
        for sleep in self._sleeps:
            sleep.unpause()

    def _answer(
        self, visitor: Visitor, events: AsyncGenerator[str], *queues: ServedQueue
    ) -> Response:
        self._shares.check(name_of(visitor))
        bounded = self._bounded(visitor, events, queues)
        return StreamingResponse(bounded, media_type="text/event-stream")

    async def _bounded(
        self, visitor: Visitor, events: AsyncGenerator[str], queues: Sequence[ServedQueue]
    ) -> AsyncGenerator[str]:
        """Yield events while the visitor is admitted and the server runs."""
        using = self._shown.context.queues.using(*queues)
        try:
            with self._shares.holding(name_of(visitor)), using:
                yield "retry: 5000\n\n"
                async for event in events:
                    if self._ended.is_set() or not self._shown.visitors.still(visitor):
                        return
                    yield event
        except (QuireError, OSError) as error:
            yield _event("trouble", {"text": self._shown.context.queues.errors.text(error)})
        finally:
            await events.aclose()

    async def queues(self, request: Request, visitor: Visitor) -> Response:
        """Return the numbers of the queues in a list whenever they change."""
        names, _, _ = await self._shown.chosen(request, visitor)
        return self._answer(visitor, self._numbers(names))

    async def _numbers(self, names: list[str]) -> AsyncGenerator[str]:
        known: dict[str, dict[str, str]] = {}
        while not self._ended.is_set():
            changed: list[dict[str, str]] = []
            for it in await self._shown.listed(names):
                row = {
                    "topic": it.topic,
                    "messages": count(it.messages),
                    "rate": rate(it.rate),
                    "lag": count(it.lag),
                    "size": size(it.size),
                    "cycles": count(it.cycles),
                }
                if known.get(it.topic) != row:
                    known[it.topic] = row
                    changed.append(row)
            yield _event("queues", changed) if changed else ":\n\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _EVERY_S)

    async def messages(self, request: Request, visitor: Visitor) -> Response:
        """Return the messages of a queue as they arrive."""
        queue, asked = self._shown.queue_of(request, visitor), asked_of(request.query_params)
        return self._answer(visitor, self._news(queue, asked), queue)

    async def _news(self, queue: ServedQueue, asked: Asked) -> AsyncGenerator[str]:
        tailer = queue.new_tailer()
        sleep = Sleep(tailer)
        self._sleeps.add(sleep)
        try:
            tailer.to_end()
            yield _event("following", {})
            while not self._ended.is_set():
                if not await sleep_async(tailer, _AGAIN_S, sleep):
                    yield ":\n\n"
                if self._ended.is_set():
                    return
                columns = await self._shown.of_queue(
                    queue, lambda: Columns.read(tailer, _AT_ONCE, max_bytes=_BYTES)
                )
                if not len(columns):
                    continue
                rows = await self._shown.of_queue(queue, partial(_rows, queue, columns, asked))
                yield _event("messages", {"rows": rows})
                if len(columns) == _AT_ONCE:  # nobody reads that fast: continue with the newest
                    before = columns.indexes[-1]
                    tailer.to_end()
                    yield _event("skipped", {"after": before})
                await asyncio.sleep(_PAUSE_S)
        finally:
            self._sleeps.discard(sleep)
            tailer.close()


def _rows(queue: ServedQueue, columns: Columns, asked: Asked) -> list[dict[str, Any]]:
    messages = [
        (columns.indexes[place], bytes(columns.payload(place))) for place in range(len(columns))
    ]
    return [
        _shown(queue.topic, row, asked)
        for row in rows_of(queue, messages, asked.view, _CHARACTERS, asked.time_field)
    ]


def _shown(topic: str, row: Row, asked: Asked) -> dict[str, Any]:
    it, at = row.message, row.time
    address = url(
        "/message/", topic, index=it.index, time_field=asked.time_field, **{"as": asked.view}
    )
    return {
        "index": str(it.index),
        "url": address,
        "size": size(it.size),
        "time": None if at is None else {"iso": at.iso, "text": at.text, "title": at.title},
        "why": escape_controls(row.why),
        "text": it.text,
        "fields": it.fields,
        "note": it.note,
        "cut": it.is_cut,
    }


def _event(name: str, data: object) -> str:
    """Return an event with JSON data, which is ASCII without line breaks."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
