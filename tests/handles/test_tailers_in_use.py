"""A name is used by one tailer at a time, in this process and in others."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import quire
from queues import exit_code, fork

TEXTS = [b"%d" % number for number in range(6)]
HOLD = """
import sys
import quire

queue = quire.open(sys.argv[1])
tailers = [queue.tailer(name) for name in sys.argv[2:]]
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def filled(queue: quire.JournalQueue) -> None:
    queue.appender().write_many(TEXTS)


def holding(path: Path, *names: str) -> subprocess.Popen[bytes]:
    """Start a process that reads with names."""
    command = [sys.executable, "-c", HOLD, str(path), *names]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    return child


def end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()


def test_a_second_one_is_refused_and_leaves_the_position_alone(
    path: Path, queue: quire.JournalQueue
) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    with quire.open(path) as other, queue.tailer("risk") as tailer:
        assert tailer.read_many(3) == TEXTS[:3]
        for asked in (queue, other):
            with pytest.raises(
                quire.errors.TailerInUseError, match=r"tailer=risk pid=\d+ since="
            ) as raised:
                asked.tailer("risk")
            assert raised.value.pid == os.getpid()
            assert raised.value.since is not None
            assert before <= raised.value.since <= datetime.now(UTC)
        tailer.commit()
        assert queue.table_value("index.risk") == tailer.index
    with queue.tailer("risk") as again:
        assert again.read_bytes() == TEXTS[3]


def test_one_of_another_process_is_noticed_and_ends_with_it(
    path: Path, queue: quire.JournalQueue
) -> None:
    child = holding(path, "risk", "other")
    try:
        with pytest.raises(quire.errors.TailerInUseError, match="shared=True") as raised:
            queue.tailer("risk")
        assert raised.value.pid == child.pid
        assert raised.value.since is not None
        assert abs(time.time() - raised.value.since.timestamp()) < 600
        queue.tailer("third").close()
    finally:
        end(child)  # by SIGKILL
    with queue.tailer("risk") as tailer, queue.tailer("other"):
        assert tailer.read_bytes() == TEXTS[0]


def test_this_process_is_noticed_by_another(path: Path, queue: quire.JournalQueue) -> None:
    def asks() -> None:
        with quire.open(path) as own:
            with pytest.raises(quire.errors.TailerInUseError, match=f"pid={os.getppid()} "):
                own.tailer("risk")
            own.tailer("other").close()

    with queue.tailer("risk"):
        assert exit_code(fork(asks)) == 0

    def takes() -> None:
        with quire.open(path) as own, own.tailer("risk") as tailer:
            assert tailer.read_bytes() == TEXTS[0]

    assert exit_code(fork(takes)) == 0


ENDINGS: dict[str, Callable[[quire.JournalQueue, quire.JournalTailer], object]] = {
    "closed": lambda _, tailer: tailer.close(),
    "with its queue": lambda queue, _: queue.close(),
    "failed": lambda _, tailer: tailer.__exit__(LookupError, LookupError(), None),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_name_is_free_once_its_tailer_is_closed(
    path: Path, queue: quire.JournalQueue, ending: str
) -> None:
    with quire.open(path) as own:
        tailer = own.tailer("risk")
        ENDINGS[ending](own, tailer)
        queue.tailer("risk").close()
        ENDINGS["closed"](own, tailer)  # must not free what is another's by now
        with queue.tailer("risk"), pytest.raises(quire.errors.TailerInUseError):
            queue.tailer("risk")


@pytest.mark.check
def test_a_name_is_free_once_its_tailer_is_collected(queue: quire.JournalQueue) -> None:
    tailer = queue.tailer("risk")
    messages = tailer.payloads()
    del tailer
    gc.collect()
    with pytest.raises(quire.errors.TailerInUseError):
        queue.tailer("risk")
    assert next(messages) == TEXTS[0]
    del messages
    gc.collect()
    queue.tailer("risk").close()


@pytest.mark.check
def test_a_child_that_drops_its_parents_tailer_frees_nothing(
    path: Path, queue: quire.JournalQueue
) -> None:
    kept = [queue.tailer("risk")]

    def drops() -> None:
        with pytest.raises(quire.errors.ForkedError):
            kept[0].read()
        kept.clear()
        gc.collect()

    assert exit_code(fork(drops)) == 0
    child = subprocess.run(
        [sys.executable, "-c", HOLD, str(path), "risk"], capture_output=True, check=False
    )
    assert b"TailerInUseError" in child.stderr


def test_a_childs_life_does_not_keep_its_parents_names(
    path: Path, queue: quire.JournalQueue
) -> None:
    """The parent is gone, a child that it forked lives on."""
    ready, tell = os.pipe()
    stay, staying = os.pipe()

    def forks() -> None:
        own = quire.open(path)
        tailer = own.tailer("risk")
        if os.fork() == 0:
            os.close(staying)
            os.write(tell, b"x")
            os.read(stay, 1)
            os._exit(0)
        os.write(tell, b"x")
        os.read(stay, 1)
        tailer.close()

    pid = fork(forks)
    assert len(os.read(ready, 1) + os.read(ready, 1)) == 2
    with pytest.raises(quire.errors.TailerInUseError):
        queue.tailer("risk")
    os.kill(pid, signal.SIGKILL)
    assert exit_code(pid) == -signal.SIGKILL
    queue.tailer("risk").close()
    os.close(staying)


def test_shared_ones_read_side_by_side_as_javas_do(path: Path, queue: quire.JournalQueue) -> None:
    child = holding(path, "risk")
    try:
        with (
            queue.tailer("risk", shared=True) as one,
            queue.tailer("risk", shared=True) as other,
        ):
            assert one.read_bytes() == other.read_bytes() == TEXTS[0]
    finally:
        end(child)


def test_of_many_threads_one_gets_the_name(path: Path) -> None:
    start, opened, refused = (
        threading.Barrier(8),
        list[quire.JournalTailer](),
        list[BaseException](),
    )

    def asks() -> None:
        start.wait()
        try:
            opened.append(queue.tailer("risk"))
        except quire.errors.TailerInUseError as error:
            refused.append(error)

    with quire.open(path) as queue:
        threads = [threading.Thread(target=asks) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(opened), len(refused)) == (1, 7)


def test_no_two_names_share_a_lock(path: Path, queue: quire.JournalQueue) -> None:
    names = [f"name{number}" for number in range(300)]
    child = holding(path, *names[::2])
    try:
        for name in names[1::2]:
            queue.tailer(name).close()
        for name in names[::2]:
            with pytest.raises(quire.errors.TailerInUseError):
                queue.tailer(name)
    finally:
        end(child)


def test_a_name_that_failed_to_open_is_free(queue: quire.JournalQueue) -> None:
    with queue.tailer("risk") as tailer:
        tailer.read_many(2)
    Path(queue.file_for_cycle(queue.cycles[0])).unlink()
    queue.refresh()
    for _ in range(2):
        with pytest.raises(quire.errors.DataLossError):
            queue.tailer("risk", on_missing="raise")


@pytest.mark.parametrize("shared", [False, True])
def test_a_name_that_differs_in_case_alone_is_refused_with_both(
    queue: quire.JournalQueue, *, shared: bool
) -> None:
    queue.tailer("Risk").close()
    before = queue.table_entries()
    with pytest.raises(ValueError, match='name="risk" known="Risk" path='):
        queue.tailer("risk", shared=shared)
    assert queue.table_entries() == before
    queue.tailer("Risk").close()


def test_the_error_pickles() -> None:
    error = quire.errors.TailerInUseError("used", 7, 1_705_314_600)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.pid, again.since) == ("used", 7, error.since)
    assert error.since == datetime(2024, 1, 15, 10, 30, tzinfo=UTC)


def test_the_error_says_that_this_process_has_it_open(queue: quire.JournalQueue) -> None:
    """As where a cell of a notebook runs again."""
    first = queue.tailer("risk")
    with pytest.raises(quire.errors.TailerInUseError, match=r"this process .*close\(\)") as raised:
        queue.tailer("risk")
    assert raised.value.pid == os.getpid()
    first.close()
    queue.tailer("risk").close()
