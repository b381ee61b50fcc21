"""Cycles that `quire.prune` compressed are read like any others, and never written."""

from __future__ import annotations

import json
import os
import queue as queue_module
import shutil
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import quire
import quire.retaining.pruning
from cli_runs import Cli
from queues import DAY_MS, START_MS, backward, copy_of, forward, payloads, problems_of, snapshot
from quire._common.file_identity import Identity
from quire.archive import archive
from quire.errors import UnsafePathError

DAYS = 5
MESSAGES = 300  # of a day: more than one slot of the index
FIRST = 19737  # the cycle of the first day
NOW = quire.ManualClock(START_MS + (DAYS - 1) * DAY_MS)


@pytest.fixture
def orders(path: Path) -> Path:
    """Five days of messages; all but the newest are finished."""
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="FAST_DAILY", clock=clock, block_bytes=2**16) as queue:
        appender = queue.appender()
        for day in range(DAYS):
            appender.write_many([b"%d.%d" % (day, number) for number in range(MESSAGES)])
            clock.advance(DAY_MS)
    return path


def compress(path: Path, left: int = 2, **options: Any) -> quire.retaining.PruneReport:  # noqa: ANN401
    return quire.prune(path, max_cycles=left, action="compress", clock=NOW, **options)


def names_in(path: Path) -> list[str]:
    return sorted(it.name for it in path.iterdir() if ".cq4" in it.name and it.suffix != ".cq4t")


def read_only(path: Path) -> quire.JournalQueue:
    return quire.open(path, read_only=True)


def nobody(_files: object) -> tuple[dict[Identity, list[quire.maintenance.FileUser]], int]:
    """Say that no process has a file open, as where /proc does not show it."""
    return {}, 1


def open_files(path: Path) -> list[str]:
    """Return the files below a directory that this process has open."""
    links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    return sorted(link for link in links if link.startswith(str(path)))


def index_of(day: int, number: int) -> int:
    return ((FIRST + day) << 32) + number


def test_what_exceeds_a_limit_is_compressed_in_place(orders: Path) -> None:
    sizes = [file.stat().st_blocks for file in sorted(orders.glob("*.cq4"))]
    report = compress(orders)

    assert [it.file.name for it in report.removed] == [
        "20240115F.cq4",
        "20240116F.cq4",
        "20240117F.cq4",
    ]
    assert [it.dest for it in report.removed] == [
        orders / f"{it.file.name}.zst" for it in report.removed
    ]
    assert names_in(orders) == [
        "20240115F.cq4.zst",
        "20240116F.cq4.zst",
        "20240117F.cq4.zst",
        "20240118F.cq4",
        "20240119F.cq4",
    ]
    compressed = [file.stat().st_blocks for file in sorted(orders.glob("*.zst"))]
    assert all(2 * new < old for new, old in zip(compressed, sizes, strict=False))
    again = compress(orders)
    assert again.removed == []
    assert [it.reason for it in again.kept] == ["compressed already"] * 3 + [
        "within the limits"
    ] * 2


def test_a_file_keeps_its_permissions(orders: Path) -> None:
    file = orders / "20240115F.cq4"
    file.chmod(0o640)
    compress(orders)
    assert (orders / "20240115F.cq4.zst").stat().st_mode & 0o777 == 0o640


def test_reads_are_the_same_in_both_directions_and_anywhere(orders: Path, tmp_path: Path) -> None:
    plain = copy_of(orders, tmp_path / "plain")
    compress(orders)
    with read_only(orders) as queue, read_only(plain) as expected:
        assert forward(queue) == forward(expected)
        assert backward(queue) == backward(expected)
        assert (queue.first_index, queue.last_index) == (expected.first_index, expected.last_index)
        assert queue.entry_count == expected.entry_count
        assert queue.cycles == expected.cycles
        assert queue.count_excerpts(index_of(0, 7), index_of(3, 9)) == 3 * MESSAGES + 2
        with queue.tailer() as tailer:
            for day, number in [(2, 299), (0, 0), (4, 5), (1, 150), (3, 1), (1, 149)]:
                assert tailer.move_to_index(index_of(day, number))
                assert tailer.read_bytes() == b"%d.%d" % (day, number)
            assert not tailer.move_to_index(index_of(1, MESSAGES))
            tailer.to_start()
            assert tailer.read_bytes() == b"0.0"


@pytest.mark.parametrize(("messages", "position"), [(2**64 - 1, 100), (2**63, 2**64 - 1), (30, 64)])
def test_a_summary_that_cannot_be_is_not_believed(
    orders: Path, messages: int, position: int
) -> None:
    quire.prune(orders, max_cycles=1, action="compress")
    for file in orders.glob("*.zst"):
        with file.open("r+b") as opened:
            opened.seek(8)
            opened.write(struct.pack("<QQ", messages, position))
    with quire.open(orders, read_only=True) as queue, pytest.raises(quire.errors.CorruptError):
        queue.end_of_cycle(queue.cycles[0])


def test_one_compressed_file_is_a_queue_of_its_own(orders: Path) -> None:
    compress(orders)
    with read_only(orders / "20240116F.cq4.zst") as queue:
        assert payloads(queue) == [b"1.%d" % number for number in range(MESSAGES)]


def test_files_without_their_table_are_read(orders: Path, tmp_path: Path) -> None:
    compress(orders)
    only = tmp_path / "only"
    only.mkdir()
    for file in orders.glob("*.zst"):
        shutil.copy(file, only)
    with read_only(only) as queue:
        assert len(payloads(queue)) == 3 * MESSAGES
    with quire.open(only, clock=NOW) as queue:  # makes the table
        queue.appender().write_bytes(b"new")
        assert len(payloads(queue)) == 3 * MESSAGES + 1
    assert problems_of(only) == []


def test_named_tailers_resume_in_compressed_cycles(orders: Path) -> None:
    with quire.open(orders) as queue, queue.tailer("risk") as tailer:
        tailer.read_many(MESSAGES + 3)
    kept = compress(orders).kept  # Java's named tailers could not read it
    assert [it.reason.split(":")[0] for it in kept[:1]] == ["kept for a named tailer"]
    report = compress(orders, stale_after="1d")
    assert (len(report.removed), report.overtaken) == (2, [])
    with quire.open(orders) as queue, queue.tailer("risk", on_missing="raise") as tailer:
        assert tailer.read_bytes() == b"1.3"
        assert [*tailer.payloads()][-1] == b"4.299"


def test_a_tailer_in_the_middle_of_a_cycle_goes_on(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with read_only(orders) as queue, queue.tailer(on_missing="raise") as tailer:
        assert tailer.move_to_index(index_of(1, 100))
        assert tailer.read_bytes() == b"1.100"
        report = compress(orders)
        assert f"pid={os.getpid()}" in report.kept[0].reason
        monkeypatch.setattr(quire.retaining.pruning, "users_of", nobody)
        assert len(compress(orders).removed) == 2
        rest = [bytes(it) for it in tailer.payloads()]
        assert rest[:2] == [b"1.101", b"1.102"]
        assert len(rest) == 4 * MESSAGES - 101
        tailer.direction = "backward"
        tailer.to_end()
        assert len([*tailer.payloads()]) == DAYS * MESSAGES


def test_nothing_is_left_open(orders: Path) -> None:
    compress(orders)
    with read_only(orders) as queue:
        before = open_files(orders)
        with queue.tailer() as tailer:
            assert len([*tailer.payloads()]) == DAYS * MESSAGES
        assert queue.entry_count == DAYS * MESSAGES
        assert open_files(orders) == before


def test_readers_never_meet_a_gap(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = 12
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="FAST_DAILY", clock=clock, block_bytes=2**16) as queue:
        appender = queue.appender()
        for day in range(days):
            appender.write_bytes(b"%d" % day)
            clock.advance(DAY_MS)
    monkeypatch.setattr(quire.retaining.pruning, "users_of", nobody)
    found = set[tuple[int, int]]()
    is_over = threading.Event()

    def read() -> None:
        with read_only(path) as kept:
            was_over = False
            while not was_over:
                was_over = is_over.is_set()
                with read_only(path) as fresh:
                    found.update((len(payloads(it)), it.entry_count) for it in (kept, fresh))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for left in range(days - 1, 0, -1):
                assert len(compress(path, left=left).removed) == 1
        finally:
            is_over.set()
        for reader in readers:
            reader.result()
    assert found == {(days, days)}


def test_reading_changes_nothing(orders: Path) -> None:
    compress(orders)
    before = snapshot(orders)
    with read_only(orders) as queue:
        payloads(queue)
    assert snapshot(orders) == before


def test_appending_goes_on_after_compressed_cycles(orders: Path) -> None:
    compress(orders, left=1)
    (orders / "20240119F.cq4").unlink()  # the newest: now a compressed cycle is
    late = quire.ManualClock(START_MS + 3 * DAY_MS)  # in the day before, which is compressed
    with quire.open(orders, clock=late) as queue, queue.appender() as appender:
        assert appender.write_bytes(b"later") == index_of(4, 0)
        assert payloads(queue)[-2:] == [b"3.299", b"later"]
    with quire.open(orders) as queue:
        queue.appender().normalise_eofs()
    assert names_in(orders)[3:] == ["20240118F.cq4.zst", "20240119F.cq4"]


def test_the_listing_leaves_compressed_cycles_to_those_who_read_them(orders: Path) -> None:
    with read_only(orders) as reader:
        compress(orders)
        words = [reader.table_value(f"listing.{it}") for it in ("lowestCycle", "highestCycle")]
        assert words == [FIRST + 3, FIRST + 4]
        assert reader.table_value("quire.firstCompressed") == FIRST
        assert reader.cycles == [*range(FIRST, FIRST + DAYS)]
        later = quire.ManualClock(START_MS + DAYS * DAY_MS)
        with quire.open(orders, clock=later) as queue:
            queue.appender().write_bytes(b"new")  # its file is newer than any other change
        assert reader.first_index == index_of(0, 0)
        with read_only(orders) as queue:
            assert queue.first_index == index_of(0, 0)
    assert problems_of(orders) == []


def test_the_option_of_an_open_queue_compresses_too(orders: Path) -> None:
    done: queue_module.Queue[str] = queue_module.Queue()
    rule = quire.Retention(
        max_cycles=3, action="compress", on_removed=lambda it: done.put(it.file.name)
    )
    with quire.open(orders, clock=NOW, retention=rule) as queue:
        assert [done.get(timeout=300) for _ in range(2)] == ["20240115F.cq4", "20240116F.cq4"]
        assert len(payloads(queue)) == DAYS * MESSAGES
    assert names_in(orders)[:2] == ["20240115F.cq4.zst", "20240116F.cq4.zst"]


def test_compressed_cycles_are_removed_moved_and_archived(orders: Path, tmp_path: Path) -> None:
    import quire.archive

    compress(orders, left=1)
    assert len(quire.prune(orders, max_cycles=4, clock=NOW).removed) == 1
    dest, archive = tmp_path / "old", tmp_path / "archive"
    moved = quire.prune(orders, max_cycles=3, action="move", dest=dest, clock=NOW).removed
    assert [it.dest for it in moved] == [dest / "20240116F.cq4.zst"]
    with read_only(dest) as queue:
        assert payloads(queue)[0] == b"1.0"
    archived = quire.prune(orders, max_cycles=2, action="archive", dest=archive, clock=NOW)
    assert [it.file.name for it in archived.removed] == ["20240117F.cq4.zst"]
    assert quire.archive.verify(archive).messages == 2 * MESSAGES
    assert names_in(orders) == ["20240118F.cq4.zst", "20240119F.cq4"]
    with read_only(orders) as queue:
        assert len(payloads(queue)) == 2 * MESSAGES
        assert queue.table_value("quire.firstCompressed") == FIRST + 3
    assert problems_of(orders) == []


def test_an_archive_knows_a_cycle_that_was_compressed_since(orders: Path, tmp_path: Path) -> None:
    import quire.archive

    first = quire.archive.archive(orders, tmp_path / "archive")
    compress(orders)
    second = quire.archive.archive(orders, tmp_path / "archive")
    assert (first.failed, second.failed) == ([], [])
    assert quire.archive.verify(tmp_path / "archive").messages == 4 * MESSAGES
    assert len([*(tmp_path / "archive").rglob("*.parquet")]) == DAYS - 1


def test_a_copy_and_a_repair_keep_compressed_files(orders: Path, tmp_path: Path) -> None:
    compress(orders)
    copied = quire.copy_queue(orders, tmp_path / "copy")
    assert (copied.messages, copied.files) == (DAYS * MESSAGES, DAYS)
    name = "20240115F.cq4.zst"
    assert (tmp_path / "copy" / name).read_bytes() == (orders / name).read_bytes()
    assert problems_of(tmp_path / "copy") == []
    before = snapshot(orders)
    quire.repair(orders, dry_run=False)
    after = snapshot(orders)
    assert [before[it] == after[it] for it in before if it.endswith(".zst")] == [True] * 3


def test_verbs_show_them(cli: Cli, orders: Path) -> None:
    assert cli.ok("prune", orders, "--max-cycles", "2", "--compress").out.count("compressed") == 3
    assert "1500 messages" in cli.ok("verify", orders).out
    facts = json.loads(cli.ok("stat", orders, "--json").out)
    assert [it["state"] for it in facts["files"]] == [*["compressed"] * 3, "eof", "open"]
    assert [it["messages"] for it in facts["files"]] == [MESSAGES] * DAYS
    assert "0.299" in cli.ok("read", orders).lines
    assert "## 20240115F.cq4.zst" in cli.ok("dump", orders).lines
    assert cli.ok("dump", orders / "20240115F.cq4.zst").out.count("0.299") == 1


def test_the_roll_file_comes_back_with_zstd(orders: Path) -> None:
    zstd = shutil.which("zstd")
    if zstd is None:
        pytest.skip("no zstd here")
    before = (orders / "20240115F.cq4").read_bytes()
    compress(orders)
    subprocess.run([zstd, "-q", "-d", "--rm", orders / "20240115F.cq4.zst"], check=True)
    assert (orders / "20240115F.cq4").read_bytes() == before
    with quire.open(orders) as queue:
        queue.refresh()
        assert queue.table_value("listing.lowestCycle") == FIRST
        assert len(payloads(queue)) == DAYS * MESSAGES


def test_where_both_files_are_there_the_roll_file_counts(orders: Path) -> None:
    plain = (orders / "20240115F.cq4").read_bytes()
    compress(orders)
    (orders / "20240115F.cq4.zst").write_bytes(b"not even zstd")
    (orders / "20240115F.cq4").write_bytes(plain)
    with read_only(orders) as queue:
        assert (len(queue.cycles), queue.entry_count) == (DAYS, DAYS * MESSAGES)
        assert payloads(queue)[0] == b"0.0"
    with pytest.raises(quire.errors.CorruptError, match=r"20240115F\.cq4\.zst"):
        compress(orders)
    shutil.copy(orders / "20240116F.cq4.zst", orders / "20240115F.cq4.zst")
    with pytest.raises(
        UnsafePathError, match=r"name of the compressed file: .*20240115F\.cq4\.zst"
    ):
        compress(orders)
    assert len(quire.prune(orders, max_cycles=4, clock=NOW).removed) == 1
    assert names_in(orders)[0] == "20240116F.cq4.zst"


def test_a_file_that_hides_the_messages_of_a_compressed_one_is_found_and_neither_goes(
    orders: Path, tmp_path: Path
) -> None:
    """As a Java writer whose clock is late makes it: it does not see compressed cycles."""
    other = tmp_path / "other"
    clock = quire.ManualClock(START_MS)
    with quire.open(other, clock=clock) as queue, queue.appender() as appender:
        appender.write_text("late")
        clock.advance(DAY_MS)
        appender.write_text("ends the day before")
    roll_file, compressed = orders / "20240115F.cq4", orders / "20240115F.cq4.zst"
    before = roll_file.read_bytes()
    compress(orders)
    for content in (before, before + bytes(4096), (other / roll_file.name).read_bytes()):
        assert quire.verify(orders).findings == ()
        roll_file.write_bytes(content)
        with quire.open(orders) as queue:
            queue.refresh()
    [finding] = quire.verify(orders).findings
    assert (finding.kind, finding.file) == ("hidden-messages", str(compressed))
    kept = (roll_file.read_bytes(), compressed.read_bytes())
    for action in ("move", "archive"):
        for dry_run in (True, False):
            report = quire.prune(
                orders,
                max_cycles=1,
                dry_run=dry_run,
                action=action,
                dest=tmp_path / action,
                clock=NOW,
            )
            assert report.removed == []
            assert compressed.name in report.kept[0].reason
    archive(orders, tmp_path / "archived", delete=True)
    assert (roll_file.read_bytes(), compressed.read_bytes()) == kept


def damaged(data: bytes, how: str) -> bytes:
    if how == "no zstd":
        return b"damaged!" * 100
    if how == "empty":
        return b""
    if how == "cut":
        return data[: len(data) // 2]
    if how == "followed":
        return data + b"\0"
    changed = bytearray(data)
    changed[-1 if how == "checksum" else len(data) // 2] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("how", ["no zstd", "empty", "cut", "followed", "checksum", "flipped"])
def test_a_damaged_file_is_an_error_that_names_it(orders: Path, how: str) -> None:
    compress(orders)
    file = orders / "20240116F.cq4.zst"
    file.write_bytes(damaged(file.read_bytes(), how))
    error = r"not a compressed roll file file=.*20240116F\.cq4\.zst position=0x"
    with read_only(orders) as queue, queue.tailer() as tailer:
        assert len(tailer.read_many(MESSAGES)) == MESSAGES
        with pytest.raises(quire.errors.CorruptError, match=error):
            tailer.read_bytes()
        assert tailer.move_to_index(index_of(2, 0))
        assert tailer.read_bytes() == b"2.0"
    assert [it.kind for it in quire.verify(orders).findings] == ["unreadable-file"]
    with pytest.raises(quire.errors.CorruptError, match=error):
        quire.open(file, read_only=True)


def test_a_claim_of_much_content_is_refused_at_once(orders: Path) -> None:
    compress(orders)
    file = orders / "20240115F.cq4.zst"
    header = b"\x28\xb5\x2f\xfd\xe0" + (2**45).to_bytes(8, "little")  # 32 TiB in one segment
    file.write_bytes(header + bytes(1000))
    with pytest.raises(quire.errors.CorruptError, match="content of 35184372088832 bytes"):
        quire.open(file, read_only=True)


def zstd_frame(content: bytes) -> bytes:
    """Frame bytes as they are: one raw block, whose length takes two bytes."""
    assert 256 <= len(content) < 2**16 + 256
    block = len(content) << 3 | 1
    size = (len(content) - 256).to_bytes(2, "little")
    return b"\x28\xb5\x2f\xfd\x60" + size + block.to_bytes(3, "little") + content


@pytest.mark.parametrize("content", [b"not a roll file" * 100, bytes(4096)])
def test_another_content_is_refused(orders: Path, content: bytes) -> None:
    compress(orders)
    file = orders / "20240115F.cq4.zst"
    file.write_bytes(zstd_frame(content))
    with pytest.raises(quire.errors.CorruptError, match=r"not a (compressed )?roll file"):
        quire.open(file, read_only=True)
    with read_only(orders) as queue, queue.tailer() as tailer:
        with pytest.raises(quire.errors.CorruptError, match=file.name):
            tailer.read_bytes()
        assert queue.first_index == index_of(1, 0)  # as after any file that cannot be read


def test_messages_are_counted_without_decompressing(orders: Path) -> None:
    compress(orders)
    for file in orders.glob("*.zst"):
        file.write_bytes(damaged(file.read_bytes(), "flipped"))
    with read_only(orders) as queue:
        assert (queue.entry_count, queue.first_index) == (DAYS * MESSAGES, index_of(0, 0))
        assert (queue.end_of_cycle(FIRST) or ())[1:] == (MESSAGES, True)


def test_a_summary_of_another_file_is_damage(orders: Path) -> None:
    compress(orders)
    file = orders / "20240115F.cq4.zst"
    data = file.read_bytes()
    assert data[:16] == b"\x51\x2a\x4d\x18\x10\0\0\0" + MESSAGES.to_bytes(8, "little")
    file.write_bytes(data[:8] + (7).to_bytes(8, "little") + data[16:])
    says = "found=300 messages, where its summary says 7"
    refused = pytest.raises(quire.errors.CorruptError, match=says)
    with read_only(orders) as queue, queue.tailer() as tailer, refused:
        tailer.read_bytes()
    assert [it.kind for it in quire.verify(orders).findings] == ["unreadable-file"]
    (length,) = struct.unpack("<I", data[-17:-13])  # of the one frame, in the seek table
    file.write_bytes(data[24 : 24 + length])  # as zstd makes it of a roll file
    with read_only(orders) as queue:
        assert queue.entry_count == len(payloads(queue)) == DAYS * MESSAGES


def test_links_are_not_followed(orders: Path, tmp_path: Path) -> None:
    compress(orders)
    file = orders / "20240115F.cq4.zst"
    file.symlink_to(file.rename(tmp_path / "elsewhere.zst"))
    refused = pytest.raises(quire.errors.NotAQueueError, match="a symbolic link")
    with read_only(orders) as queue, queue.tailer() as tailer, refused:
        tailer.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="as root, on Linux, another user is made")
def test_a_reader_who_may_not_write_there_reads(orders: Path) -> None:
    compress(orders)
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    orders.chmod(0o500)
    try:
        with read_only(orders) as queue:
            assert len(payloads(queue)) == DAYS * MESSAGES
    finally:
        orders.chmod(0o700)


def test_compress_takes_no_dest(orders: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="invalid dest: action=compress expected none"):
        compress(orders, dest=tmp_path / "x")
