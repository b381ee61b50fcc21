"""Roll cycles of one's own and time zones, beside Java: what its open version takes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import quire
from java_peer import JavaPeer, Option

pytestmark = pytest.mark.java

START = 1_700_000_000_000
HOUR_MS = 3_600_000
BLOCK = 65536
THREE_HOURLY = quire.RollCycle(
    length_ms=3 * HOUR_MS, pattern="yyyyMMdd-HH'III'", index_count=8, index_spacing=2
)
WEEKS = quire.RollCycle(
    length_ms=168 * HOUR_MS, pattern="yyyyDDD", index_count=16_384, index_spacing=64
)


@pytest.fixture(params=["5.27ea11", "2026.4"])
def peer(request: pytest.FixtureRequest) -> JavaPeer:
    return JavaPeer(request.param)


def java_name(roll: quire.RollCycle) -> str:
    return f"custom {roll.length_ms} {roll.pattern} {roll.index_count} {roll.index_spacing}"


def java_opens(peer: JavaPeer, path: Path, **options: Option) -> dict[str, Any]:
    (line,) = peer.run("open", dir=path, start=START, **options)
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.parametrize("roll", [THREE_HOURLY, WEEKS], ids=lambda roll: roll.name)
def test_both_append_to_a_queue_of_a_roll_cycle_of_ones_own(
    peer: JavaPeer, tmp_path: Path, roll: quire.RollCycle
) -> None:
    clock = quire.ManualClock(START)
    name = java_name(roll)
    written: list[str] = []
    with (
        quire.open(tmp_path, roll_cycle=roll, clock=clock, block_bytes=BLOCK) as queue,
        queue.appender() as appender,
    ):
        for turn in range(3):
            written += [f"{appender.write_text(str(number)):x}" for number in range(20)]
            written += peer.run(
                "write", dir=tmp_path, count=20, start=clock.now_ms, roll_cycle=name
            )
            if turn < 2:
                clock.advance(roll.length_ms)
    listed = [line.split()[0] for line in peer.run("list", dir=tmp_path, roll_cycle=name)]
    assert listed == written
    with quire.open(tmp_path, read_only=True) as queue, queue.tailer() as tailer:
        assert [f"{excerpt.index:x}" for excerpt in tailer] == written
        assert all(tailer.move_to_index(int(index, 16)) for index in written)
    assert quire.verify(tmp_path).ok


def test_a_roll_cycle_that_java_made_is_taken_from_its_files(
    peer: JavaPeer, tmp_path: Path
) -> None:
    name = java_name(THREE_HOURLY)
    written = peer.run("write", dir=tmp_path, count=50, start=START, roll_cycle=name)
    with quire.open(tmp_path, read_only=True) as queue:
        assert queue.roll_cycle == THREE_HOURLY
        assert [f"{excerpt.index:x}" for excerpt in queue.tailer()] == written


def test_java_opens_it_only_with_the_same_roll_cycle(peer: JavaPeer, tmp_path: Path) -> None:
    quire.open(tmp_path, roll_cycle=THREE_HOURLY, block_bytes=BLOCK).close()
    assert java_opens(peer, tmp_path, roll_cycle=java_name(THREE_HOURLY))["ok"]
    refused = java_opens(peer, tmp_path, roll_cycle="FAST_DAILY")
    assert not refused["ok"]
    assert "Can't find an appropriate RollCycles" in refused["message"]


def test_javas_open_version_refuses_a_zone(peer: JavaPeer, tmp_path: Path) -> None:
    with (
        quire.open(
            tmp_path,
            roll=quire.RollOptions(roll_time="17:00"),
            time_zone="America/New_York",
            clock=quire.ManualClock(START),
            block_bytes=BLOCK,
        ) as queue,
        queue.appender() as appender,
    ):
        appender.write_text("one")
    refused = java_opens(peer, tmp_path)
    assert not refused["ok"]
    assert "Enterprise features requested" in refused["message"]
    assert quire.verify(tmp_path).ok


def test_a_table_that_java_made_with_a_zone_and_then_refused_is_used(
    peer: JavaPeer, tmp_path: Path
) -> None:
    zone = {"roll_time": "17:00", "roll_time_zone": "America/New_York"}
    assert not java_opens(peer, tmp_path, roll_cycle="FAST_DAILY", **zone)["ok"]
    with quire.open(tmp_path, block_bytes=BLOCK) as queue:
        assert (queue.roll_time_zone, queue.epoch_ms) == ("America/New_York", 17 * HOUR_MS)


def test_java_appends_and_reads_beside_a_file_that_was_created_early(
    peer: JavaPeer, tmp_path: Path
) -> None:
    roll = "TEST_SECONDLY"
    clock = quire.ManualClock(START)

    def java_lists() -> list[str]:
        lines = peer.run("list", dir=tmp_path, roll_cycle=roll, block_size=BLOCK)
        return [line.split()[0] for line in lines]

    def java_writes() -> list[str]:
        start = clock.now_ms
        return peer.run(
            "write", dir=tmp_path, count=2, start=start, roll_cycle=roll, block_size=BLOCK
        )

    with (
        quire.open(tmp_path, roll_cycle=roll, clock=clock, block_bytes=BLOCK) as queue,
        queue.appender() as appender,
        queue.pretoucher(early_acquire_next_cycle=True, preroll_time_s=0.4) as pretoucher,
    ):
        written = [f"{appender.write_text('before'):x}"]
        clock.advance(700)
        pretoucher.execute()
        assert len([*tmp_path.glob("*.cq4")]) == 2
        assert java_lists() == written
        written += java_writes()
        written.append(f"{appender.write_text('after Java'):x}")
        clock.advance(300)
        written.append(f"{appender.write_text('rolled'):x}")
        written += java_writes()
        assert java_lists() == written == sorted(written)
        with queue.tailer() as tailer:
            assert [f"{excerpt.index:x}" for excerpt in tailer] == written
    # Java opened the queue and listed the early file, so appends may go there before its time.
    assert len({int(index, 16) >> 32 for index in written}) == 2
    assert quire.verify(tmp_path).ok
