"""Acknowledge only what survives a power cut: appends that return when their message is on disk."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import quire

with tempfile.TemporaryDirectory() as directory:
    path = Path(directory) / "orders"
    with quire.open(path, durability="each") as queue, queue.appender() as appender:
        # Threads that wait at the same time share one sync.
        with ThreadPoolExecutor(4) as threads:
            indexes = list(threads.map(appender.write_text, (f"order {n}" for n in range(20))))
        print("all on disk:", queue.last_index_synced == max(indexes))

    with (
        quire.open(path, durability="batch", wait=quire.WaitOptions(group_commit_s=60.0)) as queue,
        queue.appender() as appender,
    ):
        last = appender.write_text("returns at once")
    with quire.open(path, read_only=True) as queue:
        print("on disk after closing:", queue.last_index_synced == last)
