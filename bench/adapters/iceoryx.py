"""iceoryx2: publish and subscribe through shared memory; both sides spin."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.metadata import version as version_of
from typing import Any

from bench.stream import measure
from bench.task import Missing, Outcome, Task

NAME = "iceoryx2"
_BUFFERED = 1024


def version() -> str:
    """Return the version of the package."""
    try:
        import iceoryx2  # noqa: F401
    except ImportError as error:
        raise Missing("iceoryx2 is not installed") from error
    return version_of("iceoryx2")


class Channel:
    """One service; the publisher waits when the subscriber's buffer is full, and loses nothing."""

    def __init__(self, name: str, size: int) -> None:
        """Name the service, and the size of its messages."""
        self._name = name
        self._size = size

    def _service(self) -> Any:  # noqa: ANN401 - the package carries no types
        import iceoryx2

        iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
        self._node = iceoryx2.NodeBuilder.new().create(iceoryx2.ServiceType.Ipc)
        return (
            self._node.service_builder(iceoryx2.ServiceName.new(self._name))
            .publish_subscribe(ctypes.c_uint8 * self._size)
            .enable_safe_overflow(False)  # noqa: FBT003 - the package's own signature
            .subscriber_max_buffer_size(_BUFFERED)
            .open_or_create()
        )

    @contextmanager
    def sender(self) -> Generator[Callable[[bytes], object]]:
        """Hand out the call that sends one message."""
        import iceoryx2

        strategy = iceoryx2.BackpressureStrategy.RetryUntilDelivered
        builder = self._service().publisher_builder().backpressure_strategy(strategy)
        publisher, size = builder.create(), self._size

        def send(message: bytes) -> None:
            # With a full buffer 0.10 reaches nobody and says so, whatever the strategy: send again.
            reached = 0
            while not reached:
                sample = publisher.loan_uninit()
                ctypes.memmove(sample.payload_ptr, message, size)
                reached = sample.assume_init().send()

        yield send

    @contextmanager
    def receiver(self) -> Generator[Callable[[], bytes]]:
        """Hand out the call that waits for one message."""
        subscriber, size = self._service().subscriber_builder().create(), self._size
        receive_one = subscriber.receive

        def receive() -> bytes:
            while (sample := receive_one()) is None:
                pass
            message = ctypes.string_at(sample.payload_ptr, size)
            sample.delete()
            return message

        yield receive


def run(task: Task) -> Outcome:
    """Send to another process."""
    return measure(task, Channel(f"quire-bench{task.directory}", task.size))
