"""Quire at a fixed rate: with warm files, and while a drainer is stopped or the lock is held."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import quire
from bench.quire_queues import append_paced, freeze_the_collector, open_queue
from bench.task import BLOCK_BYTES, ROLL_CYCLE, START_MS, Task

_RING_BYTES = 32 << 20
_PATIENCE_S = 300.0


def _paced(task: Task) -> None:
    """Append what is measured; count the page faults of this thread."""
    with (
        open_queue(task.queue) as queue,
        queue.appender() as appender,
        queue.pretoucher() as pretoucher,
    ):
        if task.operation == "paced@pretoucher":
            pretoucher.start()
        appends = _warm_up(appender, task)
        before = _faults()
        _measure(appender, task, appends)
        faults = _faults() - before
    _write(task, appends, faults)


def _locked(task: Task) -> None:
    """Append while another process holds the write lock."""
    with _child(task, "hold") as holder, _open(task) as queue, queue.appender() as appender:
        appends = _warm_up(appender, task)
        _flush(queue)
        assert holder.stdin is not None
        holder.stdin.write("hold\n")
        holder.stdin.flush()
        _expect(holder, "HELD")
        _measure(appender, task, appends)
        _flush(queue)
    _write(task, appends, 0)


def _stopped(task: Task) -> None:
    """Append into the ring while the process that drains it is stopped."""
    with _child(task, "drain") as drainer, _open(task) as queue, queue.appender() as appender:
        appends = _warm_up(appender, task)
        drainer.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, drainer.pid, os.WSTOPPED)
        _measure(appender, task, appends)
        assert queue.ring is not None
        pending = queue.ring.pending
        assert pending >= task.count, f"somebody drained: pending={pending}"
        drainer.send_signal(signal.SIGCONT)
        _flush(queue)
    _write(task, appends, 0)


def _hold(task: Task) -> None:
    """When asked to, hold the write lock for as long as the measured messages take."""
    with _open(replace(task, operation="locked")) as queue, queue.appender() as appender:
        print("READY", flush=True)
        if sys.stdin.readline():
            with appender.writing_document() as document:
                print("HELD", flush=True)
                time.sleep(task.count / task.rate)
                document.rollback_on_close()


def _drain(task: Task) -> None:
    """Drain the ring until stdin ends; a message of its own shows that this process does."""
    with _open(task) as queue, queue.appender() as appender:
        appender.write_bytes(b"up")
        _flush(queue)
        print("READY", flush=True)
        sys.stdin.read()


def _open(task: Task) -> quire.JournalQueue:
    """Open the queue, through the ring where the operation says so."""
    is_direct = task.operation == "locked"
    return quire.open(
        task.queue,
        roll_cycle=ROLL_CYCLE,
        clock=quire.ManualClock(START_MS),
        block_bytes=BLOCK_BYTES,
        timeout_s=_PATIENCE_S,
        buffer_mode="none" if is_direct else "async",
        ring=quire.RingOptions(capacity_bytes=None if is_direct else _RING_BYTES),
    )


@contextmanager
def _child(task: Task, operation: str) -> Generator[subprocess.Popen[str]]:
    """Start a process that ends with its stdin, at the latest with this one."""
    line = replace(task, operation=operation).to_json()
    with subprocess.Popen(
        [sys.executable, "-m", "bench.worker", line],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            _expect(child, "READY")
            yield child
        except BaseException:
            child.kill()
            raise


def _expect(child: subprocess.Popen[str], word: str) -> None:
    assert child.stdout is not None
    found = child.stdout.readline().strip()
    assert found == word, f"the other process failed: found={found!r} expected={word}"


def _flush(queue: quire.JournalQueue) -> None:
    if queue.ring:
        queue.ring.flush(timeout_s=_PATIENCE_S)


def _warm_up(appender: quire.JournalAppender, task: Task) -> array[int]:
    """Append the first messages; return room for the times of the others."""
    freeze_the_collector()
    append_paced(
        appender.write_bytes, task, range(task.warm_up), array("q", bytes(2 * 8 * task.warm_up))
    )
    return array("q", bytes(2 * 8 * task.count))


def _measure(appender: quire.JournalAppender, task: Task, appends: array[int]) -> None:
    append_paced(appender.write_bytes, task, range(task.warm_up, task.total), appends)


def _faults() -> int:
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return used.ru_minflt + used.ru_majflt


def _write(task: Task, appends: array[int], faults: int) -> None:
    Path(task.out).write_bytes(appends.tobytes())
    print(json.dumps({"count": task.count, "faults": faults}))


OPERATIONS = {
    "paced": _paced,
    "paced@pretoucher": _paced,
    "direct": _paced,
    "locked": _locked,
    "locked@ring": _locked,
    "stopped@ring": _stopped,
    "hold": _hold,
    "drain": _drain,
}
