"""Verbs beside retention that removes what they have not read: they name it, and end with 1."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import Cli, started
from parameters import some
from queues import DAY_MS, START_MS

DAYS, EACH, LENGTH = 4, 5_000, 2_000  # a day is more than a verb reads at once
VERBS = {
    "read": ("read", "{}", "--format", "raw"),
    "replay": ("replay", "{}", "--format", "raw"),
    "publish": ("publish", "{}", "--stdout"),
}
FOLLOWING = {name: (*VERBS[name], "--follow") for name in ("read", "publish")}


def text(day: int, number: int) -> bytes:
    return b"%d.%d " % (day, number)


def write(path: Path, days: int = DAYS) -> list[int]:
    """Write a cycle a day; return the first index of each."""
    clock, firsts = quire.ManualClock(START_MS), list[int]()
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock, block_bytes=2**18) as queue,
        queue.appender() as appender,
    ):
        for day in range(days):
            firsts.append(appender.write_bytes(text(day, 0).ljust(LENGTH, b".")))
            appender.write_many([text(day, it).ljust(LENGTH, b".") for it in range(1, EACH)])
            clock.advance(DAY_MS)
    return firsts


def remove_all_but_the_newest(path: Path) -> None:
    """Do what a run of retention in another container does, which does not see the reader."""
    for file in sorted(path.glob("*.cq4"))[:-1]:
        file.unlink()


def check(out: bytes, errors: str, firsts: list[int]) -> None:
    for day in range(DAYS):
        expected = day in {0, DAYS - 1}  # the file that was open is read to its end
        assert (text(day, EACH - 1) in out, text(day, 0) in out) == (expected, expected)
    lost = f"messages were deleted before they were read: tailer=- expected={firsts[1]:#x}"
    assert f"{lost} first={firsts[-1]:#x}" in errors


@pytest.mark.parametrize("verb", some(VERBS, keep=[0]))
def test_a_slow_receiver_learns_what_was_removed_before_it_took_it(path: Path, verb: str) -> None:
    firsts = write(path)
    with started(*(it.format(path) for it in VERBS[verb])) as process:
        assert process.stdout is not None
        begin = process.stdout.read(100)  # the verb waits for room in the pipe, in the first day
        remove_all_but_the_newest(path)
        out, errors = process.communicate()
    check(begin + out, errors.decode(), firsts)
    assert process.returncode == 1


@pytest.mark.parametrize("verb", some(FOLLOWING, keep=[0]))
def test_one_that_follows_goes_on_after_it(path: Path, verb: str) -> None:
    firsts, last = write(path), text(DAYS - 1, EACH - 1)
    with started(*(it.format(path) for it in FOLLOWING[verb])) as process:
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        out = bytearray(os.read(descriptor, 100))
        remove_all_but_the_newest(path)
        while last not in out[-LENGTH * 2 :]:
            part = os.read(descriptor, 2**16)
            assert part, "it ended"
            out += part
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate()
    check(bytes(out + rest), errors.decode(), firsts)
    assert process.returncode == 130


def test_a_merge_ends_with_1_if_its_result_lacks_messages(
    path: Path,
    tmp_path: Path,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write(path)
    seen = list[int]()

    def key(excerpt: Any) -> str:  # noqa: ANN401 - of any format
        seen.append(excerpt.index)
        if len(seen) == 2:
            remove_all_but_the_newest(path)
        return f"{excerpt.index:x}"

    def key_of(_: object) -> Callable[[Any], str]:
        return key

    monkeypatch.setattr("quire.cli.verbs.merge.by_order", key_of)
    ran = cli("merge", path, tmp_path / "result", "--by", "name")
    assert ran.code == 1
    assert "messages were deleted before they were read" in caplog.text
    assert len(seen) == 2 * EACH
