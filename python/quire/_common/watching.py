"""What runs beside an open queue: started by `quire.open`, ended with the queue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quire._native import Queue


class Watch(Protocol):
    """Something that runs until it is closed."""

    def close(self) -> None:
        """End it; idempotent."""


class Watcher(ABC):
    """An option of `quire.open` that starts something for the queue."""

    @property
    def reads_messages(self) -> bool:
        """Whether it reads messages, through handles of its own, which have no key."""
        return False

    @abstractmethod
    def watch(self, queue: Queue, options: dict[str, object]) -> Watch:
        """Start it for a queue that was opened with these options."""
