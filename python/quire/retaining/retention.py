"""The rule that a queue is opened with, and the thread that applies it at each roll."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from quire._common.watching import Watch, Watcher
from quire.errors import LockHeldError, QuireError
from quire.opening.options import LayoutOptions
from quire.retaining.pruning import Run
from quire.retaining.rule import Rule

if TYPE_CHECKING:
    from quire._native import Queue

_LOG: Final = logging.getLogger("quire")
_LOOK_S: Final = 1.0
_AGAIN_S: Final = 30.0
_FOR_A_READER: Final = ("kept for ", "kept as a process has it open")


@dataclass(frozen=True, kw_only=True)
class Retention(Rule, Watcher):
    """
    A rule of retention, for ``quire.open(..., retention=)``; :func:`quire.prune` takes the same.

    Cycles that exceed one of the limits are removed, the oldest first. A thread with its own
    handles applies the rule when the queue is opened and after each roll, while the path leads to
    the same queue. A cycle whose removal failed, or that a reader still needs, is tried again every
    half minute, because on a full disk there is no next roll. Failures are logged. If several
    processes have the queue open, one at a time applies its rule.

    Args:
        keep: Keep cycles that ended less than this long ago: text such as ``7d`` or ``12h``,
            seconds, or a ``datetime.timedelta``.
        max_bytes: Keep at most this much on disk: bytes, or text such as ``10GB``.
        max_cycles: Keep at most this many cycles, including the one being written.
        action: What to do with all other cycles: ``delete`` them, ``move`` their files to *dest*,
            ``archive`` them to Parquet in *dest* and delete them, or ``compress`` them in place:
            Quire reads them as before, and Java no longer sees them.
        dest: The directory to move or archive to, created if it does not exist. A relative path
            refers to the process's working directory when the queue is opened.
        stale_after: Ignore a named tailer or consumer group whose next message is in a cycle that
            ended this long ago. None: each keeps the cycles that it has not read.
        on_removed: Called with each :class:`quire.retaining.PrunedCycle` after its removal, with no
            lock held.

    Raises:
        ValueError: No limit was given, a limit is not a duration, size or number, the action is
            unknown, or *dest* does not fit the action.

    Examples:
        >>> rule = quire.Retention(keep="7d", max_bytes="50GB", stale_after="30d")
        >>> with quire.open("trades", retention=rule) as trades:
        ...     trades.closed
        False

    """

    @property
    def reads_messages(self) -> bool:
        """Whether the rule reads messages, which only the action ``archive`` does."""
        return self.action == "archive"

    def watch(self, queue: Queue, options: dict[str, Any]) -> Watch:
        """Apply the rule now and after each roll, until the queue is closed."""
        return _Thread(queue, self, options)


def _to_prune_with(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options to open a queue for pruning, given the native options it is open with."""
    found = {"file_mode": options["file_mode"]} if "file_mode" in options else {}
    if options.get("allow_network"):
        found["layout"] = LayoutOptions(allow_network=True)
    return found


def _as_of_now(rule: Rule) -> Rule:
    """Return a rule with an absolute *dest*, as the process may change its working directory."""
    return rule if rule.dest is None else replace(rule, dest=os.path.abspath(rule.dest))  # noqa: PTH100 - also of bytes


class _Thread:
    """
    Applies a rule to a queue that is open.

    It checks the newest cycle once a second: one load, no system call. It holds no reference that
    would keep the queue open.
    """

    def __init__(self, queue: Queue, rule: Rule, options: dict[str, Any]) -> None:
        self._queue = weakref.ref(queue)
        self._path: Final = queue.path
        self._rule: Final = _as_of_now(rule)
        self._options: Final = options
        self._opened: Final = queue._table_identity()  # noqa: SLF001 - the package's own
        self._failure = ""
        self._pid: Final = os.getpid()
        self._ended: Final = threading.Event()
        self._thread: Final = threading.Thread(
            target=self._run, name=f"quire retention {queue.path}", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End the thread after the step that it is working on; a forked child has none."""
        if self._pid != os.getpid():
            return
        self._ended.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        applied, again_at = None, math.inf
        while True:
            newest = self._newest()
            if newest is None:
                return
            if newest != applied or time.monotonic() >= again_at:
                again_at = math.inf if self._apply() else time.monotonic() + _AGAIN_S
                applied = newest
            if self._ended.wait(_LOOK_S):
                return

    def _newest(self) -> int | None:
        """Return the newest cycle, -1 if there is none; None once the queue is closed."""
        queue = self._queue()
        try:
            return None if queue is None else queue.table_value("listing.highestCycle") or -1
        except QuireError:
            return None

    def _apply(self) -> bool:
        """Apply the rule; return whether it need not be applied again before the next roll."""
        run = Run(
            self._path,
            self._rule,
            clock=self._options.get("clock"),
            open_options=_to_prune_with(self._options),
            stopped=self._ended.is_set,
            opened=self._opened,
        )
        try:
            report = run.apply()
        except LockHeldError as error:
            _LOG.debug("retention is applied by another process: %s", error)
            return False
        except Exception as error:  # noqa: BLE001 - the thread goes on, and tries again
            if not self._ended.is_set():  # otherwise the run failed because it was stopped
                self._warn(error)
            return False
        self._failure = ""
        return not any(it.reason.startswith(_FOR_A_READER) for it in report.kept)

    def _warn(self, error: Exception) -> None:
        """Log a failure, but not the same one twice in a row."""
        if self._failure != str(error):
            self._failure = str(error)
            _LOG.error("retention failed, and is tried again: %s", self._path, exc_info=error)
