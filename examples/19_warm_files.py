"""A pretoucher allocates and touches file space ahead, and creates the next cycle's file early."""

import tempfile
from pathlib import Path

import quire

with tempfile.TemporaryDirectory() as directory:
    clock = quire.ManualClock(1_705_314_600_000)  # 2024-01-15T10:30:00Z
    path = Path(directory) / "orders"
    with (
        quire.open(path, roll_cycle="FAST_HOURLY", clock=clock) as queue,
        queue.pretoucher(early_acquire_next_cycle=True) as pretoucher,
    ):
        pretoucher.execute()
        print("allocated ahead:", Path(queue.current_file).stat().st_blocks * 512 >= 2**20)

        clock.advance(30 * 60 * 1000 - 1500)  # a second and a half before eleven
        pretoucher.execute()
        print("files:", *sorted(file.name for file in path.glob("*.cq4")))

        # Until then, messages go to the current cycle.
        with queue.appender() as appender:
            index = appender.write_text("hello")
        print("cycle of the message is current:", index >> 32 == queue.current_cycle)
