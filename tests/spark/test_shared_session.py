"""The session that all tests share outlives what one of them does to it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# In a process of its own: what is broken here is not what the other tests use.
PROGRAM = """
import signal
from spark_session import SharedSession, answers

class Interrupted(BaseException):
    pass

def interrupt(_, frame):
    if frame.f_code.co_name == "readinto":  # it waits for an answer
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Interrupted

shared = SharedSession()
first = shared.get()
assert answers(first)
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
try:
    first._jvm.java.lang.Thread.sleep(3000)
except Interrupted as error:
    kept = error  # with its frames, as pytest keeps it: they hold the connection
assert not answers(first)

second = shared.get()
assert second.range(3).count() == 3
assert shared.get() is second
second._sc._gateway.proc.kill()
third = shared.get()
assert third is not second and answers(third)
third.sparkContext.stop()
assert not answers(third)
print("done")
"""


def test_a_session_that_does_not_answer_is_replaced() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr
