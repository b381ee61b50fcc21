"""A reader that sleeps dies at any named step, or its appender does, or a system call fails.

The names are those of the kernel's `fault.rs`, and what each leaves stands in docs/protocol.md.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import pytest

import quire
from fault_lives import Life, Lives, crash_at_each, fail_each, points
from paths import ROOT
from pause_points import Party
from queues import payloads
from quire.errors import WaitTimeoutError
from sleeping_life import MESSAGES, SIDE_FILE, TASK, is_asleep
from tally import Tally, limit_s

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 7200))]

LIFE = "sleeping_life.py"
PREFIX = "waiting."
FORMS = ("thread", TASK)
PROMISE = "A crash or error at any step of sleeping delays a reader, and fails no append"
# What making and finding the side file consists of.
MAKING = {
    "file.open",
    "file.stat",
    "file.mode.set",
    "file.identity.stat",
    "file.reserve",
    "map.new",
}
LEASES = "replicas.quire"  # an append that cannot look whether its lease has ended is refused
MAGIC = b"QuireWt1"
LIMIT_S = 120.0  # of a hang
Side: TypeAlias = Literal["before", "after"]
SIDES = get_args(Side)


@pytest.fixture(scope="module")
def hits(lives: Lives, form: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    path = tmp_path_factory.mktemp("undisturbed") / "queue"
    lived = lives.live(path, form, "first")
    check(path, [lived, lives.live(path, form, "second")])
    return {
        name: count
        for name, count in lived.hits.items()
        if name.startswith(PREFIX) or name in MAKING
    }


def check(path: Path, lived: list[Life]) -> None:
    """Each message is there once, in its order, and was read, wherever a life was cut short."""
    for life in lived:
        may_fail = ["ready"] not in life.said or LEASES in (life.error or "")
        assert life.error is None or may_fail, life.error
        assert life.is_cut_short or {*life.written.values()} <= life.read
    if len(lived) == 1:
        return
    with quire.open(path, read_only=True) as queue:
        found = [payload.decode() for payload in payloads(queue)]
    for life in lived:
        written = list(life.written.values())
        assert [text for text in found if text in written] == written
    assert len(found) <= sum(len(it.written) + it.is_cut_short for it in lived)
    last = lived[-1]
    assert len(last.written) == MESSAGES
    assert last.read == {*found}
    side_file = (path / SIDE_FILE).read_bytes()
    assert (side_file[:8], len(side_file)) == (MAGIC, 64)


def test_every_point_is_hit_and_described(hits: dict[str, int]) -> None:
    assert points(PREFIX) <= hits.keys()
    page = (ROOT / "docs" / "protocol.md").read_text("utf-8")
    assert {*re.findall(r"(?m)^\| `(waiting\.[\w.-]+)`", page)} == points(PREFIX)


def test_a_crash_at_any_point_loses_nothing(
    lives: Lives, form: str, hits: dict[str, int], tmp_path: Path, tally: Tally
) -> None:
    tally(PROMISE, crash_at_each(lives, form, hits, tmp_path, check), "crashes")


def test_a_call_that_fails_fails_no_append(
    lives: Lives, form: str, hits: dict[str, int], tmp_path: Path, tally: Tally
) -> None:
    tally(PROMISE, fail_each(lives, form, hits, tmp_path, check), "calls that failed")


APPEND = """
with quire.open(sys.argv[1]) as queue, queue.appender() as appender:
    arm()
    appender.write_bytes(b"one")
    say("appended")
"""
BULK = """
with quire.open(sys.argv[1]) as queue, queue.appender() as appender:
    arm()
    appender.write_many([b"one"] * 10_000)
"""
WAIT = """
with quire.open(sys.argv[1]) as queue, queue.tailer() as tailer:
    arm()
    tailer.wait(timeout_s=300)
    say(tailer.read_bytes().decode())
"""


@pytest.fixture
def queue(path: Path) -> Iterator[quire.JournalQueue]:
    with quire.open(path) as queue:
        yield queue


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("then", ["goes on", "dies"])
def test_an_appender_that_stands_before_it_wakes_anybody_holds_up_nobody(
    queue: quire.JournalQueue, path: Path, side: Side, then: str
) -> None:
    received: list[bytes] = []

    def receive() -> None:
        for message in queue.tailer().follow():
            received.append(message.data)
            if message.data == b"two":
                return

    reader = threading.Thread(target=receive, daemon=True)
    reader.start()
    while not is_asleep(path):
        time.sleep(0.001)
    with Party(APPEND, path, point="waiting.word.clear", side=side) as party:
        party.wait_until_stopped()
        with queue.appender() as appender:  # the write lock is free
            appender.write_bytes(b"two")
        reader.join(LIMIT_S)
        assert received == [b"one", b"two"]
        if then == "dies":
            party.kill()
        else:
            party.go_on()
            assert party.result() == ["appended"]


@pytest.mark.parametrize("point", sorted(points(PREFIX) - {"waiting.word.clear"}))
@pytest.mark.parametrize("side", SIDES)
def test_a_reader_that_stands_before_it_sleeps_misses_nothing(
    queue: quire.JournalQueue, path: Path, point: str, side: Side
) -> None:
    with Party(WAIT, path, point=point, side=side) as party:
        party.wait_until_stopped()
        with queue.appender() as appender, queue.tailer() as tailer:
            appender.write_bytes(b"one")
            tailer.wait()
            assert tailer.read_bytes() == b"one"
            with pytest.raises(WaitTimeoutError):
                tailer.wait(timeout_s=0.01)  # it makes the side file too, or finishes it
        party.go_on()
        assert party.result() == ["one"]


def test_a_bulk_append_wakes_when_it_ends(queue: quire.JournalQueue, path: Path) -> None:
    """Until then, what it has shown is found by a look."""
    with queue.tailer() as tailer:
        reader = threading.Thread(target=tailer.wait, daemon=True)
        reader.start()
        while not is_asleep(path):
            time.sleep(0.001)
        with Party(BULK, path, point="publish.header.cas", nth=20) as party:
            party.wait_until_stopped()
            reader.join(LIMIT_S)
            assert tailer.read_bytes() == b"one"
            assert is_asleep(path), "as far as appenders know"
            party.go_on()
            assert party.result() == []
        assert not is_asleep(path)
