"""Metrics: counted by the processes that append and read, shown to any other one."""

from tempfile import TemporaryDirectory

import quire

with TemporaryDirectory() as folder:
    with quire.open(f"{folder}/orders", metrics=True) as queue, queue.appender() as appender:
        for number in range(1000):
            appender.write_map({"order": number})
        with queue.tailer("risk") as tailer:
            tailer.read_many(400)

    with quire.open(f"{folder}/orders", read_only=True) as queue:
        found = queue.metrics()
        print(f"{found.messages_appended} appended, {found.messages_read} read, lag {found.lag}")
        for percent in (50, 99, 100):
            nanos = found.append_latency.percentile(percent)
            print(f"append, {percent} % within {nanos} ns")
