"""A key ring is the default of a block, for functions that take the path of a queue."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

import quire
import quire.archive
from quire.errors import ArchiveError, EncryptionError
from quire.maintenance import merge_queues, split_queue

KEY: Final = bytes(range(32))
RING: Final = quire.KeyRing({"2026": KEY}, current="2026")
OTHER: Final = quire.KeyRing({"2026": bytes(32)}, current="2026")
START_MS: Final = 1_705_314_600_000
DAY_MS: Final = 86_400_000
WORD: Final = b"attack at dawn"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Three encrypted cycles of one message each."""
    vault, clock = tmp_path / "vault", quire.ManualClock(START_MS)
    with quire.open(vault, key=RING, clock=clock) as queue, queue.appender() as appender:
        for _ in range(3):
            appender.write_bytes(WORD)
            clock.advance(DAY_MS)
    return vault


def count(path: Path) -> int:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return len([*tailer.payloads()])


def test_an_archive_is_made_and_cycles_are_archived_by_prune(vault: Path, tmp_path: Path) -> None:
    archived = tmp_path / "archived"
    report = quire.archive.archive(vault, archived)
    assert [it.reason.partition(":")[0] for it in report.failed] == ["the queue is encrypted"]
    with pytest.raises(ArchiveError, match=r"within KeyRing\.as_default\(\)"):
        quire.prune(vault, max_cycles=1, action="archive", dest=archived)
    with RING.as_default():
        assert quire.archive.archive(vault, archived).messages == 2
        pruned = quire.prune(vault, max_cycles=1, action="archive", dest=archived)
        assert (len(pruned.removed), count(vault)) == (2, 1)


def test_a_queue_is_converted_and_salvaged(vault: Path, tmp_path: Path) -> None:
    with RING.as_default():
        quire.convert(vault, tmp_path / "converted", into="vanilla")
        quire.salvage(vault, tmp_path / "salvaged")
    assert count(tmp_path / "converted") == count(tmp_path / "salvaged") == 3


def test_queues_are_merged_split_replayed_and_copied(
    vault: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    merged, parts, again, copied = (tmp_path / it for it in ("merged", "parts", "again", "copied"))
    with pytest.raises(EncryptionError):
        merge_queues([vault, vault], merged, lambda it: it.index)
    assert not merged.exists()
    with RING.as_default():
        assert merge_queues([vault, vault], merged, lambda it: it.index) == 6
        assert split_queue(vault, parts, lambda _: "all") == {"all": 3}
        assert quire.replay(vault, again).written == 3
        assert quire.copy_queue(vault, copied).messages == 3
    # What is made of messages is plain, as the log says; what is made of files is not.
    assert count(merged) == 6
    assert count(parts / "all") == count(again) == 3
    said = [it.getMessage() for it in caplog.records if "not encrypted" in it.getMessage()]
    assert [it.split()[1] for it in said] == ["merge", "merge", "split", "replayed"]
    with pytest.raises(EncryptionError):
        count(copied)


def test_it_ends_with_the_block_and_a_given_key_goes_first(vault: Path) -> None:
    with OTHER.as_default():
        with pytest.raises(EncryptionError):
            count(vault)
        with RING.as_default():
            assert count(vault) == 3
        with quire.open(vault, key=KEY, read_only=True) as queue, queue.tailer() as tailer:
            assert tailer.read_bytes() == WORD
        with pytest.raises(EncryptionError):
            count(vault)
    with pytest.raises(EncryptionError, match="the queue is encrypted"):
        count(vault)


def test_other_threads_know_nothing_of_it(vault: Path) -> None:
    with RING.as_default(), ThreadPoolExecutor(1) as others:
        assert count(vault) == 3
        with pytest.raises(EncryptionError, match="the queue is encrypted"):
            others.submit(count, vault).result()


def test_a_plain_queue_stays_plain_and_is_read(tmp_path: Path) -> None:
    with RING.as_default():
        with quire.open(tmp_path / "plain") as queue, queue.appender() as appender:
            appender.write_bytes(WORD)
        assert count(tmp_path / "plain") == 1
    assert count(tmp_path / "plain") == 1
