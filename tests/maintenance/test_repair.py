"""`quire.repair`: whatever is repaired, no message that could be read is lost."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from damages import break_message, fill, patch, positions
from journal_damages import DAMAGES, Damage
from queues import START_MS, copy_of, problems_of, snapshot

DAYS, PER_DAY = 3, 40
DAY_MS = 86_400_000
WITHOUT_HEADER = {"unreadable-table", "no-table"}


@pytest.fixture
def queue(path: Path) -> Path:
    fill(path, DAYS, PER_DAY)
    with quire.open(path) as queue, queue.tailer("risk") as tailer:
        tailer.read_many(7)
    return path


def payloads(path: Path) -> list[bytes]:
    with (
        quire.open(path, read_only=True, wait=quire.WaitOptions(eof_grace_s=0.0)) as queue,
        queue.tailer() as tailer,
    ):
        return list(tailer.payloads())


def files_of(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.glob("*.cq4*")) if file.is_file()}


def readable(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield what each index of the queue gives, as far as it gives something."""
    roll = quire.RollCycle("TEST4_DAILY")
    first = START_MS // DAY_MS
    try:
        queue = quire.open(
            path, read_only=True, roll_cycle="TEST4_DAILY", wait=quire.WaitOptions(eof_grace_s=0.0)
        )
    except quire.QuireError:
        return
    with queue, queue.tailer() as tailer:
        for cycle in range(first, first + DAYS):
            for sequence in range(PER_DAY + 1):
                index = roll.to_index(cycle, sequence)
                try:
                    if tailer.move_to_index(index) and (data := tailer.read_bytes()) is not None:
                        yield index, data
                except quire.QuireError:
                    continue


def test_nothing_is_done_to_a_whole_queue(queue: Path) -> None:
    before = snapshot(queue)
    report = quire.repair(queue, dry_run=False)
    assert (report.ok, report.actions, report.planned) == (True, (), ())
    assert snapshot(queue) == before


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_each_damage_is_repaired(queue: Path, damage: Damage) -> None:
    damage.do(queue)
    before, files = dict(readable(queue)), snapshot(queue)
    planned = quire.repair(queue)
    assert damage.kind in {finding.kind for finding in planned.planned}
    assert snapshot(queue) == files  # a dry run

    report = quire.repair(queue, dry_run=False)

    assert damage.kind in {action.kind for action in report.actions}
    assert report.after.findings == ()
    assert problems_of(queue) == []
    after = dict(readable(queue))
    assert before.items() <= after.items()
    assert len(payloads(queue)) == len(after) == DAYS * PER_DAY - damage.lost
    clock = quire.ManualClock(START_MS + DAYS * DAY_MS)
    with quire.open(queue, clock=clock) as opened, opened.appender() as appender:
        appender.write_bytes(b"after the repair")
        if damage.kind not in WITHOUT_HEADER - {"unreadable-table"}:
            assert opened.named_tailers() == [("risk", opened.named_tailers()[0][1])]
    assert payloads(queue)[-1] == b"after the repair"
    assert quire.verify(queue).findings == ()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_a_second_repair_changes_nothing(queue: Path, damage: Damage) -> None:
    damage.do(queue)
    quire.repair(queue, dry_run=False)
    before = files_of(queue)
    assert quire.repair(queue, dry_run=False).actions == ()
    assert files_of(queue) == before


def test_what_is_cut_off_is_kept_at_its_place(queue: Path) -> None:
    file = max(queue.glob("*.cq4"))
    position = break_message(file, PER_DAY - 1)
    cut = file.read_bytes()[position:]
    quire.repair(queue, dry_run=False)
    (kept,) = queue.glob("*.discard")
    assert kept.read_bytes()[position:].rstrip(b"\0") == cut.rstrip(b"\0")
    assert len(positions(file)) == PER_DAY - 1


def test_messages_after_a_gap_keep_their_indexes(queue: Path) -> None:
    file = min(queue.glob("*.cq4"))
    break_message(file, 10)
    before = dict(readable(queue))
    report = quire.repair(queue, dry_run=False)
    assert (report.ok, report.actions) == (False, ())
    assert dict(readable(queue)) == before


def test_an_unreadable_file_is_left_alone(queue: Path) -> None:
    file = min(queue.glob("*.cq4"))
    patch(file, 0, b"spoiled!" * 512)  # the index arrays too, which would prove the header
    before = file.read_bytes()
    report = quire.repair(queue, dry_run=False)
    assert [finding.kind for finding in report.after.findings] == ["unreadable-file"]
    assert file.read_bytes() == before


def test_a_living_holder_of_the_lock_is_respected(queue: Path) -> None:
    files = sorted(queue.glob("*.cq4"))
    for damage in DAMAGES[:1]:
        damage.do(queue)
    clock = quire.ManualClock(START_MS + (DAYS - 1) * DAY_MS)
    with quire.open(queue, clock=clock) as opened, opened.appender() as appender:
        appender.write_bytes(b"one")  # writes the mark
        DAMAGES[0].do(queue)
        before = files[0].read_bytes()
        with appender.writing_document() as document:
            document.write_bytes(b"two")
            with pytest.raises((quire.errors.LockTimeoutError, quire.errors.WriterInUseError)):
                quire.repair(queue, dry_run=False, timeout_s=0.0)
            assert files[0].read_bytes() == before


def test_a_table_is_not_built_again_under_a_writer(queue: Path) -> None:
    damage = next(damage for damage in DAMAGES if damage.kind == "table-entry")
    with quire.open(queue) as opened, opened.appender() as appender:
        appender.write_bytes(b"one")
        damage.do(queue)
        with pytest.raises(quire.errors.WriterInUseError):
            quire.repair(queue, dry_run=False)


def test_the_table_keeps_what_can_be_read(queue: Path) -> None:
    with quire.open(queue) as opened:
        before = dict(opened.table_entries())
    damage = next(damage for damage in DAMAGES if damage.kind == "table-entry")
    damage.do(queue)
    quire.repair(queue, dry_run=False)
    with quire.open(queue) as opened:
        after = dict(opened.table_entries())
        assert opened.epoch_ms == 0
    same = [key for key in before if key != "listing.modCount"]
    assert {key: after[key] for key in same} == {key: before[key] for key in same}


def test_several_queues_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        fill(tmp_path / name, 2, 5)
    damage = DAMAGES[0]
    damage.do(tmp_path / "b")
    report = quire.repair(tmp_path, dry_run=False)
    (action,) = report.actions
    assert (action.kind, Path(action.file).parent.name, report.ok) == (damage.kind, "b", True)


def test_one_file_is_refused(queue: Path) -> None:
    with pytest.raises(quire.errors.UnsupportedError):
        quire.repair(next(queue.glob("*.cq4")))


def agreed(path: Path) -> None:
    """Repair a queue, and hold what was done against what the dry run lists."""
    planned = [(it.kind, it.file, it.position) for it in quire.repair(path).planned]
    report = quire.repair(path, dry_run=False)
    assert [(it.kind, it.file, it.position) for it in report.actions] == planned
    assert all(it.done for it in report.actions)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_a_run_does_what_the_dry_run_lists(queue: Path, damage: Damage) -> None:
    damage.do(queue)
    agreed(queue)


@pytest.mark.check
@pytest.mark.parametrize("first", DAMAGES, ids=lambda damage: damage.name)
def test_a_run_does_what_the_dry_run_lists_of_two_damages(queue: Path, first: Damage) -> None:
    for number, second in enumerate(DAMAGES):
        copy = copy_of(queue, queue.with_name(f"copy{number}"))
        first.do(copy)
        try:
            second.do(copy)
        except (OSError, IndexError, ValueError, RuntimeError, struct.error):
            continue  # nothing is left for it to damage
        try:
            quire.repair(copy)
        except quire.QuireError:
            continue
        agreed(copy)


def test_the_command_lists_what_it_does(queue: Path, cli: Cli) -> None:
    DAMAGES[5].do(queue)
    planned = [it.split(":")[0] for it in cli("repair", queue).out.splitlines()[:-1:2]]
    done = cli("repair", queue, "--apply").out.splitlines()
    assert [it.split(":")[0] for it in done[:-1:2]] == planned
    assert done[-1] == f"{len(planned)} repaired"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_table_that_root_builds_again_has_the_owner_of_the_old_one(queue: Path) -> None:
    damage = next(damage for damage in DAMAGES if damage.kind == "table-entry")
    damage.do(queue)
    table = queue / "metadata.cq4t"
    os.chown(table, 4242, 4243)
    before = table.stat()
    quire.repair(queue, dry_run=False)
    after = table.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_uid, after.st_gid, after.st_mode) == (4242, 4243, before.st_mode)
