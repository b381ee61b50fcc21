"""Writers and sources of a Vanilla Chronicle beside retention that does not see them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import quire
from any_format import open_vanilla
from containers import CONTAINER, need_namespaces
from pause_points import Party
from quire.errors import ReplicationError
from quire.vanilla.replication import Sink, Source
from replication_wire import CAPTURED_MS, DAY_MS, FILES, SMALL, run

LOOKS_S = 1.0  # how often a writer looks for its cycle, at most

WRITER = """
clock = quire.ManualClock(int(sys.argv[2]))
queue = quire.open(sys.argv[1], format="vanilla", clock=clock)
appender = queue.appender()
appender.write_bytes(b"read before")
arm()
try:
    say(appender.write_bytes(b"late"))
except OSError as error:
    say(f"{type(error).__name__}: {error}")
say(appender.write_bytes(b"again"))
"""
PRUNE = """
import quire, sys
report = quire.prune(sys.argv[1], max_cycles=1, clock=quire.ManualClock(int(sys.argv[2])))
print(len(report.removed))
"""


def payloads(path: Path) -> list[bytes]:
    with quire.open(path, format="vanilla", read_only=True) as queue:
        return [excerpt.data for excerpt in queue.tailer()]


def prune_in_a_container(path: Path, now_ms: int) -> int:
    """Remove all cycles but the newest, where the writer's process cannot be seen."""
    command = [*CONTAINER, sys.executable, "-c", PRUNE, str(path), str(now_ms)]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def test_an_append_into_a_cycle_that_retention_took_raises(tmp_path: Path) -> None:
    need_namespaces()
    path, now_ms = tmp_path / "queue", CAPTURED_MS + 2 * DAY_MS
    with Party(WRITER, path, CAPTURED_MS, point="vanilla.entry.cas") as writer:
        writer.wait_until_stopped()
        with quire.open(path, clock=quire.ManualClock(now_ms - DAY_MS)) as queue:
            queue.appender().write_bytes(b"newer")
        time.sleep(LOOKS_S + 0.1)  # a minute, where retention keeps the time of the machine
        assert prune_in_a_container(path, now_ms) == 1
        writer.go_on()
        error, index = writer.result()
    assert error.startswith("FileNotFoundError: [Errno 2] the cycle was removed while it was")
    assert "append them again" in error
    assert index == CAPTURED_MS // DAY_MS << 40
    assert payloads(path) == [b"again", b"newer"]


def test_a_writer_whose_cycle_was_removed_says_so_within_a_second(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    with (
        quire.open(path, format="vanilla", clock=quire.ManualClock(CAPTURED_MS)) as queue,
        queue.appender() as appender,
    ):
        appender.write_bytes(b"first")
        shutil.rmtree(queue.directory_for_cycle(queue.current_cycle))
        began, raised = time.monotonic(), False
        while not raised and time.monotonic() - began < 300:
            try:
                appender.write_bytes(b"gone")
            except FileNotFoundError:
                raised = True
            time.sleep(0.01)
        assert raised
        appender.write_bytes(b"again")
    assert payloads(path) == [b"again"]


@pytest.mark.parametrize("kept", [0, 1])
def test_a_sink_is_not_sent_what_follows_cycles_that_it_was_not_sent(
    tmp_path: Path, kept: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Retention takes the oldest cycles first, here before the source could send the second."""
    clock = quire.ManualClock(CAPTURED_MS)
    with open_vanilla(tmp_path / "source", clock=clock, **SMALL) as queue:

        def write_and_remove(appender: quire.vanilla.VanillaAppender) -> int:
            index = 0
            for day in range(1, 4):
                clock.now_ms = CAPTURED_MS + day * DAY_MS
                index = appender.write_bytes(b"day %d" % day)
            for cycle in queue.cycles[: 3 - 2 * kept]:
                shutil.rmtree(queue.directory_for_cycle(cycle))
            return index

        async def replicated() -> None:
            async with (
                Source(queue) as source,
                Sink(
                    tmp_path / "copy",
                    port=source.address[1],
                    reconnect_s=0,
                    files=FILES,
                ) as sink,
            ):
                with queue.appender() as appender:
                    await sink.stored(appender.write_bytes(b"day 0"))
                    last = write_and_remove(appender)  # nothing else runs meanwhile
                if kept:
                    await sink.stored(last)  # all that followed the removed cycle is there
                else:
                    with pytest.raises(ReplicationError, match="does not have the message"):
                        await sink.run_forever()
                    await sink.close()

        if kept:
            run(replicated())
        else:
            with pytest.raises(ReplicationError):
                run(replicated())
    sent = range(4) if kept else range(1)
    assert payloads(tmp_path / "copy") == [b"day %d" % day for day in sent]
    said = "cycles that a sink had not been sent may have been removed"
    assert (said in caplog.text) is not kept
