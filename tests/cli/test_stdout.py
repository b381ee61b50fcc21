"""What a command writes to stdout while signals come."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

PROGRAM = """
import signal, sys
from quire.cli.streams import mark_stdout

armed = False

def interrupt(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt

mark_stdout()
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
for number in range(50_000):
    try:
        armed = True
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
        armed = False
    except KeyboardInterrupt:
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_an_interrupt_writes_no_line_twice() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    lines = Counter(ran.stdout.split())
    assert ran.stderr == b""
    assert len(lines) > 25_000
    assert set(lines.values()) == {1}
