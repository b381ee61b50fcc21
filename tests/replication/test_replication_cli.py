"""`quire replicate` and `quire promote` as they are typed, and how they end."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import quire
from cli_runs import Cli, run, started
from ports import free_port
from quire.errors import AppendLockedError, ReplicationError
from quire.replication import Sink, Source, promote
from replicas import last_index, wait_until

WAIT_S = 60.0


def payloads(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return list(tailer.payloads())


@pytest.fixture
def copy(orders: Path, tmp_path: Path) -> Path:
    """A copy of the orders whose sink has ended."""
    path = tmp_path / "copy"

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source, Sink(path, port=source.address[1]) as sink:
                await sink.stored(queue.last_index or 0)

    asyncio.run(work())
    return path


@contextmanager
def source_of(path: Path, port: int) -> Generator[subprocess.Popen[bytes]]:
    with started("replicate", "source", path, "--listen", f"127.0.0.1:{port}") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"listening 127.0.0.1:{port}\n".encode()
        yield process


def ended(process: subprocess.Popen[bytes], number: signal.Signals | None) -> tuple[int, str]:
    """Return exit code and stderr, after a signal if there is one."""
    if number is not None:
        process.send_signal(number)
    _, errors = process.communicate(timeout=WAIT_S)
    assert b"Traceback" not in errors, errors.decode()
    return process.returncode, errors.decode()


@pytest.mark.check
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["term", "int"]
)
def test_the_two_terminals_of_the_page(
    number: signal.Signals, code: int, orders: Path, tmp_path: Path
) -> None:
    port, copy = free_port(), tmp_path / "copy"
    with (
        source_of(orders, port) as source,
        started("replicate", "sink", copy, "--from", f"127.0.0.1:{port}") as sink,
    ):
        wait_until(lambda: last_index(copy) == last_index(orders), limit_s=WAIT_S)
        with quire.open(orders) as queue:
            index = queue.appender().write_bytes(b"three")
        wait_until(lambda: last_index(copy) == index, limit_s=WAIT_S)
        sink_code, sink_errors = ended(sink, number)
        source_code, source_errors = ended(source, number)
    assert (sink_code, source_code) == (code, code)
    assert payloads(copy) == [b"one", b"two", b"three"]
    assert "replicating: " in sink_errors
    assert "a sink replicates: " in source_errors


@pytest.mark.check
def test_what_the_source_has_is_sent_before_it_ends(orders: Path, tmp_path: Path) -> None:
    port, copy = free_port(), tmp_path / "copy"
    with (
        source_of(orders, port) as source,
        started("replicate", "sink", copy, "--from", f"127.0.0.1:{port}"),
    ):
        wait_until(lambda: last_index(copy) == last_index(orders), limit_s=WAIT_S)
        with quire.open(orders) as queue:
            last = queue.appender().write_many([b"%06d" % number * 100 for number in range(5000)])
        assert ended(source, signal.SIGTERM)[0] == 0
        wait_until(lambda: last_index(copy) == last, limit_s=WAIT_S)
    assert payloads(copy) == payloads(orders)


@pytest.mark.parametrize(
    "arguments",
    [
        ("source",),
        ("source", "PATH", "--listen", "nowhere"),
        ("source", "PATH", "--listen", "127.0.0.1:99999"),
        ("source", "PATH", "--listen", "10.0.0.1:7001"),
        ("source", "PATH", "--certificate", "a.pem"),
        ("sink",),
        ("sink", "PATH"),
        ("sink", "PATH", "--from", "10.0.0.1:7001"),
        ("sink", "PATH", "--from", "127.0.0.1:1", "--acknowledge", "never"),
        ("sink", "PATH", "--from", "127.0.0.1:1", "--key", "a.key"),
        ("neither", "PATH"),
    ],
    ids=" ".join,
)
def test_wrong_use(arguments: tuple[str, ...], cli: Cli, orders: Path) -> None:
    before = sorted(it.name for it in orders.iterdir())
    ran = cli("replicate", *(orders if it == "PATH" else it for it in arguments))
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err
    assert sorted(it.name for it in orders.iterdir()) == before


@pytest.mark.parametrize(
    "verb",
    [("replicate",), ("replicate", "source"), ("replicate", "sink"), ("promote",)],
    ids=" ".join,
)
def test_help(verb: tuple[str, ...], cli: Cli) -> None:
    ran = cli.ok(*verb, "--help")
    assert "Usage: quire " + " ".join(verb) in ran.out


def test_a_source_of_nothing(cli: Cli, tmp_path: Path) -> None:
    ran = cli("replicate", "source", tmp_path / "missing")
    assert ran.code == 1
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "missing").exists()


def test_a_copy_is_no_source(cli: Cli, copy: Path) -> None:
    ran = cli("replicate", "source", copy)
    assert ran.code == 1
    assert f"quire promote {copy}" in ran.err


@pytest.mark.check
def test_a_sink_of_another_queue(orders: Path, copy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with quire.open(other, roll_cycle="FAST_DAILY") as queue:
        queue.appender().write_bytes(b"other")
    port = free_port()
    with source_of(other, port):
        ran = run("replicate", "sink", copy, "--from", f"127.0.0.1:{port}", timeout_s=WAIT_S)
        assert ran.code == 1
        assert "the replica of another queue" in ran.err
        ran = run("replicate", "sink", orders, "--from", f"127.0.0.1:{port}", timeout_s=WAIT_S)
        assert ran.code == 1
    assert payloads(copy) == [b"one", b"two"]
    with quire.open(orders) as queue:
        queue.appender().write_bytes(b"still open")


def test_promoting_what_is_no_replica(cli: Cli, orders: Path, tmp_path: Path) -> None:
    ran = cli("promote", orders)
    assert (ran.code, ran.out) == (1, "")
    assert "this queue is not one" in ran.err
    ran = cli("promote", tmp_path / "missing")
    assert (ran.code, ran.out) == (1, "")
    assert not (tmp_path / "missing").exists()


def test_promoting_twice_begins_one_epoch(cli: Cli, orders: Path, copy: Path) -> None:
    with quire.open(copy) as queue, pytest.raises(AppendLockedError):
        queue.appender().write_bytes(b"not yet")
    assert cli.ok("promote", copy).out == f"promoted {copy} epoch=2\n"
    for source, epoch in ((copy, 2), (orders, 1)):
        ran = cli("promote", source)
        assert (ran.code, ran.out) == (1, "")
        assert f"this is the queue of a source: path={source} epoch={epoch}" in ran.err
    with quire.open(copy) as queue:
        queue.appender().write_bytes(b"three")
    assert payloads(copy) == [b"one", b"two", b"three"]


@pytest.mark.check
@pytest.mark.parametrize("is_busy", [False, True], ids=["quiet", "busy"])
def test_promoting_while_the_sink_runs(is_busy: bool, orders: Path, tmp_path: Path) -> None:  # noqa: FBT001
    copy = tmp_path / "copy"

    async def append(queue: quire.JournalQueue) -> None:
        appender = queue.appender()
        while True:
            appender.write_bytes(b"order")
            await asyncio.sleep(0.001)

    async def work() -> None:
        with quire.open(orders) as queue:
            async with Source(queue) as source:
                appending = asyncio.ensure_future(append(queue)) if is_busy else None
                sink = Sink(copy, port=source.address[1])
                with pytest.raises(ReplicationError, match="promoted"):  # noqa: PT012
                    async with sink:
                        await sink.stored(queue.last_index or 0)
                        epoch = await asyncio.to_thread(promote, copy, timeout_s=WAIT_S)
                        assert epoch == 2
                        await sink.run_forever()
                if appending is not None:
                    appending.cancel()
                    await asyncio.wait({appending})

    asyncio.run(work())
    with quire.open(copy) as queue:
        queue.appender().write_bytes(b"of the new source")


@pytest.mark.check
def test_an_old_source_ends_when_it_hears_of_the_new_epoch(
    cli: Cli, orders: Path, copy: Path, tmp_path: Path
) -> None:
    cli.ok("promote", copy)
    second, old, new = tmp_path / "second", free_port(), free_port()
    with source_of(copy, new), started("replicate", "sink", second, "--from", str(new)):
        wait_until(lambda: last_index(second) == last_index(copy), limit_s=WAIT_S)
    with source_of(orders, old) as source:
        ran = run("replicate", "sink", second, "--from", str(old), timeout_s=WAIT_S)
        assert ran.code == 1
        assert "older epoch" in ran.err
        code, errors = ended(source, None)
        assert code == 1
        assert "refuses appends" in errors
    with quire.open(orders) as queue, pytest.raises(AppendLockedError):
        queue.appender().write_bytes(b"lost")
    assert cli("replicate", "source", orders).code == 1
    with source_of(copy, new), started("replicate", "sink", orders, "--from", str(new)) as sink:
        wait_until(
            lambda: json.loads((orders / "replication.json").read_text())["epoch"] == 2,
            limit_s=WAIT_S,
        )
        ended(sink, signal.SIGTERM)
