"""Another process, for tests of programs that share a queue."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from types import TracebackType
from typing import Any, Self, TypeAlias

_CONTEXT = multiprocessing.get_context("spawn")
_Outcome: TypeAlias = tuple[Any, Exception | None]
"""What the function returned, and what it raised."""


class Peer:
    """
    Runs a function with queues in another process, which is spawned rather than forked.

    Args:
        work: A function of a module, called with *arguments*.
        arguments: Picklable arguments: a queue is opened again in the other process.

    Raises:
        TypeError: The function or an argument cannot be pickled.

    Examples:
        >>> import operator
        >>> with quire.testing.Peer(operator.attrgetter("entry_count"), queue) as peer:
        ...     peer.result()
        0

    """

    def __init__(self, work: Callable[..., Any], /, *arguments: Any) -> None:  # noqa: ANN401
        """Start the process."""
        self._outcome: _Outcome | None = None
        self._results, theirs = _CONTEXT.Pipe(duplex=False)
        # A daemon is ended with this process.
        self._process = _CONTEXT.Process(target=_run, args=(theirs, work, arguments), daemon=True)
        try:
            self._process.start()
        except (AttributeError, TypeError, pickle.PickleError) as error:
            self._results.close()
            raise TypeError(
                f"the function and the arguments of a peer must be picklable: {error}"
            ) from error
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        """The pid of the process."""
        assert self._process.pid is not None  # noqa: S101 - it was started
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self._process.is_alive()

    def result(self, timeout_s: float = 60.0) -> Any:  # noqa: ANN401 - of the function
        """
        Wait for the function and return its result, or raise its exception, each time again.

        Raises:
            TimeoutError: The process is still running after *timeout_s* seconds.
            ChildProcessError: The process ended without a result, for example because it was
                killed; or its exception cannot be pickled.
            TypeError: The result cannot be pickled.

        """
        if self._outcome is None:
            self._outcome = self._received(timeout_s)
        returned, raised = self._outcome
        if raised is not None:
            raise raised
        return returned

    def _received(self, timeout_s: float) -> _Outcome:
        if not self._results.poll(timeout_s):
            raise TimeoutError(f"the peer is still running: pid={self.pid} timeout_s={timeout_s}")
        try:
            outcome: _Outcome = self._results.recv()
        except (EOFError, OSError):  # before, or within, what it sends
            self._process.join()
            raise ChildProcessError(
                f"the peer ended without a result: pid={self.pid} code={self._process.exitcode}"
            ) from None
        self._process.join()
        return outcome

    def kill(self) -> None:
        """Kill the process, whatever it is doing, and wait for its end."""
        self._process.kill()
        self._process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._results.close()


def _run(results: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        outcome: _Outcome = work(*arguments), None
    except Exception as error:  # noqa: BLE001 - raised again where the result is asked for
        outcome = None, _picklable(error)
    try:
        data = ForkingPickler.dumps(outcome)
    except Exception as error:  # noqa: BLE001 - whatever a class of the user raises
        refused = TypeError(f"the result of a peer must be picklable: {error}")
        data = ForkingPickler.dumps((None, refused))
    with suppress(BrokenPipeError):  # nobody waits for it
        results.send_bytes(data)


def _picklable(raised: Exception) -> Exception:
    """Return an exception, or one that names it if it would not arrive."""
    try:
        pickle.loads(pickle.dumps(raised))  # noqa: S301 - its own
    except Exception as error:  # noqa: BLE001 - whatever its class raises
        return ChildProcessError(
            "the peer raised an exception that cannot be pickled:"
            f" {type(raised).__name__}: {raised} ({error})"
        )
    return raised
