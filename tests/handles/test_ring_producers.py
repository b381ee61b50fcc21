"""A producer is known by a lock that ends with it; errors say what of a write was put in."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import quire
from pause_points import Party
from queues import payloads
from ring_left import leave_in_ring

RING = "async.ring"
VERSION_AT = 8
LEAST = 2**16
MANY = 1000

PUTS = """
import time
while "UP" in os.environ and not os.path.exists(os.environ["UP"]):
    time.sleep(0.001)
queue = quire.open(sys.argv[1], buffer_mode="async")
appender = queue.appender()
arm()
appender.write_bytes(b"slow")
say(os.getpid())
queue.close()
"""

DRAINS = """
import time
queue = quire.open(sys.argv[1], buffer_mode="async")
queue.appender().write_bytes(b"up")
queue.ring.flush()
open(sys.argv[1] + ".up", "w").close()
while not queue.ring.pending:
    time.sleep(0.001)
try:
    queue.ring.flush(timeout_s=0.5)  # a dead producer is given up after some 20 ms
    say("drained")
except quire.errors.LockTimeoutError:
    say("waited")
say(os.getpid())
sys.stdout.flush()
queue.close()
"""


def has_namespaces() -> bool:
    command = ["unshare", "-r", "-p", "-f", "true"]
    found = shutil.which("unshare")
    return found is not None and not subprocess.call(command)


@pytest.fixture
def contained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each party run in a pid namespace of its own, where it is the first process."""
    if not has_namespaces():
        pytest.skip("no pid namespaces here")
    script = tmp_path / "contained"
    script.write_text(f'#!/bin/sh\nexec unshare -r -p -f --kill-child "{sys.executable}" "$@"\n')
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))


@pytest.mark.usefixtures("contained")
def test_a_stopped_producer_of_another_container_is_waited_for(path: Path) -> None:
    quire.open(path, buffer_mode="async").close()
    up = Path(f"{path}.up")
    with (
        Party(DRAINS, path) as drainer,
        Party(PUTS, path, point="ring.commit.cas", environment={"UP": str(up)}) as producer,
    ):
        producer.wait_until_stopped()
        assert drainer.result() == ["waited", 1]
        with quire.open(path, buffer_mode="async") as third:
            third.appender().write_bytes(b"third")
            producer.go_on()
            assert producer.result() == [1]
            assert third.ring is not None
            third.ring.flush(timeout_s=120.0)
            assert payloads(third) == [b"up", b"slow", b"third"]


def test_a_dead_producer_is_given_up(path: Path) -> None:
    quire.open(path, buffer_mode="async").close()
    with Party(PUTS, path, point="ring.claim.cas", side="after") as producer:
        producer.wait_until_stopped()
        producer.kill()
    with quire.open(path, buffer_mode="async") as queue:
        queue.appender().write_bytes(b"next")
        assert queue.ring is not None
        queue.ring.flush(timeout_s=120.0)
        assert payloads(queue) == [b"next"]


def make_older(path: Path, version: int = 3) -> None:
    with (path / RING).open("r+b") as file:
        file.seek(VERSION_AT)
        file.write(struct.pack("<Q", version))


@pytest.mark.parametrize("version", [2, 3])
def test_an_older_ring_is_replaced_once_it_is_drained(path: Path, version: int) -> None:
    with quire.open(path, buffer_mode="async") as queue:
        queue.appender().write_bytes(b"one")
    make_older(path, version)
    with quire.open(path, buffer_mode="async") as queue:
        queue.appender().write_bytes(b"two")
    with quire.open(path, read_only=True) as queue:
        assert payloads(queue) == [b"one", b"two"]


def test_an_older_ring_with_messages_is_refused_with_a_remedy(path: Path) -> None:
    with quire.open(path) as queue:
        leave_in_ring(path, queue, [b"one"])
    make_older(path)
    for mode in ("async", "none"):
        with pytest.raises(
            quire.errors.UnsupportedError,
            match="version of Quire that created it, which drains",
        ):
            quire.open(path, buffer_mode=mode)
    assert (path / RING).exists()


@pytest.mark.parametrize("form", ["many", "batch", "text", "tables"])
def test_an_error_says_how_many_messages_were_put_in(path: Path, form: str) -> None:
    pa = pytest.importorskip("pyarrow")
    quire.open(path).close()
    texts = [f"{number:06}".ljust(100, ".") for number in range(MANY)]
    rest = [text.encode() for text in texts]
    with (
        quire.open(
            path, buffer_mode="async", ring=quire.RingOptions(capacity_bytes=LEAST, on_full="raise")
        ) as queue,
        quire.open(path) as plain,
        queue.appender() as appender,
        plain.appender() as direct,
    ):
        pieces = [rest[:100], rest[100:200], rest[200:]]
        table = pa.Table.from_batches([pa.record_batch({"payload": it}) for it in pieces])
        writes = {
            "many": lambda: appender.write_many(rest),
            "batch": lambda: appender.write_batch(pa.array(rest)),
            "text": lambda: appender.write_batch(pa.array(texts)),
            "tables": lambda: appender.write_batch(table),
        }
        with direct.writing_document() as document:
            with pytest.raises(quire.errors.RingFullError) as caught:
                writes[form]()
            document.rollback_on_close()
        accepted = caught.value.accepted
        assert 200 < accepted < MANY
        assert queue.ring is not None
        queue.ring.flush()
        assert queue.entry_count == accepted
        with pytest.raises(quire.errors.MessageTooLargeError) as other:
            appender.write_many([b"one", bytes(2 * LEAST)])
        assert vars(other.value)["accepted"] == 1


def test_syncing_each_append_and_a_ring_refuse_each_other(path: Path) -> None:
    refusal = r"durability='each' .*buffer_mode='async'"
    with pytest.raises(quire.errors.UnsupportedError, match=refusal):
        quire.open(path, durability="each", buffer_mode="async")
    with pytest.raises(quire.errors.UnsupportedError, match=refusal):
        quire.open(path, durability="each", ring=quire.RingOptions(write_buffer_mode="async"))
    assert not path.exists()
    with quire.open(
        path, durability="each", ring=quire.RingOptions(read_buffer_mode="async")
    ) as queue:
        assert queue.appender().write_text("one") >= 0


@pytest.mark.parametrize("durability", ["each", "batch"])
def test_a_setting_from_outside_does_not_weaken_what_a_program_asked_for(
    path: Path, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIRE_BUFFER_MODE", "async")
    with quire.open(path, durability=durability) as queue:  # type: ignore[call-overload]
        assert queue.ring is None
        assert queue.appender().write_text("one") >= 0
    monkeypatch.setenv("QUIRE_DURABILITY", "each")
    with pytest.raises(quire.errors.UnsupportedError, match="durability='each'"):
        quire.open(path)


def test_batches_are_synced_once_they_are_drained(path: Path) -> None:
    with quire.open(path, durability="batch", buffer_mode="async") as queue:
        queue.appender().write_text("one")
        queue.appender().sync()
        assert queue.last_index_synced == queue.last_index
