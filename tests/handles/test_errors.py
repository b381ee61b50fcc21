"""Errors: one class for each thing that can go wrong, values in the text, all of them pickle."""

from __future__ import annotations

import copy
import os
import pickle
import re
from pathlib import Path
from typing import Any, Literal

import pytest

import quire
from queues import DAY_MS, START_MS, UNLOCKED, WRITE_LOCK, exit_code, fork, payloads, poke
from quire import errors

EVERY = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, quire.QuireError)
]
# Raised by one part alone, and exported by that part if a user is to catch it there.
OF_A_PART = {
    "WhereError",
    *("MalformedInputError", "NoJavaError", "OptionsError", "PipelineError"),
    *("PipelineFileError", "StepError", "StoppedError", "UnfinishedWriteError"),
}
CLASSES = [error for error in EVERY if error.__name__ not in OF_A_PART]
ALSO: dict[type[quire.QuireError], type[Exception]] = {
    quire.errors.MessageTooLargeError: ValueError,
    quire.errors.IndexOutOfRangeError: LookupError,
    quire.errors.LockTimeoutError: TimeoutError,
    quire.errors.WaitTimeoutError: TimeoutError,
}
INIT_PID = 1  # lives as long as the machine


@pytest.fixture
def dead_pid() -> int:
    """The pid of a process that was."""
    pid = fork(lambda: None)
    exit_code(pid)
    return pid


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_error_pickles_and_copies(error: type[quire.QuireError]) -> None:
    raised = error("what is wrong: name=value")
    for again in (pickle.loads(pickle.dumps(raised)), copy.deepcopy(raised)):
        assert type(again) is error
        assert str(again) == str(raised) == "what is wrong: name=value"
        assert again.args == raised.args


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_error_is_part_of_the_package_and_of_its_tree(error: type[quire.QuireError]) -> None:
    assert getattr(errors, error.__name__) is error
    assert error.__name__ in errors.__all__
    assert error.__name__ in (errors.__doc__ or "")
    assert issubclass(error, ALSO.get(error, quire.QuireError))


def test_the_tree_names_no_error_that_is_not_there() -> None:
    builtin = {
        "AttributeError",
        "ConnectionError",
        "LookupError",
        "OSError",
        "TimeoutError",
        "ValueError",
    }
    named = set(re.findall(r"\w+Error\b", errors.__doc__ or ""))

    assert named - builtin == {error.__name__ for error in EVERY}


def test_a_corrupt_file_keeps_its_values_apart() -> None:
    error = quire.errors.CorruptError("text", "file", 7, "found", "expected")
    again = pickle.loads(pickle.dumps(error))

    assert str(again) == "text"
    assert (again.file, again.position) == ("file", 7)
    assert (again.found, again.expected) == ("found", "expected")


def test_errors_that_were_raised_pickle_too(queue: quire.JournalQueue, path: Path) -> None:
    appender, tailer = queue.appender(), queue.tailer()
    appender.write_bytes(b"\xa1")
    (path / "20240116T4.cq4").write_bytes(b"\x01\x00\x00\x40 no header " * 100)
    calls: list[Any] = [
        lambda: appender.write_bytes(bytes(2**16 + 1)),
        lambda: tailer.move_to_index(-1),
        tailer.read_text,
        lambda: quire.open(path.parent / "empty").tailer().wait(0.0),
        lambda: quire.open(path, roll_cycle="TEST2_DAILY"),
        lambda: quire.open(path / "none", create=False),
        lambda: quire.open(path, read_only=True).appender(),
        lambda: quire.open(path, wire_type="TEXT"),
        lambda: quire.open(path, read_only=True).end_of_cycle(START_MS // DAY_MS + 1),
    ]
    raised: list[Exception] = []
    for call in calls:
        with pytest.raises(quire.QuireError) as caught:
            call()
        raised.append(caught.value)

    for error in raised:
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        assert re.search(r": .*\w+=\S|: .*[a-z]", str(error))
    assert len({type(error) for error in raised}) == len(raised)


@pytest.mark.parametrize(
    ("mode", "pid"),
    [("dead", INIT_PID), ("never", INIT_PID), ("never", os.getpid())],
    ids=["dead", "never", "never, this process"],
)
def test_a_living_holder_keeps_the_lock(
    path: Path, mode: Literal["dead", "never"], pid: int
) -> None:
    with quire.open(path, timeout_s=0.1, force_unlock=mode) as queue:
        appender = queue.appender()
        appender.write_bytes(b"before")
        poke(path, WRITE_LOCK, pid)
        with pytest.raises(quire.errors.LockTimeoutError, match=f"holder_pid={pid} ") as caught:
            appender.write_bytes(b"x")
        assert "waited_ms=" in str(caught.value)
        assert f"force_unlock={mode}" in str(caught.value)
        with pytest.raises(TimeoutError):
            appender.write_many([b"x"])
        with pytest.raises(TimeoutError):
            appender.writing_document()
        assert queue.table_value(WRITE_LOCK) == pid
        poke(path, WRITE_LOCK, UNLOCKED)
        appender.write_bytes(b"after")
        assert payloads(queue) == [b"before", b"after"]


def test_the_lock_of_a_dead_holder_is_taken(path: Path, dead_pid: int) -> None:
    with quire.open(path, timeout_s=0.1) as queue:
        appender = queue.appender()
        appender.write_bytes(b"before")
        poke(path, WRITE_LOCK, dead_pid)
        appender.write_bytes(b"after")
        assert payloads(queue) == [b"before", b"after"]
        assert queue.table_value(WRITE_LOCK) == UNLOCKED


@pytest.mark.parametrize("mode", ["dead", "always"])
@pytest.mark.parametrize("timeout_s", [0, 0.0005])
def test_a_dead_holder_is_looked_at_however_short_the_wait(
    path: Path,
    dead_pid: int,
    caplog: pytest.LogCaptureFixture,
    timeout_s: float,
    mode: Literal["dead", "always"],
) -> None:
    with quire.open(path, timeout_s=timeout_s, force_unlock=mode) as queue:
        appender = queue.appender()
        poke(path, WRITE_LOCK, dead_pid)
        appender.write_bytes(b"taken")
        assert payloads(queue) == [b"taken"]
    assert [f"lock taken from a dead holder: holder_pid={dead_pid}"] == caplog.messages


def test_high_bits_of_the_lock_word_are_no_part_of_the_pid(path: Path, dead_pid: int) -> None:
    with quire.open(path, timeout_s=0.1) as queue, queue.appender() as appender:
        appender.write_bytes(b"before")
        poke(path, WRITE_LOCK, (77 << 32) + dead_pid)
        appender.write_bytes(b"after")
        poke(path, WRITE_LOCK, (77 << 32) + INIT_PID)
        with pytest.raises(quire.errors.LockTimeoutError, match=f"holder_pid={INIT_PID} "):
            appender.write_bytes(b"x")
        poke(path, WRITE_LOCK, UNLOCKED)


def test_never_means_that_even_a_dead_holder_keeps_it(path: Path, dead_pid: int) -> None:
    with quire.open(path, timeout_s=0.05, force_unlock="never") as queue:
        appender = queue.appender()
        poke(path, WRITE_LOCK, dead_pid)
        with pytest.raises(quire.errors.LockTimeoutError, match="force_unlock=never"):
            appender.write_bytes(b"x")
    with quire.open(path, force_unlock="never") as queue:
        assert queue.table_value(WRITE_LOCK) == dead_pid


def test_always_means_that_even_a_living_holder_loses_it(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with quire.open(path, timeout_s=0.05, force_unlock="always") as queue:
        poke(path, WRITE_LOCK, INIT_PID)
        queue.appender().write_bytes(b"taken")
        assert payloads(queue) == [b"taken"]
    assert [record.levelname for record in caplog.records if "holder_pid=1" in record.message]


def test_opening_to_write_frees_the_lock_of_a_dead_holder(path: Path, dead_pid: int) -> None:
    quire.open(path).close()
    poke(path, WRITE_LOCK, dead_pid)
    with quire.open(path, read_only=True) as queue:
        assert queue.table_value(WRITE_LOCK) == dead_pid
    with quire.open(path) as queue:
        assert queue.table_value(WRITE_LOCK) == UNLOCKED
