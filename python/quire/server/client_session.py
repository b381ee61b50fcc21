"""A client's session, without I/O: bytes in, bytes out."""

from __future__ import annotations

import itertools
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from quire.errors import QuireError, RefusedError, WaitTimeoutError
from quire.recording.addresses import Address
from quire.server.answers import Answer, encoded
from quire.server.audit import shown_command
from quire.server.client_shares import name_of
from quire.server.requests import BEFORE_AUTHENTICATION, Request, Requests
from quire.server.served_queue import ServedQueue
from quire.server.tokens import Right, Token

if TYPE_CHECKING:
    from concurrent.futures import Future

    from quire.server.context import Context

_log = logging.getLogger("quire")
_numbers = itertools.count(1)
_TURN_S: Final = 0.005
_MOST_SEEN: Final = 1000


@dataclass(slots=True)
class Waiting:
    """
    A command that waits for messages.

    Attributes:
        topics: The queues that it waits for.
        attempt: Returns the answer once there is one, or the steps that complete it.
        until: When it ends, by the monotonic clock; None: never.
        ends_with: The answer then.
        yields: Whether it ends when the client sends its next command.

    """

    topics: tuple[str, ...]
    attempt: Callable[[], Answer | Steps]
    until: float | None
    ends_with: Answer
    yields: bool = False


@dataclass(slots=True)
class Later:
    """
    A command that takes long and is executed by a thread.

    Attributes:
        call: Returns the answer, or a future of it.
        count: How many commands it stands for: an error is the answer to each.
        limit_s: How long the future that *call* returned is waited for; None: without limit.
        ends_with: With a limit, returns the answer, whether the time was up or not.
        is_begun: Whether a thread has started it.
        topics: The queues that it uses.
        line: The queue to which it appends, if it may have to wait in line for its lock.
        together: How many commands of the line have threads at once.
        gives_up: Returns the exception to raise instead of calling *call*, given the error of an
        earlier command in the line.

    """

    call: Callable[[], Answer | Future[Answer]]
    count: int = 1
    limit_s: float | None = None
    ends_with: Callable[[], Answer] = lambda: None
    is_begun: bool = False
    topics: tuple[str, ...] = ()
    line: str | None = None
    together: int = 1
    gives_up: Callable[[Exception], Exception] = lambda error: error


@dataclass(slots=True)
class Steps:
    """
    A long command that the event loop executes part by part.

    Attributes:
        parts: Yields after each part, so that other clients are served; returns the answer, or a
            waiting command.
        topics: The queues that it uses.

    """

    parts: Generator[None, None, Answer | Waiting | Steps]
    topics: set[str] = field(default_factory=set[str])

    def advance(self) -> Outcome:
        """Execute the next part; return the answer, or the command itself if there are more."""
        try:
            next(self.parts)
        except StopIteration as done:
            outcome: Outcome = done.value
            return outcome
        return self


class Holding(Protocol):
    """Something that a client holds while it is connected, such as a named tailer."""

    def close(self) -> None:
        """Release it."""
        ...


Outcome: TypeAlias = "Answer | Waiting | Later | Steps"
Handler: TypeAlias = "Callable[[Session, Sequence[bytes]], Outcome]"


class Session:
    """
    The server's side of one client's connection, without the socket.

    Args:
        context: The state that all sessions share.
        peer: The client's address, for lists, the log and the audit log.
        reached: The host and the port at which the client reached the server.
        certificate: The name in the client's certificate.

    """

    def __init__(
        self, context: Context, peer: str, reached: Address, certificate: str = ""
    ) -> None:
        self.context, self.peer, self.reached = context, peer, reached
        self.certificate = certificate
        self.number = next(_numbers)
        self.protocol, self.name = 2, ""
        self.library = {"lib-name": "", "lib-ver": ""}
        self.token: Token | None = None
        self.commands: deque[Request] = deque()
        self.waiting: Waiting | None = None
        self.later: Later | None = None
        self.steps: Steps | None = None
        self.is_closing = self.is_in_transaction = False
        self.began_s = self.heard_s = time.monotonic()
        self._requests = Requests(BEFORE_AUTHENTICATION)
        self._begun = ("", 0)
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._seen: set[tuple[Right, str]] = set()
        self.request: Sequence[bytes] = ()
        self.held: dict[tuple[object, ...], Holding] = {}
        self._held_of: dict[tuple[object, ...], tuple[str, ...]] = {}

    def check_held(self) -> None:
        """
        Check that the client may hold one more tailer, member or part.

        Raises:
            RefusedError: The client holds too many.

        """
        if len(self.held) >= (most := self.context.limits.held):
            raise RefusedError(
                f"too many tailers, members of groups and parts of batches are open: limit={most}"
                " (close some, or open others on another connection)"
            )

    def hold(self, key: tuple[object, ...], one: Holding, *topics: str) -> None:
        """Hold a part of queues for the client; release it at once if the client is gone."""
        self._held_of = {it: of for it, of in self._held_of.items() if it in self.held}
        self._held_of[key] = topics
        self.held[key] = one
        if self.is_closing:
            self.release()

    def used_topics(self) -> Iterator[str]:
        """Yield the names of the queues that a long command uses, or that the client holds."""
        if self.steps is not None:
            yield from self.steps.topics
        for key, topics in [*self._held_of.items()]:
            if key in self.held:
                yield from topics

    @property
    def is_admitted(self) -> bool:
        """Whether the client may send commands: it has a valid token, or needs none."""
        if not self.context.needs_token():
            return True
        tokens = self.context.tokens
        return self.token is not None and tokens is not None and tokens.still(self.token)

    def check_admitted(self) -> None:
        """
        Check that the client may send commands, and be answered.

        Raises:
            RefusedError: The client has no valid token, and needs one.

        """
        if not self.is_admitted:
            raise RefusedError("NOAUTH Authentication required.")

    def check_transaction(self) -> None:
        """
        Check that the client is in no transaction.

        Raises:
            RefusedError: The client is in a transaction, which was refused as a whole.

        """
        if self.is_in_transaction:
            raise RefusedError(
                "not executed: MULTI was refused (end the transaction with EXEC or DISCARD)"
            )

    def receive(self, data: bytes) -> None:
        """Take bytes that the client sent; :meth:`run` executes their commands."""
        if self.is_closing:
            return
        self.heard_s = time.monotonic()
        self.set_limits()
        try:
            self._requests.feed(data, self.commands)
            self._count_begun()
        except RefusedError as refusal:
            self.commands.append([b"", str(refusal).encode()])  # after what was asked before
            _log.warning("disconnected a client: peer=%s reason=%s", self.peer, refusal)
            self._forget_begun()

    def _count_begun(self) -> None:
        """
        Count the bytes of an incomplete request.

        Raises:
            RefusedError: The incomplete requests of the client, on all connections, are too long.

        """
        name, count = self._begun
        if not count and not self._requests.pending:
            return
        self.context.begun.remove(name, count)
        self._begun = ("", 0)
        name, count = name_of(self), self._requests.pending
        self.context.begun.add(name, count)
        self._begun = (name, count)

    def _forget_begun(self) -> None:
        """Free the memory of an incomplete request that is given up."""
        self._requests = Requests(BEFORE_AUTHENTICATION)
        self._count_begun()

    def set_limits(self) -> None:
        """Set the limits of requests to what the client may send now."""
        is_known = self.is_admitted
        self._requests.limits = (
            self.context.limits.of_requests if is_known else BEFORE_AUTHENTICATION
        )

    def is_late(self, now_s: float) -> bool:
        """Return whether the client takes too long to authenticate or to send a request."""
        limits = self.context.limits
        if not self.is_admitted:
            return now_s - self.began_s > limits.greeting_s
        return bool(self._requests.pending) and now_s - self.heard_s > limits.request_s

    @property
    def is_idle(self) -> bool:
        """Whether no command is waiting or running."""
        is_free = self.waiting is None and self.later is None and self.steps is None
        return is_free and not self.commands

    @property
    def may_run(self) -> bool:
        """Whether the next command, or the next part of one, can be executed now."""
        if self.steps is not None:  # to its end, also if the client is gone
            return True
        is_free = self.waiting is None and self.later is None and not self.is_closing
        return is_free and bool(self.commands)

    def run(self) -> bool:
        """
        Execute commands for a few milliseconds, until one waits or enough is to be sent.

        Returns:
            Whether to call again soon.

        """
        ends = time.monotonic() + _TURN_S
        while self.may_run:
            if self._out_bytes > self.context.limits.waiting_bytes:
                return False
            if self.steps is not None:
                self._advance(self.steps)
            else:
                self._run_one(self.commands.popleft())
            if time.monotonic() > ends:
                return self.may_run
        return False

    def _advance(self, steps: Steps) -> None:
        self.steps = None

        def advanced() -> Outcome:
            self.check_admitted()
            return steps.advance()

        self._take(advanced)

    def _run_one(self, request: Request) -> None:
        if isinstance(request, tuple):
            self.context.commands += request[1]
            self._take(lambda: self.context.add_all(self, request), request[1])
            return
        if not request[0] and len(request) == 2:  # noqa: PLR2004 - see receive
            self._say(RefusedError(request[1].decode()))
            self.close()
            return
        self.context.commands += 1
        self._take(lambda: self.context.carry_out(self, request))

    def _take(self, call: Callable[[], Outcome], count: int = 1) -> None:
        """Answer with the result of a call, or answer each command with its error, or wait."""
        queues, asked_for = self.context.queues, list[str]()
        queues.asked_for = asked_for
        try:
            outcome = call()
        except RefusedError as refusal:
            outcome = refusal
        except (QuireError, OSError, ValueError) as error:
            outcome = self._failed(error)
        except Exception:  # noqa: BLE001 - of one client alone
            _log.exception("a command failed: peer=%s", self.peer)
            outcome = RefusedError("internal error: see the server's log")
        finally:
            queues.asked_for = None
        match outcome:
            case Waiting() if outcome.yields and self.commands:
                self._say(outcome.ends_with)
            case Waiting():
                self.waiting = outcome
            case Later():
                outcome.topics = tuple(asked_for)
                self.later = outcome
            case Steps():
                outcome.topics.update(asked_for)
                self.steps = outcome
            case RefusedError():
                self.say_all([queues.errors.refusal(outcome)] * count)
            case _:
                self._say(outcome)

    def _failed(self, error: Exception) -> RefusedError:
        """Return the answer to a command that failed."""
        name = type(error).__name__.removesuffix("Error").upper()
        code = name if isinstance(error, QuireError) and name.isalpha() else "ERR"
        text = str(error)
        if isinstance(error, WaitTimeoutError):
            facts = {"index": error.index, "acknowledged": {**error.acknowledged}}
            text = f"{text} {json.dumps(facts)}"
        return RefusedError(f"{code} {text}")

    def _say(self, answer: Answer) -> None:
        data = encoded(answer, self.protocol)
        self._out.append(data)
        self._out_bytes += len(data)

    def say_all(self, answers: Sequence[Answer]) -> None:
        """Answer several commands at once."""
        for answer in answers:
            self._say(answer)

    def wake(self, now_s: float) -> None:
        """Retry a command that waits for messages, and end it if its time is up."""
        waiting = self.waiting
        if waiting is None:
            return
        self.waiting = None

        def ended() -> Outcome:
            self.check_admitted()
            answer = waiting.attempt()
            if answer is not None:
                return answer
            if waiting.until is not None and now_s >= waiting.until:
                return waiting.ends_with
            return waiting

        self._take(ended)

    def finish(self, call: Callable[[], Answer]) -> None:
        """Answer with the result of a thread, which *call* returns or raises."""
        count = 1 if self.later is None else self.later.count
        self.later = None

        def found() -> Answer:
            answer = call()
            self.check_admitted()
            return answer

        self._take(found, count)

    def outgoing(self) -> bytes:
        """Return the bytes to send, and forget them."""
        out, self._out, self._out_bytes = b"".join(self._out), [], 0
        return out

    def close(self) -> None:
        """End the session: pending answers are sent, no more commands are executed."""
        self.is_closing = True
        self.commands.clear()
        self._forget_begun()

    def release(self) -> None:
        """Release everything that the client holds: its connection is gone."""
        held, self.held = self.held, {}
        for one in held.values():
            try:
                one.close()
            except (QuireError, OSError) as error:
                _log.warning(
                    "cannot release what a client held: peer=%s error=%s", self.peer, error
                )

    def identify(self, token: Token | None) -> None:
        """
        Identify the client by a token: its uses of queues are recorded again.

        Raises:
            RefusedError: The client of the token has too many connections.

        """
        before, known = name_of(self), self.token
        self.token = token
        try:
            self.context.shares.move(before, name_of(self))
        except RefusedError:
            self.token = known
            raise
        self._seen.clear()
        self.set_limits()

    def check(self, right: Right, topic: str) -> None:
        """
        Check that the client has a right to a queue.

        Raises:
            RefusedError: The client's token does not have the right.

        """
        if self.token is not None and not self.token.may(right, topic):
            self.context.note("refused", self, f"{right} {topic}")
            raise RefusedError(f"NOPERM the token may not {right} this queue: name={topic}")
        if right == "manage":
            self.context.note(right, self, topic, shown_command(self.request))
        elif (right, topic) not in self._seen:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._seen.add((right, topic))
            self.context.note(right, self, topic)

    def check_any(self, rights: Sequence[Right], topic: str) -> None:
        """
        Check that the client has one of these rights to a queue.

        Raises:
            RefusedError: The client's token has none of the rights.

        """
        token = self.token
        allowed: Sequence[Right] = [it for it in rights if token is None or token.may(it, topic)]
        self.check((allowed or rights)[0], topic)

    def queue(self, right: Right, topic: str) -> ServedQueue | None:
        """Return a queue to which the client has a right; None: it does not exist."""
        self.check(right, topic)
        return self.context.queues.get(topic)

    @property
    def pending_bytes(self) -> int:
        """How many bytes of an incomplete request there are."""
        return self._requests.pending
