"""Too little memory is a `MemoryError`, and the same call succeeds once there is enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import quire

BYTES = 48 << 20

# The limit leaves less than a message above what the process has when it is set.
READER = """
import resource, sys, quire
queue = quire.open(sys.argv[1], block_bytes=1 << 28)
tailers = [queue.tailer() for _ in range(8)]
appender = queue.appender()
message = bytearray({bytes})
for number, tailer in enumerate(tailers):
    tailer.move_to_index(queue.last_index if number == 5 else queue.first_index)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
hard = resource.getrlimit(resource.RLIMIT_AS)[1]

ways = {{
    "read": lambda: tailers[0].read().data,
    "read_bytes": lambda: tailers[1].read_bytes(),
    "read_many": lambda: tailers[2].read_many(1)[0],
    "payloads": lambda: next(tailers[3].payloads()),
    "iterator": lambda: next(iter(tailers[4])).data,
    "read_text": lambda: tailers[5].read_text(),
    "write_bytes": lambda: appender.write_bytes(message),
}}
for name, call in ways.items():
    resource.setrlimit(resource.RLIMIT_AS, (used + {bytes} // 2, hard))
    try:
        call()
    except MemoryError:
        pass
    else:
        sys.exit(name)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    found = call()
    assert found == queue.last_index or len(found) == {bytes}, name
    del found
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_too_little_memory_for_a_message_is_a_memory_error(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q", block_bytes=1 << 28) as queue, queue.appender() as appender:
        appender.write_bytes(bytes(BYTES))
        appender.write_text("x" * BYTES)
    program = READER.format(bytes=BYTES)
    subprocess.run([sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "q")], check=True)
