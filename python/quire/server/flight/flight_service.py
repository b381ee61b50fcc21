"""The calls of Arrow Flight: each is carried out by a thread of gRPC."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final, TypeVar, cast

import pyarrow as pa
from pyarrow import flight

from quire.errors import NotAQueueError, QuireError, RefusedError
from quire.server.flight.callers import KEY, Caller, Callers
from quire.server.flight.flight_reading import batches_of, columns_of, info_of
from quire.server.flight.tickets import LONGEST, Wanted, put_of, wanted_by, wanted_of
from quire.server.queue_folder import Queues
from quire.server.served_queue import ServedQueue

_log = logging.getLogger("quire")
_LARGEST_BATCH: Final = 64 << 20
_Call = TypeVar("_Call", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Shared:
    """
    The state that calls share with the other clients of a server.

    Attributes:
        queues: The queues.
        callers: Admits calls by their tokens.
        on_loop: Calls a function where the queues are opened and closed, and returns its result.
        created: Called there with the name of each new queue.

    """

    queues: Queues
    callers: Callers
    on_loop: Callable[[Callable[[], Any]], Any]
    created: Callable[[str], object]


def _without_file(call: _Call) -> _Call:
    """Keep the path of a function's file out of traces."""
    call.__code__ = call.__code__.replace(co_filename="quire")
    return call


class _AnyUser(flight.ServerAuthHandler):
    """Lets handshakes pass: tokens are in the headers of each call."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:  # noqa: ANN401
        del outgoing, incoming

    def is_valid(self, token: Any) -> Any:  # noqa: ANN401
        del token
        return b""


class FlightService(flight.FlightServerBase):
    """
    A server of Arrow Flight, which listens as soon as it is created.

    Args:
        location: Where, as ``grpc+tls://HOST:PORT``.
        shared: What it shares with the other clients.
        tls: The certificate and what goes with it, as gRPC takes them.

    """

    def __init__(self, location: str, shared: Shared, tls: dict[str, Any]) -> None:
        self._shared = shared
        self._is_ending = False
        super().__init__(location, auth_handler=_AnyUser(), middleware={KEY: shared.callers}, **tls)

    def end_streams(self) -> None:
        """Let each stream end with its next batch."""
        self._is_ending = True

    def list_flights(
        self,
        context: flight.ServerCallContext,
        criteria: Any,  # noqa: ANN401 - bytes, although its stubs say text
    ) -> Iterator[flight.FlightInfo]:
        """Yield the queues that the client may read; the criteria are a pattern of their names."""
        with self._answering("list_flights"):
            caller = self._shared.callers.of(context)
            given = bytes(criteria)
            if len(given) > LONGEST:
                raise RefusedError("the pattern is too long")
            pattern = given.decode("utf-8", "replace") or "*"
            topics = [
                it
                for it in self._shared.queues.topics()
                if (caller.token is None or caller.token.may("read", it))
                and fnmatchcase(it, pattern)
            ]
            return iter([_listed(it) for it in topics])

    @_without_file
    def get_schema(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> Any:  # noqa: ANN401 - a schema, its stubs say
        """Return the columns that a descriptor requests."""
        found = self._schema_of(context, descriptor)
        if isinstance(found, flight.FlightError):
            raise found.with_traceback(None) from None
        return found

    def _schema_of(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.SchemaResult | flight.FlightError:
        """Return an error instead of raising it: of this call alone, gRPC shows its trace."""
        try:
            with self._answering("get_schema"):
                wanted = wanted_of(descriptor)
                self._readable(self._shared.callers.of(context), wanted)
                return flight.SchemaResult(columns_of(wanted))
        except flight.FlightError as error:
            return error

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """Return the parts of a descriptor's request, with a ticket for each."""
        with self._answering("get_flight_info"):
            wanted = wanted_of(descriptor)
            found = self._readable(self._shared.callers.of(context), wanted)
            with self._checking(found):
                return info_of(wanted, found.queue, descriptor)

    def do_get(
        self, context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.FlightDataStream:
        """Return the messages that a ticket requests, as a stream of batches."""
        with self._answering("do_get"):
            wanted = wanted_by(ticket.ticket)
            caller = self._shared.callers.of(context)
            found = self._readable(caller, wanted)
            columns = columns_of(wanted)
        return flight.GeneratorStream(columns, self._stream(context, caller, wanted, found))

    def _stream(
        self,
        context: flight.ServerCallContext,
        caller: Caller,
        wanted: Wanted,
        found: ServedQueue,
    ) -> Iterator[pa.RecordBatch]:
        with (
            self._answering("do_get"),
            self._shared.callers.streaming(caller),
            self._checking(found),
        ):
            for batch in batches_of(wanted, found.queue):
                self._go_on(context, caller)
                yield batch

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Append a message for each row, and answer each batch with the index of its last."""
        with self._answering("do_put"):
            put = put_of(descriptor)
            caller = self._shared.callers.of(context)
            with self._shared.callers.streaming(caller):
                found = self._writable(caller, put.queue)
                with self._checking(found), found.queue.appender() as appender:
                    write: Any = appender.write_batch
                    for chunk in reader:
                        self._go_on(context, caller)
                        batch = _checked(chunk.data)
                        if batch is not None:
                            last = write(batch, **put.options)
                            answer = {"last": last, "rows": batch.num_rows}
                            writer.write(pa.py_buffer(json.dumps(answer).encode()))

    def _go_on(self, context: flight.ServerCallContext, caller: Caller) -> None:
        """Check that a stream may continue."""
        if self._is_ending:
            raise flight.FlightUnavailableError("the server ends")
        if context.is_cancelled():
            raise flight.FlightCancelledError("the client went away")
        self._shared.callers.check_still(caller)

    def _readable(self, caller: Caller, wanted: Wanted) -> ServedQueue:
        """Return a queue that a client may read."""
        self._shared.callers.check(caller, "read", wanted.queue)
        found = self._found(wanted.queue)
        if found is None:
            raise NotAQueueError(f"no such queue: name={wanted.queue}")
        return found

    def _writable(self, caller: Caller, topic: str) -> ServedQueue:
        """Return a queue to which a client may append; create it if allowed and necessary."""
        self._shared.callers.check(caller, "append", topic)
        found = self._found(topic)
        if found is not None:
            return found
        self._shared.callers.check(caller, "create", topic)

        def create() -> ServedQueue:
            made = self._shared.queues.create(topic, {})
            self._shared.created(topic)
            return made

        return cast("ServedQueue", self._shared.on_loop(create))

    def _found(self, topic: str) -> ServedQueue | None:
        found: ServedQueue | None = self._shared.on_loop(lambda: self._shared.queues.current(topic))
        return found

    @contextmanager
    def _answering(self, call: str) -> Generator[None]:
        """
        Answer with an error of Flight: for others, gRPC would show where in the server they arose.

        Its ``extra_info`` is the name of the error in :mod:`quire.errors`.
        """
        try:
            yield
        except flight.FlightError:
            raise
        except (QuireError, OSError, ValueError, TypeError, pa.ArrowException) as error:
            name = type(error).__name__ if isinstance(error, QuireError) else "RefusedError"
            text = self._shared.queues.errors.text(error)
            raise flight.FlightServerError(text, name) from None
        except Exception:  # noqa: BLE001 - of one client alone
            _log.exception("a call of Flight failed: call=%s", call)
            raise flight.FlightInternalError("internal error: see the server's log") from None

    @contextmanager
    def _checking(self, found: ServedQueue) -> Generator[None]:
        """Use a queue; close it if its files were removed or damaged, to be opened again."""
        try:
            with self._shared.queues.using(found):
                yield
        except (QuireError, OSError) as error:
            self._shared.on_loop(partial(self._shared.queues.check, found, error))
            raise


def _checked(batch: pa.RecordBatch | None) -> pa.RecordBatch | None:
    """
    Return a batch whose buffers are what they say; None: there is none.

    Raises:
        ArrowInvalid: The batch is malformed.
        RefusedError: The batch is too large.

    """
    if batch is None or not batch.num_rows:
        return None
    batch.validate(full=True)  # it is of somebody else's making
    if batch.nbytes > _LARGEST_BATCH:
        raise pa.ArrowInvalid(
            f"the batch is too large: bytes={batch.nbytes} limit={_LARGEST_BATCH}"
        )
    return batch


def _listed(topic: str) -> flight.FlightInfo:
    wanted = Wanted(topic)
    ticket = flight.Ticket(json.dumps({"queue": topic}))
    path = flight.FlightDescriptor.for_path(*topic.split("/"))
    return flight.FlightInfo(columns_of(wanted), path, [flight.FlightEndpoint(ticket, [])], -1, -1)
