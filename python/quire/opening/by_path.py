"""Queues reopened by their path, as when unpickled, or for a call that takes a queue or a path."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, cast

from quire._common import arguments
from quire._common.file_identity import Identity, identity_at
from quire.formats.adapters import adapter_named, is_queue
from quire.formats.detection import format_of
from quire.formats.protocols import AnyQueue


@contextmanager
def opened(queue: AnyQueue | str | PathLike[str], name: str) -> Generator[AnyQueue]:
    """Open a queue read-only; use an open one, and leave it open. *name* names the argument."""
    if not isinstance(queue, str | PathLike) and is_queue(queue):
        yield queue
        return
    path = arguments.queue_path(name, queue)
    with adapter_named(format_of(path)).open(path) as found:
        yield found


class PickledByPath:
    """A queue that pickles by path and options."""

    _options: dict[str, Any]
    _place: Identity | None = None
    """The directory that it was opened in."""

    if TYPE_CHECKING:

        @property
        def path(self) -> str: ...

    @classmethod
    def _reopen(cls, path: str | PathLike[str], options: dict[str, Any]) -> Self:
        """Open with options as they were kept by another one, as when unpickled."""
        queue = cast("Callable[..., Self]", cls)(path, **options)
        queue._options, queue._place = options, identity_at(path)  # noqa: SLF001
        return queue

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[str, dict[str, Any]]]:
        """Pickle by path and options."""
        reopen: Callable[..., Self] = self._reopen
        return reopen, (self.path, self._options)
