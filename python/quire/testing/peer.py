"""Another process, for tests of programs that share a queue."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

_CONTEXT = multiprocessing.get_context("spawn")


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
        self._results, theirs = _CONTEXT.Pipe(duplex=False)
        # A daemon is ended with this process.
        self._process = _CONTEXT.Process(target=_run, args=(theirs, work, arguments), daemon=True)
        try:
            self._process.start()
        except (AttributeError, TypeError) as error:
            self._results.close()
            raise TypeError(
                f"the arguments and result of a peer must be picklable: {error}"
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
        Wait for the function and return its result, or raise its exception.

        Raises:
            TimeoutError: The process is still running after *timeout_s* seconds.
            ChildProcessError: The process ended without a result, for example because it was
                killed.

        """
        if not self._results.poll(timeout_s):
            raise TimeoutError(f"the peer is still running: pid={self.pid} timeout_s={timeout_s}")
        try:
            returned, raised = self._results.recv()
        except EOFError:
            self._process.join()
            raise ChildProcessError(
                f"the peer ended without a result: pid={self.pid} code={self._process.exitcode}"
            ) from None
        self._process.join()
        if raised is not None:
            raise raised
        return returned

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
        answer: tuple[Any, Exception | None] = work(*arguments), None
    except Exception as error:  # noqa: BLE001 - raised again where the result is asked for
        answer = None, error
    with suppress(BrokenPipeError):  # nobody waits for it
        results.send(answer)
