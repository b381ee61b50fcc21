"""The pages: their addresses, and which visitors may see them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from quire.errors import QuireError, RefusedError, UnsupportedError
from quire.server.context import Context
from quire.server.served_queue import ServedQueue
from quire.server.web import web_templates
from quire.server.web.live_views import LiveViews
from quire.server.web.message_pages import Asked, index_of, page_of
from quire.server.web.message_rows import Row, rows_of
from quire.server.web.message_views import VIEWS, text_of
from quire.server.web.queue_details import details_of
from quire.server.web.queue_listing import tree
from quire.server.web.shown_queues import ON_A_PAGE, ShownQueues
from quire.server.web.visitors import Visitor, Visitors
from quire.server.web.web_changes import SEE_OTHER, Changes
from quire.server.web.web_forms import UNKNOWN_BYTES, asked_of, form_of, view_of
from quire.server.web.web_templates import render, url

_log = logging.getLogger("quire")
_ROW_CHARACTERS: Final = 1500
_PAGE_CHARACTERS: Final = 50_000
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none';"
    " require-trusted-types-for 'script'"
)
_HEADERS: Final = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
Page = Callable[[Request, Visitor], Awaitable[Response]]


class WebApp:
    """
    The pages of one server.

    Args:
        context: What all clients of the server share.
        visitors: The visitors of its pages.

    """

    def __init__(self, context: Context, visitors: Visitors) -> None:
        self._context, self._visitors = context, visitors
        self._shown = ShownQueues(context, visitors)
        self._live = LiveViews(self._shown)
        changes = self._changes = Changes(self._shown, self.show)
        self._app = Starlette(
            routes=[
                Route("/", self._page(self._queues)),
                Route("/queue/{topic:path}", self._page(self._queue)),
                Route("/messages/{topic:path}", self._page(self._messages)),
                Route("/message/{topic:path}", self._page(self._message)),
                Route("/whole/{topic:path}", self._page(self._whole)),
                Route("/create", self._page(changes.create), methods=["GET", "POST"]),
                Route("/append/{topic:path}", self._page(changes.append), methods=["POST"]),
                Route("/again/{topic:path}", self._page(changes.append_again), methods=["POST"]),
                Route("/release/{topic:path}", self._page(changes.release), methods=["POST"]),
                Route("/live", self._page(self._live.queues)),
                Route("/live/{topic:path}", self._page(self._live.messages)),
                Route("/sign-in", self._sign_in, methods=["GET", "POST"]),
                Route("/sign-out", self._page(self._sign_out), methods=["POST"]),
                Route("/static/page.css", _static(web_templates.style_sheet, "text/css")),
                Route("/static/icon.svg", _static(web_templates.icon, "image/svg+xml")),
                Route("/static/page.js", _static(web_templates.script, "text/javascript")),
            ],
            exception_handlers={HTTPException: self._no_page},
        )

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with the headers of all responses."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def end_live(self) -> None:
        """End the live pages."""
        self._live.end()

    def close(self) -> None:
        """End the threads; all requests have been answered."""
        self._shown.close()

    def _page(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint for Starlette that does what all pages have in common."""

        async def answer(request: Request) -> Response:
            visitor = self._visitors.of(request)
            self._context.commands += 1
            try:
                self._visitors.check_host(request)
                if visitor.is_admitted:
                    response = await page(request, visitor)
                else:
                    response = self._to_sign_in(request, visitor)
            except (RefusedError, UnsupportedError) as refusal:
                response = self._failed(request, visitor, 400, str(refusal))
            except HTTPException as refusal:
                response = self._failed(request, visitor, refusal.status_code, refusal.detail)
            except (QuireError, OSError, ValueError) as error:
                response = self._failed(request, visitor, 500, str(error))
            except Exception:  # noqa: BLE001 - of one visitor alone
                _log.exception("a page failed: peer=%s", visitor.peer)
                response = self._failed(request, visitor, 500, "see the server's log")
            self._visitors.keep(visitor, response)
            return response

        return answer

    def show(self, visitor: Visitor, template: str, code: int = 200, /, **values: Any) -> Response:  # noqa: ANN401
        """Return a page from a template."""
        text = render(
            template,
            visitor=visitor,
            form_key=self._visitors.form_key(visitor),
            needs_token=self._context.needs_token(),
            **values,
        )
        return HTMLResponse(text, code)

    def _failed(self, request: Request, visitor: Visitor, status: int, text: str) -> Response:
        del request
        text = self._context.queues.errors.text(text)
        return self.show(visitor, "failed.html.jinja", status, status=status, text=text)

    async def _no_page(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        visitor = self._visitors.of(request)
        text = "There is no such page." if status == 404 else "This request is not supported."  # noqa: PLR2004
        return self._failed(request, visitor, status, text)

    def _to_sign_in(self, request: Request, visitor: Visitor) -> Response:
        if visitor.by_header or request.url.path.startswith("/live"):
            response = self._failed(request, visitor, 401, "The token is missing or not valid.")
            response.headers["www-authenticate"] = "Bearer"
            return response
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(url("/sign-in", next=asked), SEE_OTHER)

    async def _sign_in(self, request: Request) -> Response:
        visitor = self._visitors.of(request)
        after, problem = _within(request.query_params.get("next", "/")), ""
        try:
            self._visitors.check_host(request)
            if request.method == "POST":
                form = await form_of(request, UNKNOWN_BYTES, self._context.limits.greeting_s)
                self._visitors.check_form(request, visitor, form.get("form_key", ""))
                response: Response = RedirectResponse(after, SEE_OTHER)
                if self._visitors.sign_in(visitor, form.get("token", ""), response):
                    return response
                problem = "The token is not valid: it is wrong, has expired, or was revoked."
        except RefusedError as refusal:
            problem = str(refusal)
        status = 401 if problem else 200
        response = self.show(visitor, "sign_in.html.jinja", status, after=after, problem=problem)
        self._visitors.keep(visitor, response)
        return response

    async def _sign_out(self, request: Request, visitor: Visitor) -> Response:
        form = await form_of(request, UNKNOWN_BYTES, self._context.limits.greeting_s)
        self._visitors.check_form(request, visitor, form.get("form_key", ""))
        response = RedirectResponse("/sign-in", SEE_OTHER)
        self._visitors.sign_out(visitor, response)
        return response

    async def _queues(self, request: Request, visitor: Visitor) -> Response:
        names, page, total = await self._shown.chosen(request, visitor)
        found = await self._shown.listed(names)
        return self.show(
            visitor,
            "queues.html.jinja",
            rows=[*tree(found)],
            name=request.query_params.get("name", ""),
            page=page,
            pages=max(1, -(-total // ON_A_PAGE)),
            total=total,
            peers=self._context.queues.peers.all,
            may_create=visitor.may_create,
        )

    async def _queue(self, request: Request, visitor: Visitor) -> Response:
        queue, errors = self._shown.queue_of(request, visitor), self._context.queues.errors
        details = await self._shown.of_queue(queue, lambda: details_of(queue.queue, errors))
        (listed,) = await self._shown.listed([queue.topic])
        letters = await self._shown.letters(queue, visitor)
        return self.show(
            visitor,
            "queue.html.jinja",
            topic=queue.topic,
            listed=listed,
            details=details,
            held=[it for it in letters if it.topic == queue.topic],
            lost=[it for it in letters if it.topic != queue.topic],
            topic_at=partial(self._shown.topic_at, visitor=visitor),
            may_release=not queue.queue.read_only,
            may_append=visitor.may("append", queue.topic) and not queue.queue.read_only,
        )

    async def _messages(self, request: Request, visitor: Visitor) -> Response:
        queue, asked = self._shown.queue_of(request, visitor), asked_of(request.query_params)

        def found() -> tuple[Any, list[Any]]:
            page = page_of(queue, asked)
            time_field = asked.time_field
            return page, rows_of(queue, page.messages, asked.view, _ROW_CHARACTERS, time_field)

        page, rows = await self._shown.of_queue(queue, found)
        return self.show(
            visitor,
            "messages.html.jinja",
            topic=queue.topic,
            asked=asked,
            page=page,
            rows=rows,
            views=VIEWS,
            following=page.following or (page.messages[-1][0] + 1 if page.messages else 0),
        )

    async def _one(
        self, request: Request, queue: ServedQueue
    ) -> tuple[int, bytes, int | None, int]:
        """Return a message with its index, and where its neighbours are."""
        index = index_of(request.query_params.get("index", ""))
        step = queue.numbering.step

        page = await self._shown.of_queue(queue, lambda: page_of(queue, Asked(str(index), count=1)))
        if not page.messages or page.messages[0][0] != index:
            raise RefusedError(f"no such message: index={index} name={queue.topic}")
        return index, page.messages[0][1], page.before, index + step

    async def _message(self, request: Request, visitor: Visitor) -> Response:
        queue, view = self._shown.queue_of(request, visitor), view_of(request.query_params)
        index, data, before, following = await self._one(request, queue)
        numbering, time_field = queue.numbering, request.query_params.get("time_field", "")[:1000]
        (row,) = await self._shown.of_queue(
            queue, lambda: rows_of(queue, [(index, data)], view, _PAGE_CHARACTERS, time_field)
        )
        source, may_append_again = await self._source(row, visitor)
        return self.show(
            visitor,
            "message.html.jinja",
            topic=queue.topic,
            row=row,
            source=source,
            may_append_again=may_append_again,
            time_field=time_field,
            view=view,
            views=VIEWS,
            cycle=numbering.to_cycle(index),
            sequence=numbering.to_sequence(index),
            before=before,
            following=following,
            is_new=request.query_params.get("new") == "1",
        )

    async def _source(self, row: Row, visitor: Visitor) -> tuple[str | None, bool]:
        """Return a dead letter's original queue, and whether it may be appended there again."""
        topic = None if row.letter is None else self._shown.topic_at(row.letter.source, visitor)
        if row.letter is None or topic is None:
            return None, False
        try:
            queue = self._context.queues.current(topic)
            if queue is None:
                return None, False
            may_append = visitor.may("append", topic) and not queue.queue.read_only
            return topic, may_append and await self._changes.is_of(queue, row.letter)
        except (QuireError, OSError):  # damaged, or moved to another server: its own page says so
            return None, False

    async def _whole(self, request: Request, visitor: Visitor) -> Response:
        """Return a message as a download, which no browser displays, whatever it contains."""
        queue, view = self._shown.queue_of(request, visitor), view_of(request.query_params)
        index, data, _, _ = await self._one(request, queue)
        kind, ending = "application/octet-stream", "bin"
        if view != "bytes":
            text = await self._shown.in_thread(lambda: text_of(index, data, view))
            data, kind = text.encode("utf-8", "surrogatepass"), "text/plain; charset=utf-8"
            ending = {"yaml": "yaml", "json": "json"}.get(view, "txt")
        name = f"message-{index}.{ending}"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(data, media_type=kind, headers=headers)


def _within(address: str) -> str:
    """Return an address if it is within the site; otherwise that of the list."""
    is_own = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_own and address.isprintable() and address.isascii() else "/"


def _static(text: Callable[[], str], kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        return Response(text(), media_type=kind)

    return answer
