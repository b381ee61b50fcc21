"""
Writers of the two older formats that live until they are killed, for test_kill_storm_raw.py.

Each thread of a victim is a *lane*: it numbers its messages, and stores in a log of its own what
its calls had returned.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import Any, Literal, TypeAlias

import quire
from any_format import open_vanilla
from queues import fork
from quire_peer import PAYLOAD, encode
from storm_victims import BUDGET, Log

Form: TypeAlias = Literal["vanilla", "single", "named"]
FORMS: tuple[Form, ...] = ("vanilla", "single", "named")
BULK = 20


@dataclass(frozen=True)
class Victim:
    """A process: `producer` is its name in a queue of named producers."""

    form: Form
    queue: Path
    lanes: tuple[int, ...]
    logs: Path
    seed: int
    options: dict[str, Any]
    producer: str | None = None

    @property
    def errors(self) -> Path:
        """Where it writes what went wrong."""
        return self.logs / "errors"

    def log_of(self, lane: int) -> Path:
        """Return where a lane keeps its log."""
        return self.logs / f"{lane}.log"


class Lane:
    """One writing thread."""

    def __init__(self, victim: Victim, number: int, appender: Any) -> None:  # noqa: ANN401
        self._number, self._appender = number, appender
        self._log = Log(victim.log_of(number))
        self._rng = random.Random(victim.seed + number)  # noqa: S311 - another course for each
        self._longest = self._rng.choice([PAYLOAD.size, 100, 700])
        self._pause_s = self._rng.choice([0, 1e-4, 3e-4])
        self._ways = {
            "vanilla": [self._bytes, self._many, self._excerpt],
            "single": [self._bytes, self._many, self._packed],
            "named": [self._bytes, self._many, self._packed],
        }[victim.form]
        self._counter = 0

    def run(self) -> None:
        """Write for ever."""
        while not self._log.is_full():
            self._rng.choice(self._ways)()
            time.sleep(self._pause_s if self._counter < BUDGET else 0.005)
        threading.Event().wait()

    def _next(self, ahead: int = 0) -> bytes:
        length = self._rng.randint(PAYLOAD.size, self._longest)
        return encode(self._number, self._counter + ahead, length, self._rng)

    def _log_around(self, count: int, write: Callable[[], int | None]) -> None:
        self._log.begin(self._counter + count)
        index = write()
        self._counter += count
        self._log.add(self._counter, index or 0)

    def _bytes(self) -> None:
        payload = self._next()
        self._log_around(1, lambda: self._appender.write_bytes(payload))

    def _many(self) -> None:
        payloads = [self._next(ahead) for ahead in range(self._rng.randint(1, BULK))]
        self._log_around(len(payloads), lambda: self._appender.write_many(payloads))

    def _packed(self) -> None:
        message = self._appender.new_message().pack_raw(self._next())
        self._log_around(1, message.write_message)

    def _excerpt(self) -> None:
        """One excerpt in four is rolled back."""
        if self._rng.random() < 0.25:
            with contextlib.suppress(KeyError), self._appender.writing_excerpt() as excerpt:
                excerpt.write_bytes(b"never seen")
                raise KeyError
            return
        payload = self._next()

        def write() -> int:
            with self._appender.writing_excerpt() as excerpt:
                excerpt.write_bytes(payload)
            return int(excerpt.index)

        self._log_around(1, write)


def open_queue(form: Form, path: Path, options: dict[str, Any]) -> Any:  # noqa: ANN401
    """Open a queue of this form."""
    if form == "vanilla":
        return open_vanilla(path, **options)
    return quire.quick_queue.open(path, **options)


def live(victim: Victim) -> None:
    """Write in each lane until the process is killed, or one fails."""
    logging.disable()  # recoveries are logged as warnings
    failed = threading.Event()

    def report(error: threading.ExceptHookArgs) -> None:
        note(victim, error.exc_value)
        failed.set()

    threading.excepthook = report
    with open_queue(victim.form, victim.queue, victim.options) as queue:
        appenders = list(islice(appenders_of(victim, queue), len(victim.lanes)))
        for number, appender in zip(victim.lanes, appenders, strict=True):
            threading.Thread(target=Lane(victim, number, appender).run, daemon=True).start()
        failed.wait()


def appenders_of(victim: Victim, queue: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield an appender for each lane: their own, or the same one."""
    if victim.form != "vanilla":
        yield queue.appender(victim.producer)
    elif victim.seed % 2:
        yield from repeat(queue.appender())
    else:
        yield from (queue.appender(thread_id=lane) for lane in victim.lanes)


def note(victim: Victim, error: BaseException | None) -> None:
    """Leave an error for the storm to find."""
    with victim.errors.open("a") as out:
        out.write(f"{victim}\n{''.join(traceback.format_exception(error))}\n")


def start(victim: Victim) -> tuple[int, dict[int, Log]]:
    """Fork a victim; its process id, and the logs of its lanes."""
    logs = {lane: Log(victim.log_of(lane), new=True) for lane in victim.lanes}

    def child() -> None:
        try:
            live(victim)
        except BaseException as error:  # noqa: BLE001 - the storm must hear of it
            note(victim, error)

    return fork(child), logs
