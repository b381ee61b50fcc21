"""One thread that waits for the sockets of all tailers that sleep in event loops."""

from __future__ import annotations

import os
import select
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quire._native import EventLoopWaits

_EVENTS: Final = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLONESHOT


class SocketWait:
    """
    A wait until a socket is readable.

    Args:
        watch: The thread that waits.
        handle: The socket's file descriptor; -1: the wait is due at once.
        waits: The waits that are woken then.
        number: The number of the wait among them.

    """

    def __init__(self, watch: SocketWatch, handle: int, waits: EventLoopWaits, number: int) -> None:
        self._watch, self._handle = watch, handle
        self._waits, self._number = waits, number
        if handle < 0:
            waits.wake(number)
        else:
            watch.add(handle, waits, number)

    def cancel(self) -> None:
        """End it."""
        if self._handle >= 0:
            self._watch.remove(self._handle, self._waits, self._number)


class SocketWatch:
    """The waiting thread, which starts with the first wait; a forked process has its own."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._waiting: dict[int, list[tuple[EventLoopWaits, int]]] = {}
        self._lock = threading.Lock()
        self.pid = os.getpid()
        threading.Thread(target=self._run, name="quire-remote", daemon=True).start()

    def add(self, handle: int, waits: EventLoopWaits, number: int) -> None:
        """Wake a waiting task once a socket is readable."""
        with self._lock:
            self._waiting.setdefault(handle, []).append((waits, number))
            try:
                self._epoll.register(handle, _EVENTS)
            except FileExistsError:
                self._epoll.modify(handle, _EVENTS)

    def remove(self, handle: int, waits: EventLoopWaits, number: int) -> None:
        """End a wait before its task is woken; other waits for the socket go on."""
        with self._lock:
            others = self._waiting.get(handle, [])
            if (waits, number) not in others:
                return
            others.remove((waits, number))
            if others:
                return
            del self._waiting[handle]
            try:
                self._epoll.unregister(handle)
            except (OSError, ValueError):  # closed meanwhile
                return

    def has_waits(self, handle: int) -> bool:
        """Return whether a task waits for a socket."""
        with self._lock:
            return handle in self._waiting

    def wake(self, handle: int) -> None:
        """Wake all tasks that wait for a socket."""
        with self._lock:
            found = self._waiting.pop(handle, [])
        for waits, number in found:
            waits.wake(number)

    def _run(self) -> None:
        while True:
            for handle, _ in self._epoll.poll():
                self.wake(handle)


_watches: list[SocketWatch] = []
_lock: Final = threading.Lock()


def socket_watch() -> SocketWatch:
    """Return the thread of this process."""
    with _lock:
        if not _watches or _watches[0].pid != os.getpid():
            _watches[:] = [SocketWatch()]
        return _watches[0]


def wake_waiting(handle: int) -> None:
    """Wake the tasks that wait for a socket, whose data was read or which is about to be closed."""
    for watch in _watches[:]:
        if watch.pid == os.getpid():
            watch.wake(handle)
