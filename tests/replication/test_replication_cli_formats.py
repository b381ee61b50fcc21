"""`quire replicate` on Vanilla Chronicles, and with roles swapped; formats that are refused."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from cli_runs import Cli, started
from ports import free_port
from quire.errors import NotAQueueError, ReplicationError
from quire.replication import Etcd, Node, RefillSource, Sink, Source, promote
from replicas import wait_until

WAIT_S = 60.0


def last_index(path: Path) -> int | None:
    """Return the index of a copy's last message; None while there is none."""
    try:
        with quire.open(path, read_only=True) as queue:
            found: int | None = queue.last_index
            return found
    except (NotAQueueError, FileNotFoundError):
        return None


def payloads(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [bytes(it) for it in tailer.payloads()]


def made(path: Path, style: str) -> Path:
    if style == "quick-queue":
        small = quire.quick_queue.open(path, page_bytes=1 << 16)
        with small as quick, quick.appender() as producer:
            producer.write_bytes(b"one")
        return path
    queue = quire.vanilla.open(path) if style == "vanilla" else quire.open(path)
    with queue, queue.appender() as appender:
        appender.write_many([b"one", b"two"])
    return path


def content(path: Path) -> dict[Path, bytes]:
    return {it: it.read_bytes() for it in path.rglob("*") if it.is_file()}


def appended(path: Path, payload: bytes) -> int:
    with quire.open(path) as queue, queue.appender() as appender:
        return appender.write_bytes(payload)


def listening(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    kind, address = process.stdout.readline().decode().split()
    assert kind == "listening"
    return address


@pytest.mark.check
@pytest.mark.parametrize("level", [(), ("--acknowledge", "stored"), ("--acknowledge", "synced")])
def test_a_vanilla_chronicle_is_copied(level: tuple[str, ...], tmp_path: Path) -> None:
    orders, copy = made(tmp_path / "orders", "vanilla"), tmp_path / "copy"
    with started("replicate", "source", orders) as source:
        address = listening(source)
        sink: tuple[str | Path, ...] = ("replicate", "sink", copy, "--from", address, *level)
        with started(*sink, "--format", "vanilla") as first:
            wait_until(lambda: last_index(copy) == last_index(orders), limit_s=WAIT_S)
            first.kill()
        index = appended(orders, b"three")
        with started(*sink) as second:  # the directory tells the format
            wait_until(lambda: last_index(copy) == index, limit_s=WAIT_S)
            second.send_signal(signal.SIGTERM)
            _, errors = second.communicate(timeout=WAIT_S)
        assert second.returncode == 0
        assert b"Traceback" not in errors
    assert payloads(copy) == payloads(orders) == [b"one", b"two", b"three"]


@pytest.mark.check
@pytest.mark.parametrize("style", ["chronicle", "vanilla"])
def test_a_source_connects_to_a_sink(style: str, tmp_path: Path) -> None:
    orders, copy = made(tmp_path / "orders", style), tmp_path / "copy"
    accept = ("replicate", "sink", copy, "--accept", "127.0.0.1:0", "--format", style)
    with (
        started(*accept) as sink,
        started("replicate", "source", orders, "--to", listening(sink)),
    ):
        wait_until(lambda: last_index(copy) == last_index(orders), limit_s=WAIT_S)
        index = appended(orders, b"three")
        wait_until(lambda: last_index(copy) == index, limit_s=WAIT_S)
    assert payloads(copy) == [b"one", b"two", b"three"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("source", "PATH", "--listen", "10.0.0.1:7001"),
        ("source", "PATH", "--to", "10.0.0.1:7001"),
        ("source", "PATH", "--certificate", "a", "--key", "b", "--authority", "c"),
        ("sink", "PATH", "--from", "10.0.0.1:7001"),
        ("sink", "PATH", "--from", "1", "--accept", "2"),
        ("sink", "PATH", "--from", "1", "--format", "chronicle"),
        ("sink", "PATH", "--from", "1", "--format", "quick-queue2"),
        ("sink", "PATH", "--from", "1", "--name", "b"),
        ("sink", "PATH", "--from", "1", "--listen", "2"),
        ("sink", "PATH", "--from", "1", "--drop-after", "2"),
        ("sink", "PATH", "--from", "1", "--compress"),
    ],
    ids=" ".join,
)
def test_wrong_use(arguments: tuple[str, ...], cli: Cli, tmp_path: Path) -> None:
    orders = made(tmp_path / "orders", "vanilla")
    before = sorted(it.name for it in orders.iterdir())
    ran = cli("replicate", *(orders if it == "PATH" else it for it in arguments))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err
    assert sorted(it.name for it in orders.iterdir()) == before


NODE = ("node", "PATH", "--etcd", "http://127.0.0.1:1", "--name", "a", "--listen", "2")
REFILL = ("refill", "PATH", "--from", "1")


@pytest.mark.parametrize(
    ("style", "arguments"),
    [
        ("quick-queue", ("source", "PATH")),
        ("quick-queue", ("sink", "PATH", "--from", "1")),
        ("quick-queue", NODE),
        ("quick-queue", REFILL),
        ("vanilla", NODE),  # a source and a sink of it speak Java's protocol
        ("vanilla", REFILL),
    ],
    ids=lambda it: it if isinstance(it, str) else it[0],
)
def test_a_format_that_cannot_be_replicated_so(
    arguments: tuple[str, ...], style: str, cli: Cli, tmp_path: Path
) -> None:
    orders = made(tmp_path / "orders", style)
    before = content(orders)
    ran = cli("replicate", *(orders if it == "PATH" else it for it in arguments))
    assert (ran.code, ran.out) == (2, "")
    assert "a queue of this format is not" in ran.err
    assert f"format={style}" in ran.err
    assert content(orders) == before


def etcd() -> Etcd:
    pytest.importorskip("etcd3gw")
    return Etcd("http://127.0.0.1:1", timeout_s=1)


def source_of(path: Path) -> None:
    with quire.open(path) as queue:
        Source(queue)


CLASSES: dict[str, tuple[Callable[[Path], object], type[Exception], str]] = {
    "source": (source_of, TypeError, "expected an open queue of Chronicle Queue 5"),
    "sink": (lambda it: Sink(it, port=1), NotAQueueError, "is not replicated by this protocol"),
    "node": (lambda it: Node(it, etcd(), name="a", port=1), NotAQueueError, "not kept by nodes"),
    "refill": (RefillSource, NotAQueueError, "not refilled"),
    "promote": (promote, ReplicationError, "only a replica can be promoted"),
}


@pytest.mark.parametrize("style", ["vanilla", "quick-queue"])
@pytest.mark.parametrize("kind", CLASSES)
def test_a_format_that_the_library_does_not_replicate_so(
    kind: str, style: str, tmp_path: Path
) -> None:
    """It says so before anything begins, and nothing is changed."""
    make, error, text = CLASSES[kind]
    orders = made(tmp_path / "orders", style)
    before = content(orders)
    with pytest.raises(error, match=text) as caught:
        make(orders)
    if error is not TypeError:
        assert f"path={orders}" in str(caught.value)
    assert content(orders) == before


def test_a_source_that_does_not_answer_is_said_once(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    where = ("--from", f"127.0.0.1:{free_port()}", "--format", "vanilla")
    with started("replicate", "sink", copy, *where) as sink:
        assert sink.stderr is not None
        assert b"(connecting again)" in sink.stderr.readline()
        sink.send_signal(signal.SIGINT)
        _, errors = sink.communicate(timeout=WAIT_S)
    assert (sink.returncode, errors) == (130, b"")
