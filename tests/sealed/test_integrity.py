"""Seals: whatever changes in a sealed queue is found, and named by its first index."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quire
from queues import START_MS, exit_code, fork
from quire.errors import LockHeldError, ReadOnlyError, SealError, UnsupportedError
from quire.maintenance import check_proof, prove, seal
from quire.maintenance.kinds import SEAL_KINDS
from quire.sealed import trees
from quire.sealed.seal_files import LOCK, SEALS

DAY_MS: Final = 86_400_000
ROOT: Final = Path(__file__).parents[2]
COUNT: Final = 40


class Keys:
    """Key files."""

    def __init__(self, folder: Path, name: str) -> None:
        key = Ed25519PrivateKey.generate()
        self.private, self.public = folder / f"{name}.pem", folder / f"{name}.pub"
        self.private.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        )
        self.public.write_bytes(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path, "ours")


def fill(path: Path, days: int = 2, count: int = COUNT, *, first: int = 0) -> list[int]:
    clock = quire.ManualClock(START_MS + first * DAY_MS)
    indexes = list[int]()
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        for day in range(days):
            clock.now_ms = START_MS + (first + day) * DAY_MS
            indexes += [appender.write_text(f"day {day} message {it}") for it in range(count)]
    return indexes


def kinds(path: Path, **options: Path | bool | None) -> list[str]:
    return [it.kind for it in quire.verify(path, **options).findings]  # type: ignore[arg-type]


def seal_kinds(path: Path, **options: Path | bool | None) -> list[str]:
    return [it for it in kinds(path, **options) if it in SEAL_KINDS]


def first_changed(path: Path) -> int | None:
    found = [it for it in quire.verify(path).findings if it.kind == "changed-message"]
    return int(found[0].found.split()[0].removeprefix("index="), 16) if found else None


def place_of(path: Path, index: int) -> tuple[Path, int, int]:
    """Return the file of a message, and where it and the one after it begin."""
    with quire.open(path, read_only=True) as queue:
        file = Path(queue.file_for_cycle(queue.roll_cycle.to_cycle(index)))
        at = queue._position_of(index)
        assert at is not None
    (length,) = struct.unpack_from("<I", file.read_bytes(), at)
    return file, at, at + 4 + (length + 3) // 4 * 4


def test_what_was_sealed_is_right_until_something_changes(tmp_path: Path) -> None:
    queue = tmp_path / "q"
    assert not kinds(queue) if queue.exists() else True
    indexes = fill(queue)
    assert kinds(queue, seals=True) == ["no-seals"]
    found = seal(queue)
    assert found is not None
    assert (found.number, found.cycles, found.key) == (0, 2, None)
    assert kinds(queue, seals=True) == []
    again = seal(queue)
    assert again == found  # there is nothing new
    fill(queue, 1, 3, first=1)
    report = quire.verify(queue, seals=True)
    assert report.ok
    (finding,) = report.findings
    assert (finding.kind, finding.found) == ("unsealed", f"messages=3 first={indexes[-1] + 1:#x}")
    third = seal(queue)
    assert third is not None
    assert third.number == 1
    assert kinds(queue, seals=True) == []


@pytest.mark.slow
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_each_change_is_found_at_its_first_message(tmp_path: Path, data: st.DataObject) -> None:
    queue = tmp_path / "q"
    if not queue.exists():
        fill(queue, 1, 10)
        seal(queue)
        fill(queue, 2)
        seal(queue)
        shutil.copytree(queue, tmp_path / "good")
    shutil.rmtree(queue)
    shutil.copytree(tmp_path / "good", queue)
    with quire.open(queue, read_only=True) as opened, opened.tailer() as tailer:
        indexes = [it.index for it in tailer]
    way = data.draw(st.sampled_from(["flip", "header", "swap", "insert", "cut", "drop checksums"]))
    number = data.draw(st.integers(0, len(indexes) - 2))
    index = indexes[number]
    file, start, end = place_of(queue, index)
    content = bytearray(file.read_bytes())
    (length,) = struct.unpack_from("<I", content, start)
    if way in {"flip", "drop checksums"}:
        at = data.draw(st.integers(start + 4, start + 3 + length))
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    elif way == "header":
        content[start + data.draw(st.integers(0, 3))] ^= 1 << data.draw(st.integers(0, 7))
    elif way == "swap":
        follower = struct.unpack_from("<I", content, end)[0]
        if (
            follower != length
            or content[start : start + length + 4] == content[end : end + length + 4]
        ):
            return
        size = end - start
        content[start : start + 2 * size] = content[end : end + size] + content[start:end]
    elif way == "insert":
        content[start:start] = content[start:end]
    else:
        content[start:] = bytes(len(content) - start)
    file.write_bytes(content)
    if way == "drop checksums":
        for it in queue.glob("*.seal.quire"):
            it.unlink()
        found = first_changed(queue)
        assert found is not None
        assert found <= index
        return
    expected = index + 1 if way == "insert" else index  # the copy of a message is in its place
    assert first_changed(queue) == expected


def test_metadata_between_messages_is_sealed(tmp_path: Path) -> None:
    queue = tmp_path / "q"
    with quire.open(queue) as opened, opened.appender() as appender:
        appender.write_text("one")
        with appender.writing_document(metadata=True) as document:
            document.write("note", "some metadata")
        index = appender.write_text("two")
        appender.write_text("three")
    seal(queue)
    assert kinds(queue, seals=True) == []
    (file,) = queue.glob("*.cq4")
    content = file.read_bytes()
    assert content.count(b"some metadata") == 1
    file.write_bytes(content.replace(b"some metadata", b"same metadata"))
    assert first_changed(queue) == index


@pytest.mark.parametrize("way", ["removed", "inserted", "emptied"])
def test_cycles_that_go_and_come_are_found(tmp_path: Path, way: str) -> None:
    queue = tmp_path / "q"
    fill(queue, 3)
    seal(queue)
    first, middle, last = sorted(queue.glob("*.cq4"))
    if way == "removed":
        middle.unlink()
        assert "sealed-cycle" in seal_kinds(queue)
        last.unlink()
        assert "sealed-cycle" in seal_kinds(queue)
    elif way == "emptied":
        content = bytearray(last.read_bytes())
        _, at, _ = place_of(queue, fill(tmp_path / "other", 3)[2 * COUNT])
        content[at:] = bytes(len(content) - at)
        last.write_bytes(content)
        assert "changed-message" in seal_kinds(queue)
    else:
        other = tmp_path / "other"
        fill(other, 1, first=1)
        middle.unlink()
        shutil.rmtree(queue)
        fill(queue, 1)
        fill(queue, 1, first=2)
        seal(queue)
        shutil.copyfile(next(other.glob("*.cq4")), middle)
        assert "changed-message" in seal_kinds(queue)
    assert first.exists()


def test_signatures_and_what_came_after(tmp_path: Path, keys: Keys) -> None:
    queue, others = tmp_path / "q", Keys(tmp_path, "others")
    fill(queue)
    seal(queue)
    assert seal_kinds(queue, trust=keys.public) == ["unsigned"]
    found = seal(queue, sign=keys.private)
    assert found is not None
    assert found.number == 1
    assert seal_kinds(queue, trust=keys.public) == []
    assert seal_kinds(queue, trust=others.public) == ["unsigned"]
    fill(queue, 1, first=2)
    seal(queue)
    assert seal_kinds(queue, trust=keys.public) == ["unsigned-seals"]
    assert quire.verify(queue, trust=keys.public).ok


@pytest.mark.parametrize("field", ["root", "changes", "previous", "queue", "time_ms", "signature"])
def test_a_forged_checkpoint_is_found(tmp_path: Path, keys: Keys, field: str) -> None:
    queue = tmp_path / "q"
    fill(queue)
    seal(queue, sign=keys.private)
    file = queue / SEALS
    content = file.read_bytes()
    if field == "signature":
        at = content.index(b"}") + 30
    else:
        at = content.index(field.encode()) + len(field) + (2 if field == "time_ms" else 5)
    changed = bytearray(content)
    changed[at] = ord("1") if changed[at] != ord("1") else ord("2")
    file.write_bytes(changed)
    found = {*seal_kinds(queue, trust=keys.public)}
    assert found & {"forged", "seals"}


def test_the_history_rewritten_with_its_seals_is_found_by_the_key(
    tmp_path: Path, keys: Keys
) -> None:
    queue = tmp_path / "q"
    fill(queue)
    seal(queue, sign=keys.private)
    shutil.rmtree(queue)
    fill(queue, 2, COUNT - 1)
    seal(queue)
    assert quire.verify(queue, seals=True).ok  # nothing in the queue itself says so
    assert seal_kinds(queue, trust=keys.public) == ["unsigned"]


def test_a_rollback_of_everything_is_found_by_a_checkpoint_kept_elsewhere(
    tmp_path: Path, keys: Keys
) -> None:
    queue, kept = tmp_path / "q", tmp_path / "elsewhere.checkpoint"
    fill(queue)
    seal(queue, sign=keys.private, checkpoint=kept)
    assert seal_kinds(queue, trust=keys.public, since=kept) == []
    shutil.copytree(queue, tmp_path / "older")
    fill(queue, 1, first=2)
    seal(queue, sign=keys.private, checkpoint=kept)
    assert seal_kinds(queue, trust=keys.public, since=kept) == []
    shutil.rmtree(queue)
    (tmp_path / "older").rename(queue)
    assert seal_kinds(queue, trust=keys.public) == []
    assert seal_kinds(queue, trust=keys.public, since=kept) == ["rolled-back"]
    with pytest.raises(SealError, match="do not go on from the checkpoint"):
        seal(queue, sign=keys.private, checkpoint=kept)


def test_an_unsigned_or_other_checkpoint_file(tmp_path: Path, keys: Keys) -> None:
    queue, kept = tmp_path / "q", tmp_path / "kept"
    fill(queue)
    seal(queue, checkpoint=kept)
    assert "unsigned" in seal_kinds(queue, trust=keys.public, since=kept)
    for content in (b"", b"nothing", b"\xff" * 100, b"[" * 3000, b"{}" * 40_000):
        kept.write_bytes(content)
        with pytest.raises(SealError, match="not a checkpoint"):
            quire.verify(queue, since=kept)


def test_a_checkpoint_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    queue, kept = tmp_path / "q", tmp_path / ("x" * 250)  # its temporary name is longer
    fill(queue, 1, 1)
    with pytest.raises(OSError, match="File name too long") as raised:
        seal(queue, checkpoint=kept)
    assert raised.value.filename == str(kept)


@pytest.mark.parametrize(
    "content", [b"", b"no key", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"]
)
def test_bad_keys(tmp_path: Path, content: bytes) -> None:
    queue, file = tmp_path / "q", tmp_path / "key"
    fill(queue, 1, 1)
    file.write_bytes(content)
    with pytest.raises(SealError, match="not an Ed25519 public key"):
        quire.verify(queue, trust=file)
    with pytest.raises(SealError, match="not an Ed25519 private key"):
        seal(queue, sign=file)
    file.write_bytes(b"x" * (1 << 17))
    with pytest.raises(SealError, match="too long for a key"):
        quire.verify(queue, trust=file)
    with pytest.raises(FileNotFoundError):
        quire.verify(queue, trust=tmp_path / "missing")


def test_a_clock_set_back_makes_no_earlier_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = tmp_path / "q"
    fill(queue)
    first = seal(queue)
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000)
    fill(queue, 1, first=2)
    second = seal(queue)
    assert first is not None
    assert second is not None
    assert second.time_ms == first.time_ms
    assert kinds(queue, seals=True) == []


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"x",
        b"\n" * 1000,
        b'{"a":1} - []\n',
        b"[" * 100_000 + b" - []\n",
        b"\xff\xfe - -\n",
    ],
)
def test_hostile_seals_are_a_finding(tmp_path: Path, damage: bytes) -> None:
    queue = tmp_path / "q"
    fill(queue)
    (queue / SEALS).write_bytes(damage)
    found = kinds(queue, seals=True)
    assert {*found} & {"no-seals", "seals", "torn-seal"}
    assert {*found} <= {*SEAL_KINDS}


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
@pytest.mark.parametrize("which", [SEALS, "20240115F.seal.quire", "20240116F.seal.quire"])
def test_side_files_that_are_none(tmp_path: Path, kind: str, which: str) -> None:
    queue = tmp_path / "q"
    fill(queue)
    seal(queue)
    file = queue / which
    content = file.read_bytes()
    file.unlink()
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        file.symlink_to(tmp_path / "elsewhere")
    elif kind == "fifo":
        os.mkfifo(file)
    else:
        file.mkdir()
    found = kinds(queue, seals=True)
    assert {*found} == {"seals" if which == SEALS else "checksums"}


def test_side_files_of_another_queue(tmp_path: Path) -> None:
    queue, other = tmp_path / "q", tmp_path / "other"
    fill(queue)
    fill(other)
    seal(queue)
    seal(other)
    for file in other.glob("*.seal.quire"):
        shutil.copyfile(file, queue / file.name)
    assert seal_kinds(queue) == ["checksums", "checksums"]
    fill(queue, 1, 1, first=1)
    seal(queue)
    shutil.copyfile(other / SEALS, queue / SEALS)
    assert "unsealed" in seal_kinds(queue)  # the messages are the same: only a key tells


def test_a_torn_seal_is_known_and_written_over(tmp_path: Path) -> None:
    queue = tmp_path / "q"
    fill(queue)
    seal(queue)
    fill(queue, 1, first=2)
    before = (queue / SEALS).read_bytes()
    seal(queue)
    (queue / SEALS).write_bytes((queue / SEALS).read_bytes()[:-10])
    assert seal_kinds(queue) == ["torn-seal", "unsealed"]
    assert quire.verify(queue).ok
    seal(queue)
    assert seal_kinds(queue) == []
    assert (queue / SEALS).read_bytes().startswith(before)


def test_a_seal_over_changed_messages_is_refused_or_found(tmp_path: Path) -> None:
    queue = tmp_path / "q"
    indexes = fill(queue, 1)
    seal(queue)
    file, start, _ = place_of(queue, indexes[5])
    content = bytearray(file.read_bytes())
    content[start + 6] ^= 1
    file.write_bytes(content)
    fill(queue, 1, 2)
    seal(queue)  # which does not read it again
    assert first_changed(queue) == indexes[5]
    for it in queue.glob("*.seal.quire"):
        it.unlink()
    fill(queue, 1, 2)
    with pytest.raises(SealError, match="messages changed since they were sealed"):
        seal(queue)


def test_pruned_compressed_and_copied_queues_verify(tmp_path: Path, keys: Keys) -> None:
    queue, copied = tmp_path / "q", tmp_path / "copy"
    indexes = fill(queue, 5)
    seal(queue, sign=keys.private)
    quire.prune(queue, max_cycles=3, action="compress")
    assert [*queue.glob("*.zst")]
    assert seal_kinds(queue, trust=keys.public) == []
    quire.copy_queue(queue, copied)
    assert kinds(copied, trust=keys.public) == []
    proof = prove(copied, indexes[0])
    assert check_proof(proof, trust=keys.public).index == indexes[0]
    quire.prune(queue, max_cycles=2)
    assert len([*queue.glob("*.seal.quire")]) == 2
    assert seal_kinds(queue, trust=keys.public) == ["pruned-seals"]
    assert quire.verify(queue, trust=keys.public).ok
    with pytest.raises(SealError):
        prove(queue, indexes[0])


def test_proofs(tmp_path: Path, keys: Keys) -> None:
    queue, others = tmp_path / "q", Keys(tmp_path, "others")
    indexes = fill(queue, 3)
    seal(queue, sign=keys.private)
    fill(queue, 1, first=3)
    seal(queue)
    with quire.open(queue, read_only=True) as opened, opened.tailer() as tailer:
        for index in indexes[:: COUNT // 3]:
            tailer.move_to_index(index)
            data = tailer.read_bytes()
            assert data is not None
            proof = prove(queue, index)
            assert len(proof) < 700
            found = check_proof(proof, trust=keys.public, message=data)
            assert (found.index, found.checkpoint) == (index, 0)
            with pytest.raises(SealError, match="not signed by the key"):
                check_proof(proof, trust=others.public)
            with pytest.raises(SealError, match="another message"):
                check_proof(proof, message=data + b"!")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(at=st.integers(0, 10_000), bit=st.integers(0, 7), cut=st.booleans())
def test_a_changed_proof_is_refused(tmp_path: Path, at: int, bit: int, *, cut: bool) -> None:
    queue, keys = tmp_path / "q", Keys(tmp_path, "ours") if not (tmp_path / "q").exists() else None
    if keys is not None:
        index = fill(queue, 3)[7]
        seal(queue, sign=keys.private)
        (tmp_path / "proof").write_bytes(prove(queue, index))
        (tmp_path / "message").write_bytes(_message(queue, index))
    proof = bytearray((tmp_path / "proof").read_bytes())
    at %= len(proof)
    if cut:
        del proof[at:]
    else:
        proof[at] ^= 1 << bit
    with pytest.raises(SealError):
        check_proof(
            bytes(proof),
            trust=tmp_path / "ours.pub",
            message=(tmp_path / "message").read_bytes(),
        )


def _message(path: Path, index: int) -> bytes:
    with quire.open(path, read_only=True) as opened, opened.tailer() as tailer:
        tailer.move_to_index(index)
        data = tailer.read_bytes()
    assert data is not None
    return data


def test_trees_in_python_are_those_of_the_kernel() -> None:
    for count in range(1, 40):
        leaves = [trees.leaf(bytes([it])) for it in range(count)]
        for number in range(count):
            path = trees.path_of(leaves, number)
            assert trees.root_by_path(leaves[number], number, count, path) == trees.root_of(leaves)
            assert (
                trees.root_by_path(
                    leaves[number], number, count, [*path, path[0]] if path else [b"x" * 32]
                )
                is None
            )
    # The vectors of Certificate Transparency; those of the kernel's tree are in its own tests.
    leaves = [trees.leaf(bytes.fromhex(it)) for it in ("", "00", "10")]
    root = "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"
    assert trees.root_of(leaves).hex() == root


def test_a_writer_seals_at_each_roll_and_at_its_end(tmp_path: Path) -> None:
    queue, clock = tmp_path / "q", quire.ManualClock(START_MS)
    with quire.open(queue, clock=clock, integrity=True) as opened, opened.appender() as appender:
        appender.write_text("one")
        clock.now_ms = START_MS + DAY_MS
        appender.write_text("two")
        wait_until((queue / SEALS).exists)
        appender.write_text("three")
    assert kinds(queue, seals=True) == []
    with pytest.raises(ReadOnlyError):
        quire.open(queue, read_only=True, integrity=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_leaves_the_sealing_to_its_parent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "q"
    with quire.open(path, integrity=True) as queue:
        queue.appender().write_text("one")

        def child() -> None:
            queue.close()
            assert not caplog.records

        assert exit_code(fork(child)) == 0
        assert not (path / SEALS).exists()
    assert (path / SEALS).exists()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_one_process_seals_at_a_time(tmp_path: Path) -> None:
    from quire._common.durable import SafeFolder

    queue = tmp_path / "q"
    fill(queue, 1, 1)
    with SafeFolder.at(queue) as folder, folder.locked(LOCK), pytest.raises(LockHeldError):
        seal(queue)


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with quire.open(tmp_path / "v", format="vanilla") as queue:
        queue.appender().write_text("hello")
    with pytest.raises(UnsupportedError, match="Chronicle Queue 5"):
        seal(tmp_path / "v")


_SEALS_FOR_EVER = """
import sys
from quire.maintenance import seal
print(flush=True)
while True:
    seal(sys.argv[1])
"""


@pytest.mark.slow
def test_a_kill_while_sealing_loses_nothing(tmp_path: Path) -> None:
    queue = tmp_path / "q"
    clock = quire.ManualClock(START_MS)
    with quire.open(queue, clock=clock) as opened, opened.appender() as appender:
        for attempt in range(25):
            with subprocess.Popen(
                [sys.executable, "-c", _SEALS_FOR_EVER, str(queue)], stdout=subprocess.PIPE
            ) as sealer:
                assert sealer.stdout is not None
                sealer.stdout.readline()
                for it in range(10 + attempt * 7):
                    appender.write_text(f"attempt {attempt} message {it}")
                clock.advance(DAY_MS // 4)
                sealer.send_signal(signal.SIGKILL)
            assert quire.verify(queue).ok
    assert seal(queue) is not None
    assert kinds(queue, seals=True) == []


def test_every_kind_is_described() -> None:
    page = (ROOT / "docs/integrity.md").read_text("utf-8")
    for name, it in SEAL_KINDS.items():
        assert f"| `{name}` | {it.severity} | {it.meaning} |" in page
