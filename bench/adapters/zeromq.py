"""ZeroMQ: PUSH to PULL over a Unix socket, without a limit on what waits to be sent."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from bench.stream import measure
from bench.task import Missing, Outcome, Task

NAME = "ZeroMQ PUSH/PULL"


def version() -> str:
    """Return the versions of the binding and of the library."""
    try:
        import zmq
    except ImportError as error:
        raise Missing("pyzmq is not installed") from error
    return f"pyzmq {zmq.__version__}, libzmq {zmq.zmq_version()}"


class Channel:
    """One Unix socket."""

    def __init__(self, path: Path) -> None:
        """Say where it lies."""
        self._address = f"ipc://{path}"

    @contextmanager
    def sender(self) -> Generator[Callable[[bytes], object]]:
        """Hand out the call that sends one message."""
        import zmq

        with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
            socket.set_hwm(0)
            socket.connect(self._address)
            yield socket.send

    @contextmanager
    def receiver(self) -> Generator[Callable[[], bytes]]:
        """Hand out the call that waits for one message."""
        import zmq

        with zmq.Context() as context, context.socket(zmq.PULL) as socket:
            socket.set_hwm(0)
            socket.bind(self._address)
            yield socket.recv


def run(task: Task) -> Outcome:
    """Send to another process."""
    return measure(task, Channel(Path(task.directory) / "socket"))
