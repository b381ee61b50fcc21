"""The end of the interpreter, and of children that dropped the handles of their parent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def output_of(program: str, *arguments: str | Path) -> str:
    """Run a program that ends without a word on stderr; return what it printed."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("queue.close(), appender.write_text('late')", "ClosedError"),
        ("appender.write_bytes(bytes(100_000))", "MessageTooLargeError"),
        ("tailer.read_map()", "WireError"),
        ("queue.tailer('risk')", "TailerInUseError"),
    ],
)
def test_an_error_can_be_raised_while_the_interpreter_ends(
    path: Path, call: str, error: str
) -> None:
    program = f"""
import gc, os, sys, quire
gc.disable()  # so that it ends last, when nothing can be imported any more
queue = quire.open(sys.argv[1], block_bytes=1 << 16)
appender, tailer = queue.appender(), queue.tailer("risk")
appender.write_text("no map")
class Late:
    def __init__(self):
        self.itself = self
    def __del__(
        self, queue=queue, appender=appender, tailer=tailer, write=os.write, Exception=Exception
    ):
        try:
            {call}
        except Exception as error:
            write(1, type(error).__name__.encode())
Late()
"""
    assert output_of(program, path) == error


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    ("options", "work"),
    [
        ('durability="batch"', "queue.appender().write_text('hello')"),
        ('buffer_mode="async"', "queue.appender().write_text('hello')"),
        ("", "pretoucher.start()"),
    ],
)
def test_a_child_that_drops_handles_of_its_parent_can_close_its_own(
    path: Path, options: str, work: str
) -> None:
    program = f"""
import gc, os, sys, quire
def opened():
    queue = quire.open(sys.argv[1], {options})
    pretoucher = queue.pretoucher()
    {work}
    return queue, pretoucher
handles = opened()
child = os.fork()
if child == 0:
    handles = opened()  # its threads may be where those of the parent were
    gc.collect()
    for handle in reversed(handles):
        handle.close()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    assert output_of(program, path) == "0\n"
