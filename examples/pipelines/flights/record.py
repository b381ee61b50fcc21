"""
What the pipeline beside this file reads: a journal of flights, and two tables to join with.

    PYTHONPATH=. python examples/pipelines/flights/record.py

The flights that left New York in 2013 become events in true time order, as in `make demo`. All of
it is in build/pipelines/flights, or in another folder (--dir): what a former run of the pipeline
left there is deleted, a folder that holds anything else is left alone.
"""

import argparse
import shutil
from pathlib import Path

from demo.events import timeline
from demo.flights import data_folder, read_flights, read_zones
from demo.folder import make_anew

import quire

FOLDER = Path(__file__).parents[3] / "build" / "pipelines" / "flights"


def record(folder: Path, limit: int | None = None) -> int:
    """Write the events of all flights, or of the first *limit*; return how many they are."""
    make_anew(folder)
    for table in ("weather.csv", "planes.csv", "airlines.csv"):
        shutil.copy(data_folder() / table, folder)
    events = timeline(read_flights(data_folder(), limit), read_zones(data_folder()))
    clock = quire.ManualClock(events[0].time_ms)
    with (
        quire.open(folder / "journal", roll_cycle="FAST_DAILY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        for event in events:
            clock.now_ms = event.time_ms
            appender.write_map(event._asdict())
    return len(events)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, default=FOLDER)
    parser.add_argument("--limit", type=int)
    chosen = parser.parse_args()
    print(f"{record(chosen.dir, chosen.limit):,} events are in {chosen.dir / 'journal'}")
