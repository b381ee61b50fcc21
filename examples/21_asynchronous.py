"""Appends that wait for no disk: through a ring in shared memory, drained by a thread."""

import tempfile
from pathlib import Path

import quire

with tempfile.TemporaryDirectory() as directory:
    path = Path(directory) / "orders"
    with quire.open(path, buffer_mode="async") as queue, queue.appender() as appender:
        for number in range(1000):
            appender.write_map({"order": number})
        if queue.ring:
            queue.ring.flush()
            print("pending:", queue.ring.pending, "stalls:", queue.ring.stalls)
        with queue.tailer() as tailer:
            print("first:", tailer.read_map(), "messages:", queue.entry_count)
