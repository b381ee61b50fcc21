"""When files end: a roll time in a zone, a roll cycle of one's own, and who hears of files."""

import tempfile
from pathlib import Path

import quire

HOUR_MS = 3_600_000

with tempfile.TemporaryDirectory() as directory:
    # Days that begin at 17:00 in New York, in winter and in summer.
    path, clock = Path(directory) / "fx", quire.ManualClock(1_710_021_600_000)  # 2024-03-09T22:00Z
    roll = quire.RollOptions(roll_time="17:00")
    with (
        quire.open(path, clock=clock, roll=roll, time_zone="America/New_York") as queue,
        queue.appender() as appender,
    ):
        appender.write_text("Saturday's, from 17:00")
        clock.advance(23 * HOUR_MS)  # on that night clocks go forward
        appender.write_text("Sunday's, from 17:00")
    print("days:", *sorted(file.name for file in path.glob("*.cq4")))

    # Cycles of three hours. A listener hears of each file that is opened and left.
    three_hourly = quire.RollCycle(length_ms=3 * HOUR_MS, pattern="yyyyMMdd-HH'III'")
    path, heard = Path(directory) / "trades", list[str]()
    roll = quire.RollOptions(
        on_file_acquired=lambda _, file: heard.append(f"acquired {Path(file).name}"),
        on_file_released=lambda _, file: heard.append(f"released {Path(file).name}"),
    )
    with (
        quire.open(path, roll_cycle=three_hourly, clock=clock, roll=roll) as queue,
        queue.appender() as appender,
    ):
        for number in range(2):
            appender.write_map({"trade": number})
            clock.advance(3 * HOUR_MS)
    print(*heard, sep="\n")
