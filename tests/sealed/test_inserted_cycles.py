"""Cycles that somebody inserts between sealed ones, and checkpoints dated in the future."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import quire
from queues import START_MS
from quire.errors import SealError
from quire.maintenance import prove, seal
from quire.sealed.seal_files import SEALS

DAY_MS: Final = 86_400_000
DAYS: Final = (0, 2, 3)
INSERTED: Final = 1


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key; the public one lies beside it."""
    made = Ed25519PrivateKey.generate()
    private = tmp_path / "key.pem"
    private.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = made.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    private.with_suffix(".pub").write_bytes(public)
    return private


def fill(path: Path, *days: int, text: str = "right") -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        for day in days:
            clock.now_ms = START_MS + day * DAY_MS
            appender.write_many([text.encode()] * 3)


def file_of(path: Path, day: int) -> Path:
    with quire.open(path, read_only=True) as queue:
        cycle = queue.roll_cycle.to_cycle(queue.first_index or 0) + day
        return Path(queue.file_for_cycle(cycle))


@pytest.fixture
def queue(tmp_path: Path, key: Path) -> Path:
    """A queue whose cycles were signed, and then one was inserted."""
    queue, forged = tmp_path / "queue", tmp_path / "forged"
    fill(queue, *DAYS)
    seal(queue, sign=key, checkpoint=tmp_path / "kept")
    fill(forged, 0, INSERTED, 2, text="forged")
    shutil.copy(file_of(forged, INSERTED), queue)
    return queue


def errors(path: Path, **options: Path) -> list[tuple[str, str]]:
    found: Any = quire.verify(path, **options)  # type: ignore[arg-type]
    return [(it.kind, Path(it.file).name) for it in found.findings if it.severity == "error"]


def sealed_by_others(path: Path) -> None:
    """Seal what is there as somebody does who has the files and no key, and accepts all of it."""
    seal(path, older=True)


def nobody(path: Path) -> None:
    pass


@pytest.mark.parametrize("change", [nobody, seal, sealed_by_others], ids=["not", "", "by others"])
def test_it_is_found_also_once_somebody_has_sealed_it(
    queue: Path, key: Path, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    change(queue)
    wrong = [("changed-message", file_of(queue, INSERTED).name)]
    assert errors(queue, trust=key.with_suffix(".pub")) == wrong
    assert errors(queue, since=tmp_path / "kept") == wrong
    assert errors(queue, trust=key.with_suffix(".pub"), since=tmp_path / "kept") == wrong


def test_it_is_not_sealed_before_somebody_says_that_it_is_right(
    queue: Path, key: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(queue, 4)
    with caplog.at_level(logging.WARNING, "quire"):
        made = seal(queue, sign=key)
    assert made is not None
    assert made.cycles == len(DAYS) + 1
    assert f"is not sealed: file={file_of(queue, INSERTED)} messages=3" in caplog.text
    made = seal(queue, sign=key, older=True)
    assert made is not None
    assert made.cycles == len(DAYS) + 2
    assert errors(queue, trust=key.with_suffix(".pub")) == []


def test_what_others_have_sealed_is_not_signed(queue: Path, key: Path) -> None:
    sealed_by_others(queue)
    before = (queue / SEALS).read_bytes()
    with pytest.raises(SealError, match=r"a cycle was inserted .* checkpoint=1 .*--older signs it"):
        seal(queue, sign=key)
    assert (queue / SEALS).read_bytes() == before
    assert seal(queue, sign=key, older=True) is not None
    assert errors(queue, trust=key.with_suffix(".pub")) == []


def checkpoint_at(path: Path, time_ms: int) -> None:
    """Append an unsigned checkpoint that says it is of this time."""
    file = path / SEALS
    last = file.read_bytes().splitlines()[-1].split(b" ")[0]
    fields: dict[str, Any] = json.loads(last)
    previous = hashlib.sha256(last).hexdigest()
    changes = b"[]"
    fields |= {
        "number": fields["number"] + 1,
        "time_ms": time_ms,
        "previous": previous,
        "changes": hashlib.sha256(changes).hexdigest(),
    }
    body = json.dumps(fields, separators=(",", ":"), sort_keys=True).encode()
    with file.open("ab") as opened:
        opened.write(body + b" - " + changes + b"\n")


def test_a_checkpoint_of_a_time_to_come_is_reported_and_not_signed_after(
    tmp_path: Path, key: Path
) -> None:
    queue = tmp_path / "queue"
    fill(queue, 0)
    seal(queue, sign=key)
    checkpoint_at(queue, int(time.time() * 1000) + 365 * DAY_MS)
    found = quire.verify(queue, trust=key.with_suffix(".pub"))
    assert {"seal-time", "unsigned-seals"} <= {it.kind for it in found.findings}
    fill(queue, 1)
    with pytest.raises(SealError, match="is dated in the future"):
        seal(queue, sign=key)


@pytest.mark.parametrize("time_ms", [2**62, 253_402_300_800_000])
def test_a_time_that_no_calendar_has_ends_the_seals(
    tmp_path: Path, key: Path, time_ms: int
) -> None:
    queue = tmp_path / "queue"
    fill(queue, 0)
    seal(queue, sign=key)
    with quire.open(queue, read_only=True) as opened:
        index = opened.first_index
    assert index is not None
    checkpoint_at(queue, time_ms)
    assert ("seals", SEALS) in errors(queue)
    with pytest.raises(SealError, match="the seals are damaged"):
        seal(queue, sign=key)
    assert prove(queue, index)


@pytest.mark.parametrize("cycle", [2**31 - 1, 2**31, 2**40])
def test_a_cycle_that_no_queue_has_is_reported(tmp_path: Path, cycle: int) -> None:
    queue = tmp_path / "queue"
    fill(queue, 0)
    seal(queue)
    file = queue / SEALS
    body, signature, changes = file.read_bytes().rstrip(b"\n").split(b" ")
    rows = [*json.loads(changes), [cycle, 1, False, "00" * 32, None]]
    changes = json.dumps(rows, separators=(",", ":")).encode()
    fields = json.loads(body) | {"size": 2, "changes": hashlib.sha256(changes).hexdigest()}
    body = json.dumps(fields, separators=(",", ":"), sort_keys=True).encode()
    file.write_bytes(b" ".join([body, signature, changes]) + b"\n")
    found = quire.verify(queue, seals=True)
    assert not found.ok
    assert {it.kind for it in found.findings} & {"seals", "sealed-cycle", "no-seals"}
