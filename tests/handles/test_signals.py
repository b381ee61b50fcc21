"""Handlers of signals, called while a read scans: they may use, move and close what is at work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import quire
from parameters import some, some_sets

# More than a kernel that looks for signals now and then passes between two looks.
PASSED = 8 * 150_000
HANG_S = 300

PROGRAM = """
import signal, sys
from typing import Protocol
import quire

class Api(Protocol):
    def wanted(self, text: str) -> None: ...
    def other(self, text: str) -> None: ...

def fill(queue, before=(), after=()):
    with queue.appender() as appender:
        other = quire.types.parse_yaml('to: other\\nother: x\\n')
        for message in before:
            appender.write_bytes(message)
        for _ in range(8):
            appender.write_many([other] * (PASSED // 8))
        for message in after:
            appender.write_bytes(message)

def wanted(text):
    return quire.types.parse_yaml(f'to: wanted\\nwanted: {text}\\n')

def on_signal(act):
    '''Call *act* with each signal of a timer, until it raises, as indexes in *inside* show.'''
    def handle(*_):
        try:
            inside.append(act())
        except KeyboardInterrupt:
            stop()
            raise
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)

def stop():
    signal.setitimer(signal.ITIMER_REAL, 0)

inside = []
queue = quire.open(sys.argv[1], roll_cycle="FAST_DAILY", block_bytes=2**20)
"""

READS = {
    "read": "tailer.topics('wanted').read().data",
    "read_bytes": "tailer.topics('wanted').read_bytes()",
    "read_many": "tailer.topics('wanted').read_many(1)[0]",
    "read_map": "tailer.topics('wanted').read_map()",
    "reading_document": "[d.map() for d in [tailer.topics('wanted').reading_document()]][0]",
    "payloads": "next(tailer.topics('wanted').payloads())",
    "read_batch": "tailer.topics('wanted').read_batch(1)['payload'][0].as_py()",
    "columns": (
        "tailer.read_batch(1, schema=quire.Schema.from_methods(Api), method='wanted')"
        "['text'].to_pylist()"
    ),
    "method_reader": "tailer.method_reader(handler, scanning=True).read_one()",
    "wait": "tailer.topics('wanted').wait(30)",
}


def run(path: Path, program: str) -> str:
    """Run a program in a process of its own; one that hangs holds locks, and is killed."""
    text = f"PASSED = {PASSED}\n{PROGRAM}\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", text, str(path)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "direction"),
    some_sets(
        [*((name, "forward") for name in READS), ("read", "backward"), ("columns", "backward")],
        keep=[0],
    ),
)
def test_a_handler_uses_the_tailer_that_scans(name: str, direction: str, path: Path) -> None:
    where = {"forward": "after", "backward": "before"}[direction]
    program = f"""
class Handler:
    def wanted(self, text: str) -> None: ...
handler = Handler()
fill(queue, {where}=[wanted('found')])
ends = queue.first_index, queue.last_index
tailer = queue.tailer()
tailer.direction = {direction!r}
if {direction!r} == 'backward':
    tailer.to_end()
on_signal(lambda: (tailer.index, tailer.state, tailer.direction)[0])
result = {READS[name]}
stop()
assert any(ends[0] < index < ends[1] for index in inside), inside[:10]
tailer.to_start()
tailer.direction = 'forward'
tailer.topics('wanted')
assert tailer.read_bytes() == quire.types.parse_yaml('wanted: found')
"""
    run(path, program)


@pytest.mark.parametrize(
    ("name", "closed"),
    some_sets([*((name, "queue") for name in READS), ("read", "tailer")], keep=range(0, 100, 4)),
)
def test_a_handler_closes_what_scans(name: str, closed: str, path: Path) -> None:
    program = f"""
class Handler:
    def wanted(self, text: str) -> None: ...
handler = Handler()
fill(queue, after=[wanted('found')])
tailer = queue.tailer()
on_signal({closed}.close)
try:
    result = {READS[name]}
except quire.errors.ClosedError as error:
    print("closed")
stop()
"""
    assert run(path, program) == "closed\n"


def test_a_handler_reads_on_while_the_tailer_scans(path: Path) -> None:
    program = """
fill(queue, after=[wanted('first'), wanted('second'), wanted('third')])
tailer, once = queue.tailer().topics('wanted'), []
def act():
    if not once:
        once.append(None)
        once[0] = tailer.read_bytes()
on_signal(act)
found = tailer.read_bytes()
stop()
assert [once[0], found] == [quire.types.parse_yaml(f'wanted: {it}') for it in ('first', 'second')]
"""
    run(path, program)


BATCHES = {
    "read_many": "tailer.topics('wanted').read_many(2)",
    "read_batch": "tailer.topics('wanted').read_batch(2)",
    "columns": "tailer.read_batch(2, schema=quire.Schema.from_methods(Api), method='wanted')",
    "read_batches": "tailer.topics('wanted').read_batches("
    "2, schema=quire.Schema.from_methods(Api))",
    "all of a queue": "tailer.read_many(10_000_000)",
    "all as a batch": "tailer.read_batch(10_000_000)",
}


@pytest.mark.parametrize("name", some(BATCHES, keep=[0]))
def test_an_interrupt_of_a_batch_is_raised_and_loses_no_message(name: str, path: Path) -> None:
    program = f"""
fill(queue, before=[wanted('first')], after=[wanted('last')])
first, last = queue.first_index, queue.last_index
tailer = queue.tailer("name")
def interrupt():
    if first < tailer.index < last:
        raise KeyboardInterrupt
on_signal(interrupt)
try:
    {BATCHES[name]}
    raise AssertionError("not interrupted")
except KeyboardInterrupt:
    pass
assert tailer.index == first, hex(tailer.index)
assert tailer.last_read_index is None
tailer.close()
tailer = queue.tailer("name").topics("wanted")
texts = [quire.types.parse_yaml(f'wanted: {{it}}') for it in ('first', 'last')]
assert tailer.read_many(10) == texts
"""
    run(path, program)


def test_an_interrupt_moves_no_tailer_that_its_handler_moved(path: Path) -> None:
    program = """
fill(queue, before=[wanted('first')], after=[wanted('last')])
tailer = queue.tailer().topics('wanted')
def interrupt():
    if tailer.index > queue.first_index:
        tailer.to_end()
        raise KeyboardInterrupt
on_signal(interrupt)
try:
    tailer.read_many(2)
    raise AssertionError("not interrupted")
except KeyboardInterrupt:
    pass
assert tailer.index == queue.last_index + 1
"""
    run(path, program)


def test_an_interrupt_ends_the_search_of_what_was_written_last(path: Path) -> None:
    program = """
fill(queue)
with quire.open(sys.argv[1] + "/input", source_id=5, create=True) as source:
    tailer = source.tailer()
    def interrupt():
        tailer.index
        raise KeyboardInterrupt
    try:
        on_signal(interrupt)
        tailer.after_last_written(queue)
        raise AssertionError("not interrupted")
    except KeyboardInterrupt:
        pass
"""
    run(path, program)


def test_a_handler_uses_the_queue_while_an_append_waits_for_the_lock(path: Path) -> None:
    program = """
import threading, time
open_, enough = threading.Event(), False
def hold():
    with queue.appender().writing_document() as document:
        document.write_bytes(b"held")
        open_.set()
        while not enough:  # an event's own lock is not for handlers of signals
            time.sleep(0.001)
holder = threading.Thread(target=hold)
holder.start()
open_.wait()
appender, tailer = queue.appender(), queue.tailer()
def act():
    global enough
    tailer.read()
    appender.last_index_appended
    if len(inside) > 20:
        stop()
        enough = True
on_signal(act)
appender.write_bytes(b"after")
stop()
holder.join()
tailer.to_start()
assert [*tailer.payloads()] == [b"held", b"after"]
"""
    run(path, program)


FLUSH = """
import os, signal, sys
import quire

here, there = os.pipe(), os.pipe()  # to this process, and to the one that holds the write lock
if os.fork() == 0:
    with quire.open(sys.argv[1]) as queue, queue.appender() as appender:
        with appender.writing_document() as document:
            document.write_bytes(b"held")
            os.write(here[1], b"!")
            os.read(there[0], 1)
    os._exit(0)
os.close(here[1])
assert os.read(here[0], 1)
queue = quire.open(sys.argv[1], buffer_mode="async", timeout_s=120)

def handle(*_):
    signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        queue.ring.flush(timeout_s=0)
    except quire.errors.LockTimeoutError as error:
        print(str(error).partition(":")[0])
    os.write(there[1], b"!")

signal.signal(signal.SIGALRM, handle)
queue.appender().write_bytes(b"put")
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
queue.ring.flush(timeout_s=100)
print([payload for payload in queue.tailer().payloads()][1:])
"""


def test_a_handler_may_flush_the_ring_that_is_being_flushed(path: Path) -> None:
    with quire.open(path):
        pass
    command = [sys.executable, "-W", "ignore", "-c", FLUSH, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        "the ring of asynchronous appends was not drained in time",
        "[b'put']",
    ]
