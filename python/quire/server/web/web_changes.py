"""Changes by forms: appends, the creation of queues, and the release of messages."""

from __future__ import annotations

from typing import Any, Final, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quire._native import RollCycle
from quire.errors import QuireError, RefusedError
from quire.groups.undelivered import DeadLetter
from quire.server.served_queue import ServedQueue
from quire.server.web.message_pages import index_of, message_at
from quire.server.web.shown_letters import letters_among
from quire.server.web.shown_queues import ShownQueues
from quire.server.web.visitors import FORBIDDEN, Visitor
from quire.server.web.web_forms import (
    FORM_BYTES,
    UNKNOWN_BYTES,
    creation_of,
    form_of,
    message_of,
)
from quire.server.web.web_templates import url

SEE_OTHER: Final = 303
_BAD_REQUEST: Final = 400
_FORMATS: Final = ("chronicle", "vanilla", "quick-queue")


class Show(Protocol):
    """Renders a page from a template."""

    def __call__(
        self,
        visitor: Visitor,
        template: str,
        code: int = 200,
        /,
        **values: Any,  # noqa: ANN401 - what the template takes
    ) -> Response:
        """Return the page."""
        ...


class Changes:
    """
    The forms of the page.

    Args:
        shown: The queues that the pages show.
        show: Renders a page from a template.

    """

    def __init__(self, shown: ShownQueues, show: Show) -> None:
        self._shown, self._show = shown, show
        self._context, self._visitors = shown.context, shown.visitors

    async def _form(self, request: Request, visitor: Visitor, limit: int) -> dict[str, str]:
        form = await form_of(request, limit, self._context.limits.request_s)
        self._visitors.check_form(request, visitor, form.get("form_key", ""))
        return form

    async def append(self, request: Request, visitor: Visitor) -> Response:
        """Append a message that was written in a form."""
        form = await self._form(request, visitor, FORM_BYTES)
        queue = self._shown.queue_of(request, visitor, "append")
        message = message_of(queue, form.get("kind", "text"), form.get("message", ""))
        return await self._appended(queue, visitor, message)

    async def _appended(self, queue: ServedQueue, visitor: Visitor, message: bytes) -> Response:
        index = await self._shown.of_queue(queue, lambda: queue.append(message, may_wait=True))
        if not visitor.may("read", queue.topic):
            text = f"The message was appended, with index {index}."
            return self._show(visitor, "done.html.jinja", topic=queue.topic, text=text)
        return RedirectResponse(url("/message/", queue.topic, index=index, new=1), SEE_OTHER)

    async def append_again(self, request: Request, visitor: Visitor) -> Response:
        """Append a dead letter again to its original queue."""
        form = await self._form(request, visitor, UNKNOWN_BYTES)
        queue, index = self._shown.queue_of(request, visitor), index_of(form.get("index", ""))
        letter = await self._shown.of_queue(queue, lambda: letters_among(queue, [index]).get(index))
        topic = None if letter is None else self._shown.topic_at(letter.source, visitor)
        if letter is None or topic is None:
            raise RefusedError(f"not a dead letter of a queue on this server: index={index}")
        source = self._shown.queue_named(topic, visitor, "append")
        if not await self.is_of(source, letter):
            raise RefusedError(
                f"the queue no longer has this message: name={topic} index={letter.source_index}"
            )
        self._context.note("append again", visitor, f"{topic} {queue.topic} {index}")
        return await self._appended(source, visitor, letter.data)

    async def is_of(self, source: ServedQueue, letter: DeadLetter) -> bool:
        """Return whether a queue still has the original message of a dead letter."""
        found = await self._shown.of_queue(source, lambda: message_at(source, letter.source_index))
        return found == letter.data

    async def release(self, request: Request, visitor: Visitor) -> Response:
        """Release a message from the consumer of a group that has it."""
        form = await self._form(request, visitor, UNKNOWN_BYTES)
        queue, index = self._shown.queue_of(request, visitor), index_of(form.get("index", ""))
        name = form.get("group", "")
        try:
            await self._shown.of_queue(queue, lambda: queue.queue.group(name).release(index))
        except (QuireError, ValueError) as error:
            raise RefusedError(str(error)) from None
        self._context.note("release", visitor, f"{queue.topic} {name} {index}")
        return RedirectResponse(url("/queue/", queue.topic), SEE_OTHER)

    async def create(self, request: Request, visitor: Visitor) -> Response:
        """Show the form for a new queue, or create the queue."""
        if not visitor.may_create:
            self._context.note("refused", visitor, "create")
            raise HTTPException(FORBIDDEN, "the token may not create queues")
        if request.method == "GET":
            return self._creation(visitor, {"name": request.query_params.get("name", "")})
        form = await self._form(request, visitor, UNKNOWN_BYTES)
        try:
            return self._created(visitor, form)
        except RefusedError as refusal:
            return self._creation(visitor, form, self._context.queues.errors.text(refusal))

    def _created(self, visitor: Visitor, form: dict[str, str]) -> Response:
        topic, options = creation_of(form)
        self._visitors.check(visitor, "create", topic)
        if self._context.queues.current(topic) is not None:
            raise RefusedError(f"a queue of this name exists: name={topic}")
        self._context.create(topic, options)
        self._shown.forget_topics()
        if visitor.may("read", topic):
            return RedirectResponse(url("/queue/", topic), SEE_OTHER)
        return self._show(visitor, "done.html.jinja", topic=topic, text="The queue was created.")

    def _creation(self, visitor: Visitor, form: dict[str, str], problem: str = "") -> Response:
        return self._show(
            visitor,
            "create.html.jinja",
            _BAD_REQUEST if problem else 200,
            form=form,
            problem=problem,
            formats=_FORMATS,
            roll_cycles=[it.name for it in RollCycle.all()],
        )
