"""What sinks and nodes are called, and where the others reach them."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest

import quire
from cli_runs import Cli, run, started
from etcd_model import EtcdClient, EtcdModel
from event_loops import until
from ports import free_port
from quire.errors import OptionsError
from quire.replication import Node, Sink, Source, standing
from quire.replication.home import Home
from replicas import wait_until

WAIT_S = 60.0
LONG = "журнал" * 20


def listening(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    assert line.startswith("listening ")
    return line.split()[1]


@pytest.mark.parametrize("name", [LONG, "two\nlines", "no text \udcff"], ids=ascii)
def test_a_copy_with_any_path_has_a_name(
    name: str, orders: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "quire")  # pytest's workers cannot send such a path
    copy = tmp_path / name

    async def work() -> str:
        with quire.open(orders) as queue:
            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await source.acknowledged(queue.last_index or 0)
                assert sink.last_index == queue.last_index
                return queue.replicas[0].name

    found = asyncio.run(work())
    assert found.isprintable()
    assert len(found.encode()) <= 200
    assert found.endswith(
        name[-10:].encode("unicode_escape").decode() if name != LONG else name[-50:]
    )


@pytest.mark.parametrize("name", ["", LONG, "two\nlines"], ids=ascii)
def test_a_name_that_is_none(name: str, cli: Cli, tmp_path: Path) -> None:
    ran = cli("replicate", "sink", tmp_path / "copy", "--from", "127.0.0.1:1", "--name", name)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "a name must have 1 to 200 bytes of UTF-8" in ran.err
    with pytest.raises(OptionsError, match="a name must have 1 to 200 bytes"):
        Node(tmp_path / "node", EtcdClient(EtcdModel()), name=name, port=1)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "0.0.0.0:7001", "[::]:7001"])
def test_a_node_where_nobody_reaches_it(address: str, cli: Cli, orders: Path) -> None:
    where = ("--listen", address, "--insecure", "--etcd", "http://127.0.0.1:1")
    ran = cli("replicate", "node", orders, *where, "--name", "a")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert f"where the others reach it: address={address}" in ran.err
    assert standing.read(orders) is None


@pytest.mark.check
def test_a_node_with_a_long_lease_and_an_etcd_that_is_silent(orders: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        where = ("--listen", f"127.0.0.1:{free_port()}", "--etcd", url)
        ran = run("replicate", "node", orders, *where, "--name", "a", "--lease", "3600")
    assert (ran.code, ran.err) == (1, f"quire: etcd does not answer: url={url}\n")


def test_a_node_whose_port_is_in_use(orders: Path) -> None:
    async def work(port: int) -> None:
        node = Node(orders, EtcdClient(EtcdModel()), name="a", port=port)
        await asyncio.wait_for(node.run_forever(), WAIT_S)

    with (
        closing(socket.create_server(("127.0.0.1", 0))) as taken,
        pytest.raises(OSError, match="address already in use"),
    ):
        asyncio.run(work(taken.getsockname()[1]))


def test_a_cancelled_node_ends_after_its_threads(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, may_end, begin = threading.Event(), threading.Event(), Home.begin_reign

    def slowly(self: Home, epoch: int, members: frozenset[str]) -> None:
        has_begun.set()
        assert may_end.wait(WAIT_S)
        begin(self, epoch, members)

    monkeypatch.setattr(Home, "begin_reign", slowly)

    async def work() -> bool:
        node = Node(orders, EtcdClient(EtcdModel()), name="a", port=free_port())
        running = asyncio.create_task(node.run_forever())
        await until(has_begun.is_set)
        running.cancel()
        ended, _ = await asyncio.wait({running}, timeout=0.5)
        may_end.set()
        await asyncio.wait({running})
        return bool(ended)

    assert not asyncio.run(work())
    found = standing.read(orders)
    assert found is not None
    assert (found.epoch, found.role) == (1, "sink")  # closed again, after what was under way


@pytest.mark.check
def test_a_sink_that_takes_over_at_all_addresses(orders: Path, tmp_path: Path) -> None:
    copy, port = tmp_path / "copy", free_port()
    with started("replicate", "source", orders, "--listen", "127.0.0.1:0") as source:
        where = ("--listen", f"0.0.0.0:{port}", "--insecure", "--name", "b")
        with started("replicate", "sink", copy, "--from", listening(source), *where):
            wait_until(lambda: bool(replicas(orders)), limit_s=WAIT_S)
            ran = run("handover", orders, "--to", "b")
            assert (ran.code, ran.out.split()[-1]) == (0, f"address=127.0.0.1:{port}")
            wait_until(lambda: bool(replicas(copy)), limit_s=WAIT_S)


@pytest.mark.check
def test_a_sink_that_takes_over_and_cannot_serve(orders: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as taken,
        started("replicate", "source", orders, "--listen", "127.0.0.1:0") as source,
    ):
        where = ("--listen", f"127.0.0.1:{taken.getsockname()[1]}", "--name", "b")
        with started("replicate", "sink", copy, "--from", listening(source), *where) as sink:
            wait_until(lambda: bool(replicas(orders)), limit_s=WAIT_S)
            ran = run("handover", orders, "--to", "b")
            assert (ran.code, ran.err) == (0, "")
            assert ran.out.startswith(f"handed over {orders} to=b epoch=2")
            assert "address=1" not in ran.out
            _, errors = sink.communicate(timeout=WAIT_S)
            assert (sink.returncode, b"Traceback" in errors) == (1, False)
            assert b"address already in use" in errors
        assert source.wait(WAIT_S) == 0
    with quire.open(copy, create=False) as queue:
        queue.appender().write_bytes(b"the new source takes appends")


def replicas(path: Path) -> list[str]:
    """The sinks of a queue that are in sync and connected."""
    with quire.open(path, create=False, read_only=True) as queue:
        return [it.name for it in queue.replicas if it.in_sync and it.connected]
