"""Keep two days: old cycles go, or are compressed, but never past what a named tailer needs."""

import threading

import quire

DAY_MS = 86_400_000
first_removed = threading.Event()


def removed(cycle: quire.retaining.PrunedCycle) -> None:
    print("removed", cycle.file.name, "as it is", cycle.reason)
    first_removed.set()


clock = quire.ManualClock(1_705_314_600_000)  # a program leaves the clock out
rule = quire.Retention(max_cycles=2, stale_after="30d", on_removed=removed)

with (
    quire.open("trades", roll_cycle="FAST_DAILY", clock=clock, retention=rule) as queue,
    queue.appender() as appender,
):
    for day in range(2):
        appender.write_map({"day": day})
        clock.advance(DAY_MS)
    with queue.tailer("billing") as billing:
        billing.read_map()
        billing.read_map()  # billing needs the second day and later ones
    appender.write_map({"day": 2})
    first_removed.wait(60)

report = quire.prune("trades", max_cycles=1, dry_run=True, clock=clock)
for cycle in report.kept:
    print(cycle.file.name, cycle.reason)

report = quire.prune("trades", max_cycles=1, stale_after="6h", action="compress", clock=clock)
for cycle in report.removed:
    print("compressed", cycle.file.name)
with quire.open("trades") as queue, queue.tailer("billing") as billing:
    print("billing goes on in", queue.file_for_cycle(queue.cycles[0]), "with", billing.read_map())
