"""Forks while another thread opens a queue."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import quire

LIMIT_S = 120  # of a hang

# Hooks before a fork run from the one registered last to the first: the event comes before the
# lock of `logging` is waited for, and after what was registered by an import of quire.
OPENED_UNDER_A_LOCK = """
import faulthandler, logging.config, os, sys, threading
faulthandler.dump_traceback_later({limit}, exit=True)
forks, holds = threading.Event(), threading.Event()
os.register_at_fork(before=forks.set)
import quire

class Handler(logging.Handler):
    def __init__(self):
        super().__init__()
        holds.set()
        forks.wait()
        self.queue = quire.open(sys.argv[1])

config = {{"version": 1, "handlers": {{"own": {{"()": Handler}}}}, "root": {{"handlers": ["own"]}}}}
thread = threading.Thread(target=logging.config.dictConfig, args=(config,))
thread.start()
holds.wait()
child = os.fork()
if child == 0:
    with quire.open(sys.argv[1]) as queue, queue.appender() as appender:
        appender.write_text("of the child")
    os._exit(0)
ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
thread.join()
sys.exit(ended)
"""


def test_a_fork_waits_for_a_thread_that_opens_a_queue_under_a_lock_of_logging(
    tmp_path: Path,
) -> None:
    program = OPENED_UNDER_A_LOCK.format(limit=LIMIT_S)
    arguments = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "q")]
    subprocess.run(arguments, check=True, timeout=2 * LIMIT_S)
    with quire.open(tmp_path / "q") as queue, queue.tailer() as tailer:
        assert tailer.read_text() == "of the child"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_programs_that_a_child_starts_get_no_descriptor_of_a_table(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q") as queue, queue.appender():
        private = [fd for fd in _descriptors() if not os.get_inheritable(fd)]
        child = os.fork()
        if child == 0:
            here = _descriptors()
            os._exit(len([fd for fd in private if fd in here and os.get_inheritable(fd)]))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _descriptors() -> list[int]:
    return [fd for fd in [int(it.name) for it in Path("/proc/self/fd").iterdir()] if _is_open(fd)]


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:  # that of the listing
        return False
    return True
