"""What of a copy differs from its source: put aside, and the copy goes on."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import run
from java_peer import JavaPeer
from queues import DAY_MS, exit_code, fork, payloads, problems_of
from quire._common.durable import SafeFolder
from quire.errors import DataLossError, DivergedError
from quire.replication import promote, standing
from quire.replication.aside import put_aside
from replicas import Message, messages, replicate, wait_until

ROLL = "TEST4_DAILY"


def rejoin(origin: Path, copy: Path) -> None:
    roles: dict[Path, standing.Role] = {copy: "sink", origin: "source"}
    for path, role in roles.items():
        found = standing.read(path)
        assert found is not None
        standing.write(path, replace(found, epoch=2, role=role))


class Pair:
    """A source, and a copy that took messages of its own after it was promoted."""

    def __init__(self, tmp_path: Path) -> None:
        self.clock = quire.ManualClock(1_700_000_000_000)
        self.origin, self.copy = tmp_path / "source", tmp_path / "copy"
        self.append(self.origin, b"one", b"two", b"three", b"four", b"five")
        self.index = messages(self.origin)[0][0] + 5
        replicate(self.origin, self.copy)

    def append(self, path: Path, *payloads: bytes) -> None:
        with quire.open(path, roll_cycle=ROLL, block_bytes=1 << 16, clock=self.clock) as queue:
            queue.appender().write_many(payloads)

    def branch(self, *own: bytes) -> list[Message]:
        """Have the copy go on for itself, then be a sink again, as an old source would."""
        promote(self.copy)
        self.append(self.copy, *own or (b"own six", b"own seven"))
        self.append(self.origin, b"six", b"seven", b"eight")
        self.rejoin()
        return messages(self.copy)

    def rejoin(self) -> None:
        rejoin(self.origin, self.copy)

    @property
    def parts(self) -> list[Path]:
        folder = self.copy / "aside"
        return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_without_being_asked_nothing_is_changed(pair: Pair) -> None:
    before = pair.branch()
    with pytest.raises(DivergedError) as caught:
        replicate(pair.origin, pair.copy)
    assert caught.value.index == pair.index
    assert messages(pair.copy) == before
    assert pair.parts == []


@pytest.mark.slow
def test_the_end_that_differs_is_a_queue_of_its_own(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    before = pair.branch()
    replicate(pair.origin, pair.copy, repair=True)
    assert messages(pair.copy) == messages(pair.origin)
    [part] = pair.parts
    assert part.name == f"{pair.index:x}"
    assert messages(part) == before
    assert f"messages=2 first={pair.index:#x} folder={part}" in caplog.text
    assert problems_of(pair.copy) == []
    assert problems_of(part) == []


@pytest.mark.slow
def test_the_same_place_twice(pair: Pair) -> None:
    first = pair.branch()
    replicate(pair.origin, pair.copy, repair=True)
    part = put_aside(pair.copy, pair.index)
    assert part.messages == 3
    assert [it.name for it in pair.parts] == [f"{pair.index:x}", f"{pair.index:x}-2"]
    assert messages(pair.parts[0]) == first
    replicate(pair.origin, pair.copy)
    assert messages(pair.copy) == messages(pair.origin) == messages(pair.parts[1])


def test_a_named_tailer_goes_on_with_the_first_message_of_the_source(pair: Pair) -> None:
    pair.branch()
    with quire.open(pair.copy) as queue, queue.tailer("risk") as tailer:
        assert len(tailer.read_many(100)) == 7
    replicate(pair.origin, pair.copy, repair=True)
    with quire.open(pair.copy) as queue, queue.tailer("risk") as tailer:
        assert tailer.read_many(100) == [b"six", b"seven", b"eight"]


@pytest.mark.check
def test_a_tailer_that_reads_meanwhile_says_what_went(pair: Pair) -> None:
    pair.branch()
    with quire.open(pair.copy, read_only=True) as queue, queue.tailer(on_missing="raise") as tailer:
        assert len(tailer.read_many(100)) == 7
        replicate(pair.origin, pair.copy, repair=True)
        said, read = list[str](), list[bytes]()

        def has_read_all() -> bool:
            try:
                read.extend(tailer.read_many(100))
            except DataLossError as error:
                said.append(str(error))
            return len(read) == 3

        wait_until(has_read_all)
    assert len(said) == 1
    assert read == [b"six", b"seven", b"eight"]


def test_a_group_goes_on_with_the_first_message_of_the_source(pair: Pair) -> None:
    pair.branch()

    def take(count: int) -> list[bytes]:
        taken = list[bytes]()
        with quire.open(pair.copy) as queue, queue.group("billing").consumer() as consumer:
            while len(taken) < count and (found := consumer.read()) is not None:
                taken.append(found.data)
                found.ack()
        return taken

    assert len(take(7)) == 7
    replicate(pair.origin, pair.copy, repair=True)
    assert take(3) == [b"six", b"seven", b"eight"]


@pytest.mark.slow
def test_later_cycles_go_too(pair: Pair) -> None:
    promote(pair.copy)
    pair.append(pair.copy, b"own six")
    for own in (b"own of the next day", b"own of the day after"):
        pair.clock.advance(DAY_MS)
        pair.append(pair.copy, own)
    with quire.open(pair.copy) as queue, queue.tailer("risk") as tailer:
        assert len(tailer.read_many(100)) == 8
    before = messages(pair.copy)
    done = put_aside(pair.copy, pair.index)
    assert done.messages == 3
    assert len(list(pair.copy.glob("*.cq4"))) == 1
    pair.append(pair.origin, b"six")
    pair.rejoin()
    replicate(pair.origin, pair.copy)
    assert messages(pair.copy) == messages(pair.origin)
    assert messages(done.folder) == before
    with quire.open(pair.copy) as queue, queue.tailer("risk") as tailer:
        assert tailer.read_many(100) == [b"six"]
    assert problems_of(pair.copy) == []


@pytest.mark.check
def test_compressed_cycles_go_too(pair: Pair) -> None:
    promote(pair.copy)
    pair.clock.advance(DAY_MS)
    pair.append(pair.copy, b"own of the next day")
    run("prune", pair.copy, "--keep", "0d", "--action", "compress")
    before = messages(pair.copy)
    done = put_aside(pair.copy, pair.index - 2)
    assert done.messages == 3
    assert messages(done.folder) == before
    pair.rejoin()
    replicate(pair.origin, pair.copy)
    assert messages(pair.copy) == messages(pair.origin)


def test_the_first_message_of_all(pair: Pair) -> None:
    before = pair.branch()
    done = put_aside(pair.copy, pair.index - 5)
    assert (done.messages, messages(done.folder)) == (7, before)
    replicate(pair.origin, pair.copy)
    assert messages(pair.copy) == messages(pair.origin)


STEPS = ("move", "publish", "made", "sync", "sync_tree", "replace", "remove")


@pytest.mark.check
def test_killed_at_each_step_it_is_finished_by_who_comes_next(pair: Pair, tmp_path: Path) -> None:
    promote(pair.copy)
    pair.append(pair.copy, b"own six")
    pair.clock.advance(DAY_MS)
    pair.append(pair.copy, b"own of the next day")
    pair.append(pair.origin, b"six")
    pair.rejoin()
    before, common = messages(pair.copy), messages(pair.copy)[:5]
    prepared, whole = pair.copy, messages(pair.origin)
    for step in itertools.count():
        pair.copy = tmp_path / str(step)
        shutil.copytree(prepared, pair.copy)
        code = exit_code(fork(lambda: killed_at(step, pair)))  # noqa: B023 - called at once
        match step % 3:
            case 0:
                promote(pair.copy)
                assert messages(pair.copy) in (before, common)
            case 1:
                put_aside(pair.copy, pair.index)
                assert messages(pair.copy) == common
            case _:
                replicate(pair.origin, pair.copy, repair=True)
                assert messages(pair.copy) == whole
        kept = [it for part in pair.parts for it in messages(part)]
        assert set(before) <= {*kept, *messages(pair.copy)}
        assert problems_of(pair.copy) == []
        if code == 0:
            assert step > 10
            return
        assert code == -signal.SIGKILL
        shutil.rmtree(pair.copy)


def killed_at(step: int, pair: Pair) -> None:
    """Put the end aside, but be killed before the folder is changed this many times."""
    left = itertools.count(-step)

    def mortal(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:  # noqa: ANN401
            if next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(*args, **named)

        return call

    for name in STEPS:
        setattr(SafeFolder, name, mortal(getattr(SafeFolder, name)))
    put_aside(pair.copy, pair.index)


@pytest.mark.java
def test_java_reads_the_copy_and_the_part(pair: Pair) -> None:
    before = pair.branch()
    replicate(pair.origin, pair.copy, repair=True)
    java = JavaPeer()
    [part] = pair.parts
    for path, expected in ((pair.copy, messages(pair.origin)), (part, before)):
        found = java.check(path)
        assert found["count"] == found["moved"] == found["entryCount"] == len(expected)
        assert found["lastIndex"] == f"{expected[-1][0]:x}"


@pytest.mark.parametrize("repair", [False, True])
def test_what_differs_keeps_the_data_keys_that_it_was_encrypted_by(
    tmp_path: Path, *, repair: bool
) -> None:
    """Both go on apart, and both begin a data key, before they come together again."""
    origin, copy = tmp_path / "source", tmp_path / "copy"
    keys = {"old": bytes(range(32)), "new": bytes(range(1, 33))}
    old, new = (quire.KeyRing(keys, current=name) for name in keys)

    def append(path: Path, ring: quire.KeyRing, *payloads: bytes) -> None:
        with quire.open(path, key=ring) as queue, queue.appender() as appender:
            appender.write_many(payloads)

    def found(path: Path) -> list[bytes]:
        with quire.open(path, key=new, read_only=True) as queue:
            return payloads(queue)

    append(origin, old, b"one", b"two")
    replicate(origin, copy, key=old)
    promote(copy)
    append(copy, new, b"own three")
    append(origin, new, b"three", b"four")
    rejoin(origin, copy)
    before = found(copy)
    if not repair:
        with pytest.raises(DivergedError):
            replicate(origin, copy, key=new)
        assert found(copy) == before
        return
    replicate(origin, copy, repair=True, key=new)
    assert found(copy) == found(origin) == [b"one", b"two", b"three", b"four"]
    [part] = (copy / "aside").iterdir()
    assert found(part) == before
    promote(copy)
    append(copy, new, b"five")
    assert found(copy)[-1] == b"five"
