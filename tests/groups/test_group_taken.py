"""A group that is closed for a new source while its consumers work: what they were told holds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

import quire
from pause_points import Party
from quire._native import group_keep, group_snapshot, group_take
from quire.errors import GroupError

COUNT: Final = 4
WORKS: Final = """
with quire.open(sys.argv[1]) as queue, queue.group("desk").consumer() as consumer:
    first = consumer.read()
    arm()
    try:
        if sys.argv[2] == "acknowledge":
            say(first.ack())
        else:
            message = consumer.read()
            say(message.data.decode())
    except quire.errors.GroupError:
        say("put out")
"""


@pytest.fixture
def file(path: Path) -> Path:
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_many([b"%d" % number for number in range(COUNT)])
        queue.group("desk").consumer().close()
    return path / "desk.qgroup"


def freed(path: Path, file: Path) -> list[str]:
    """Return what a consumer gets, once the group may be read with."""
    state = group_snapshot(file, 2**63 - 1)
    assert state is not None
    assert group_keep(path, "desk", state, kept=False)
    with quire.open(path) as queue, queue.group("desk").consumer() as consumer:
        found = list[str]()
        while batch := consumer.read_many(COUNT):
            found += [it.data.decode() for it in batch]
        return found


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(
    ("work", "point"),
    [
        ("acknowledge", "group.change.cas"),
        ("claim", "group.frontier.cas"),
        ("claim", "group.complete.cas"),
    ],
)
def test_what_a_consumer_was_told_meanwhile_holds(
    path: Path, file: Path, work: str, point: str, side: str
) -> None:
    with Party(WORKS, path, work, point=point, side=side) as party:  # type: ignore[arg-type]
        party.wait_until_stopped()
        assert group_take(file)
        party.go_on()
        (said,) = party.result()
    assert said == "put out"
    left = freed(path, file)
    assert sorted({*left} | ({"0"} if work == "acknowledge" and side == "after" else set())) == [
        str(number) for number in range(COUNT)
    ]


def test_acknowledgements_of_many_threads_count_or_fail(path: Path) -> None:
    count = 4000
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_many([b"%d" % number for number in range(count)])

        def work(_: int) -> list[str]:
            done = list[str]()
            with suppress(GroupError), queue.group("desk").consumer() as consumer:
                while (message := consumer.read()) is not None:
                    if message.ack():
                        done.append(message.data.decode())
                    if len(done) == 200:
                        taken.append(group_take(path / "desk.qgroup"))
            return done

        taken = list[bool]()
        with ThreadPoolExecutor(3) as others:
            done = [it for found in others.map(work, range(3)) for it in found]
    assert any(taken)
    left = freed(path, path / "desk.qgroup")
    assert len(done) < count
    assert not {*done} & {*left}
    assert {*done} | {*left} >= {str(number) for number in range(count)} - {*done}


def test_nothing_is_taken_where_nothing_is(path: Path) -> None:
    quire.open(path).close()
    assert not group_take(path / "desk.qgroup")
    (path / "desk.qgroup").write_bytes(bytes(100))
    assert not group_take(path / "desk.qgroup")
    assert (path / "desk.qgroup").read_bytes() == bytes(100)
