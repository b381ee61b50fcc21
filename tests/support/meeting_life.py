"""
Meetings in the build with fault points: one party stops at a step, another one runs meanwhile.

As a program it forks the parties of each meeting that is asked for, a line of JSON each way;
`meetings.py` talks to it and checks what they leave.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import shutil
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pause_points
from meeting_parties import CYCLES, FAMILIES, Meeting, live, open_queue
from quire.retaining import pruning

NATIVE = importlib.import_module("quire._native")  # has more in the build with fault points
EVENTS = {"open", "os.remove", "os.rename", "os.link", "os.mkdir", "os.listdir", "os.scandir"}
PARTS = (".cq4", ".qgroup", ".quire")
STANDS_S = 1.0  # for so long the other party may need the first one to go on
HANG_S = 300.0  # a limit is a hang's, however busy the machine is


def sayer(pipe: int) -> Callable[..., None]:
    def say(*words: object) -> None:
        os.write(pipe, (json.dumps(words) + "\n").encode())

    return say


class Voice:
    """What a party says."""

    def __init__(self, pipe: int) -> None:
        self.pipe, self.text, self.is_over = pipe, b"", False

    def listen(self) -> None:
        found = os.read(self.pipe, 1 << 16)
        self.text += found
        self.is_over = not found

    def has_said(self, word: str) -> bool:
        return self.is_over or f'["{word}"'.encode() in self.text

    def end(self) -> dict[str, Any]:
        os.close(self.pipe)
        lines = self.text.decode().splitlines()
        return {"exit": 0, "hangs": not self.is_over, "said": [json.loads(it) for it in lines]}


class Child(Voice):
    """A forked process, and what it says."""

    def __init__(self, work: Callable[[int], None]) -> None:
        receiving, sending = os.pipe()
        super().__init__(receiving)
        self.pid = os.fork()
        if not self.pid:
            signal.alarm(int(2 * HANG_S))
            try:
                work(sending)
            except BaseException:  # noqa: BLE001 - reported to the test
                sayer(sending)("failed", traceback.format_exc())
            os._exit(0)
        os.close(sending)

    def end(self) -> dict[str, Any]:
        if not self.is_over:
            os.kill(self.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return super().end() | {"exit": code}


def wait(voices: list[Voice], timeout_s: float, until: Callable[[], bool], stop: int = -1) -> None:
    """Listen until it is so, or until a thread stops, which *stop* can be read for."""
    deadline = time.monotonic() + timeout_s
    while not until() and (left := deadline - time.monotonic()) > 0:
        heard = {voice.pipe: voice for voice in voices if not voice.is_over}
        pipes: list[int] = [*heard, *([stop] if stop >= 0 else [])]
        ready: list[int] = select.select(pipes, [], [], left)[0]
        if stop in ready:
            return
        for pipe in ready:
            heard[pipe].listen()


def run_first(asked: dict[str, Any], go: int | None, pipe: int, beside: int | None) -> None:
    """Be the first party; and beside it, in a thread, the other one when it is told."""
    path = Path(asked["path"])
    first = Meeting(path, "first", sayer(pipe))
    shared = None
    if asked["beside"]:
        shared = open_queue(path, first.clock(CYCLES))
        first.shared = shared
    counted = Counter[str]()
    if asked["fault"]:
        os.environ["PAUSE_AT"] = asked["fault"]
        pause_points.arm()
    else:
        vars(NATIVE)["set_fault"]("")
        count_events(counted)
    if beside is None:
        live(first, asked["first"])
    else:
        is_over = threading.Event()
        thread = threading.Thread(target=attempt, args=(first, asked["first"], is_over))
        thread.start()
        assert go is not None
        os.read(go, 1)
        if is_over.is_set():  # it did not come to its step, where the other one must not stop
            vars(NATIVE)["set_fault"]("")
        other = Meeting(path, "other", sayer(beside), shared)
        attempt(other, asked["other"], threading.Event())
        os.close(beside)
        thread.join()
    if shared is not None:
        shared.close()
    if not asked["fault"]:
        first.say("hits", dict(vars(NATIVE)["fault_hits"]()) | counted)


def attempt(it: Meeting, party: str, is_over: threading.Event) -> None:
    try:
        live(it, party)
    except BaseException:  # noqa: BLE001 - reported to the test
        it.say("failed", traceback.format_exc())
    is_over.set()  # before anyone can hear of it
    it.say("over")


def count_events(counted: Counter[str]) -> None:
    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS:
            for part in PARTS:
                if any(part in str(it) for it in arguments):
                    counted[f"audit:{event}:{part}"] += 1

    sys.addaudithook(hook)


def meet(asked: dict[str, Any]) -> dict[str, Any]:
    """Have two parties meet, or the first one be alone, to count its steps."""
    if not asked["point"]:
        alone = Child(lambda pipe: run_first(asked | {"fault": ""}, None, pipe, None))
        wait([alone], HANG_S, lambda: alone.is_over)
        return {"first": alone.end(), "other": None, "reached": False, "waited": False}
    stop = pause_points.Stop(asked["point"], nth=asked["nth"], side=asked["side"])
    try:
        return met(asked | {"fault": stop.fault}, stop)
    finally:
        stop.close()


def met(asked: dict[str, Any], stop: pause_points.Stop) -> dict[str, Any]:
    told, go = os.pipe()
    hears, beside = os.pipe()

    def first_party(pipe: int) -> None:
        os.close(go)
        os.close(hears)
        run_first(asked, told, pipe, beside if asked["beside"] else None)

    def other_party(pipe: int) -> None:
        os.close(go)
        live(Meeting(Path(asked["path"]), "other", sayer(pipe)), asked["other"])

    first = Child(first_party)
    os.close(beside)
    os.close(told)
    wait([first], HANG_S, lambda: first.has_said("over"), stop.stopped)
    reached = stop.has_stopped(0)
    if asked["beside"]:
        os.write(go, b"1")
        other = Voice(hears)
    else:
        os.close(hears)
        other = Child(other_party)
    os.close(go)
    wait([first, other], STANDS_S, lambda: other.has_said("waits"))
    waited = not other.is_over
    if reached:
        stop.go_on()
    wait([first, other], HANG_S, lambda: first.is_over and other.is_over)
    ended = {"first": first.end(), "other": other.end()}
    return ended | {"reached": reached, "waited": waited}


def looks_no_more(*_: object) -> None:
    """Take a cycle for one that nobody needs, as retention did before it looked again."""


def make(family: str, path: Path) -> dict[str, Any]:
    """Make what the parties of a family find."""
    child = Child(lambda _: FAMILIES[family].make(path))
    wait([child], HANG_S, lambda: child.is_over)
    return child.end()


def serve() -> None:
    """Answer each line with what came of a meeting, in a copy of what its family has."""
    warnings.simplefilter("ignore")
    if os.environ["QUIRE_UNMENDED"] == "retention":  # does not look again before a removal
        setattr(pruning.Run, "_kept_now", looks_no_more)  # noqa: B010 - not its type
    for line in sys.stdin:
        asked = json.loads(line)
        if "make" in asked:
            answer = make(asked["make"], Path(asked["path"]))
        else:
            if Path(asked["from"]).exists():
                shutil.copytree(asked["from"], asked["path"])
            answer = meet(asked)
        print(json.dumps(answer), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    serve()
