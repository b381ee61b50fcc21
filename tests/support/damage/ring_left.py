"""Messages in a ring that nobody drains: the process that put them in is dead."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import quire
from queues import fork

SUM = 8  # bytes of the checksum after each message


def leave_in_ring(
    path: Path,
    queue: quire.JournalQueue,
    messages: Sequence[bytes],
    on_full: Literal["raise", "grow"] = "raise",
) -> None:
    """
    Have a process put *messages* into the ring of *queue* and be killed.

    It cannot drain them, for this one has the write lock meanwhile.
    """

    def put() -> None:
        busy = quire.open(path, ring=quire.RingOptions(write_buffer_mode="async", on_full=on_full))
        busy.appender().write_many(messages)
        os.kill(os.getpid(), signal.SIGKILL)

    with queue.appender() as appender, appender.writing_document() as document:
        _, status = os.waitpid(fork(put), 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        document.rollback_on_close()
