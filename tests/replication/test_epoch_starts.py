"""Where the epochs of a queue began: what a replica and its source must have in common."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, Literal

import pytest

import quire
from quire._common.durable import SafeFolder
from quire.errors import DivergedError
from quire.replication import promote, synced_end
from quire.replication.epoch_starts import (
    NAME,
    EpochStart,
    adopt,
    begin,
    ensure,
    parsed,
    same_until,
    starts_of,
)
from quire.replication.synced_end import NAME as SYNCED
from replicas import replicate

ALL = 1 << 63
PAYLOADS = [b"message %d" % number for number in range(20)]


def of(*pairs: tuple[int, int]) -> tuple[EpochStart, ...]:
    return tuple(EpochStart(*it) for it in pairs)


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [
        ([], [(1, 0)], 0),
        ([(1, 0)], [], 0),
        ([(1, 0)], [(2, 7)], 0),
        ([(1, 0)], [(1, 0)], ALL),
        ([(1, 0)], [(1, 0), (2, 70), (3, 90)], 70),
        ([(1, 0), (2, 50)], [(1, 0), (3, 90)], 50),
        ([(1, 0), (2, 50)], [(1, 0), (3, 40)], 40),
        ([(1, 0), (2, 50)], [(1, 0), (2, 60)], 50),
        ([(2, 50), (3, 60)], [(1, 0), (2, 50), (3, 60), (4, 99)], 99),
    ],
)
def test_queues_are_the_same_up_to_an_epoch_of_one_of_them(
    own: list[tuple[int, int]], others: list[tuple[int, int]], expected: int
) -> None:
    assert same_until(of(*own), of(*others)) == expected
    assert same_until(of(*others), of(*own)) == expected


@pytest.mark.parametrize(
    "found",
    [
        None,
        {},
        "no list",
        [[1, 0], [1, 5]],
        [[2, 0], [1, 5]],
        [[1]],
        [[1, 0, 0]],
        [[1, -1]],
        [[1, 1 << 63]],
        [[True, 0]],
        [[1, 0.5]],
        [1, 2],
        [[number, number] for number in range(33)],
    ],
)
def test_what_is_no_such_list_says_nothing(path: Path, found: Any) -> None:  # noqa: ANN401
    assert parsed(found) == ()
    with quire.open(path) as queue:
        (path / NAME).write_text(json.dumps(found))
        assert starts_of(queue) == ()


def test_a_list_that_is_damaged_or_a_link_says_nothing_and_is_written_again(
    path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_text("[[1, 0]]")
    with quire.open(path) as queue:
        (path / NAME).symlink_to(other)
        assert starts_of(queue) == ()
        ensure(queue, 3)
        assert starts_of(queue) == of((3, 0))
        assert other.read_text() == "[[1, 0]]"
        (path / NAME).write_bytes(b"[" * 5000)
        assert starts_of(queue) == ()
        begin(queue, 4)
        assert starts_of(queue) == of((4, 0))


def test_an_epoch_begins_after_the_last_message(path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        begin(queue, 1)
        last = appender.write_bytes(b"x")
        ensure(queue, 1)
        begin(queue, 1)  # a promotion that was killed before its end
        begin(queue, 2)
        assert starts_of(queue) == of((1, 0), (2, last + 1))
        for epoch in range(3, 50):
            begin(queue, epoch)
        assert [it.epoch for it in starts_of(queue)] == [*range(18, 50)]
        ensure(queue, 60)  # an earlier version of Quire promoted it: the list has a gap
        assert starts_of(queue) == of((60, last + 1))
        adopt(queue, ())
        assert starts_of(queue) == ()


def flip(path: Path, payload: bytes) -> None:
    """Change one byte of a message in place."""
    [file] = path.glob("*.cq4")
    content = file.read_bytes()
    with file.open("r+b") as changed:
        changed.seek(content.index(payload) + 3)
        changed.write(b"\xff")


def made(tmp_path: Path, acknowledge: Literal["stored", "synced"] = "stored") -> tuple[Path, Path]:
    orders, copy = tmp_path / "orders", tmp_path / "copy"
    with quire.open(orders, roll_cycle="FAST_DAILY", block_bytes=1 << 16) as queue:
        queue.appender().write_many(PAYLOADS)
    replicate(orders, copy, acknowledge=acknowledge)
    return orders, copy


def restart_the_machine(path: Path) -> None:
    """Have the states of a queue's replicas be those of before a restart."""
    with (path / "replicas.quire").open("r+b") as file:
        file.seek(8)
        file.write(b"another!")


@pytest.mark.parametrize("side", ["orders", "copy"])
@pytest.mark.parametrize("is_promoted", [False, True])
def test_a_damaged_file_differs_from_a_source_that_was_replaced(
    tmp_path: Path, side: str, *, is_promoted: bool
) -> None:
    orders, copy = made(tmp_path)
    source, sink = orders, copy
    if is_promoted:
        promote(copy)
        source, sink = copy, orders
    flip(tmp_path / side, PAYLOADS[7])
    with pytest.raises(DivergedError, match="one of the two files was damaged") as raised:
        replicate(source, sink)
    assert raised.value.was_same


@pytest.mark.parametrize(
    ("acknowledge", "was_same"), [("stored", False), ("synced", True)], ids=["stored", "synced"]
)
def test_a_replica_that_was_synced_is_not_damaged_by_a_restart(
    tmp_path: Path, acknowledge: Literal["stored", "synced"], *, was_same: bool
) -> None:
    orders, copy = made(tmp_path, acknowledge)
    restart_the_machine(copy)
    flip(orders, PAYLOADS[7])
    with pytest.raises(DivergedError) as raised:
        replicate(orders, copy)
    assert raised.value.was_same == was_same


def test_what_was_put_aside_does_not_count_as_synced(tmp_path: Path) -> None:
    orders, copy = made(tmp_path, "synced")
    flip(orders, PAYLOADS[7])
    replicate(orders, copy, repair=True)
    with quire.open(orders, read_only=True) as queue:
        first, last = queue.first_index, queue.last_index
    assert first is not None
    assert last is not None
    assert json.loads((copy / SYNCED).read_text()) == {"next": first + 7}
    replicate(orders, copy, acknowledge="synced")
    assert json.loads((copy / SYNCED).read_text()) == {"next": last + 1}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"next": -1}', '{"next": true}', "x" * 99])
def test_a_damaged_record_of_what_was_synced_counts_as_none(tmp_path: Path, content: str) -> None:
    orders, copy = made(tmp_path, "synced")
    restart_the_machine(copy)
    (copy / SYNCED).write_text(content)
    flip(orders, PAYLOADS[7])
    with pytest.raises(DivergedError) as raised:
        replicate(orders, copy)
    assert not raised.value.was_same


def test_a_synced_replica_and_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SafeFolder, "replace", refused)
    with quire.open(tmp_path / "copy") as queue:
        record = synced_end.SyncedEnd(queue, 0)
        record.note(7, 1)
        record.note(8, 2)
    assert record.next == 0
    assert caplog.text.count("replication.synced cannot be stored") == 1


def test_messages_that_only_the_old_source_has_are_no_damage(tmp_path: Path) -> None:
    orders, copy = made(tmp_path)
    with quire.open(orders) as queue:
        queue.appender().write_bytes(b"only here")
    promote(copy)
    with quire.open(copy) as queue:
        queue.appender().write_bytes(b"of the new source")
    with pytest.raises(DivergedError, match="hold different messages") as raised:
        replicate(copy, orders)
    assert not raised.value.was_same
    replicate(copy, orders, repair=True)
    with quire.open(orders, read_only=True) as one, quire.open(copy, read_only=True) as other:
        assert starts_of(one) == starts_of(other)
