"""Nodes of the in-sync set that come back with less than they had acknowledged."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import quire
from cli_runs import started
from cluster import LEASE_S, Cluster, RunningEtcd, cluster_of, running_etcd
from ports import free_port
from quire.replication import Sink, Source, directory_mark, promote, standing
from quire.replication.register import (
    EPOCH,
    IN_SYNC,
    LEADER,
    Leader,
    Put,
    View,
    key_of,
    shown_epoch,
    shown_leader,
    shown_names,
    view_of,
)
from replicas import wait_until
from replication_reference import Peer, greeting, start

pytestmark = pytest.mark.check
LIMIT_S = 60.0
QUEUE = "0123456789abcdef0123456789abcdef"


def copy_without_its_end(folder: Path) -> str:
    """Make the copy of a sink that has lost what it acknowledged last; return the queue."""
    copy = folder / "b"

    async def work() -> None:
        with quire.open(folder / "orders", block_bytes=1 << 16) as queue:
            appender = queue.appender()
            async with Source(queue) as source:
                for data in (b"one", b"two"):
                    index = appender.write_bytes(data)
                    async with Sink(copy, port=source.address[1], name="b") as sink:
                        await sink.stored(index)
                    for file in copy.glob("*.cq4"):
                        earlier = folder / file.name
                        if data == b"one":
                            shutil.copyfile(file, earlier)
                        else:
                            shutil.copyfile(earlier, file)

    asyncio.run(work())
    found = standing.read(copy)
    assert found is not None
    return found.identity


class Agreed:
    """What etcd says while a node that is not there is the source, and ``b`` a member."""

    def __init__(self, etcd: RunningEtcd, queue: str) -> None:
        self._register, self._queue = etcd.client(), queue

    def begin(self) -> None:
        lease = self._register.grant(600)
        leader = Leader("a", f"127.0.0.1:{free_port()}", 1)
        values = {
            LEADER: shown_leader(leader),
            EPOCH: shown_epoch(1, "a"),
            IN_SYNC: shown_names(frozenset({"a", "b"})),
        }
        puts = [
            Put(key_of(self._queue, key), value, lease if key == LEADER else 0)
            for key, value in values.items()
        ]
        assert self._register.commit([], puts)

    @property
    def view(self) -> View:
        return view_of(self._register.read("/quire/"), self._queue)


@contextmanager
def node_of(path: Path, etcd: RunningEtcd) -> Generator[None]:
    where = ("--listen", f"127.0.0.1:{free_port()}", "--etcd", etcd.url)
    with started("replicate", "node", path, *where, "--name", "b", "--lease", str(LEASE_S)):
        yield


def acknowledged_by_all(cluster: Cluster) -> int:
    """Append at ``a``; return the index once all nodes have acknowledged it."""
    index = cluster.append("a", b"acknowledged")
    with quire.open(cluster.path("a"), create=False) as queue:
        queue.appender().acknowledged(index, wait="all")
    return index


@pytest.mark.parametrize("is_empty", [True, False], ids=["no queue", "an end that is lost"])
def test_a_node_leaves_the_in_sync_set_before_it_has_a_part_of_what_it_lost(
    *, is_empty: bool, tmp_path: Path
) -> None:
    queue = QUEUE if is_empty else copy_without_its_end(tmp_path)
    with running_etcd(tmp_path / "etcd") as etcd:
        agreed = Agreed(etcd, queue)
        agreed.begin()
        with node_of(tmp_path / "b", etcd):
            wait_until(lambda: agreed.view.in_sync == frozenset("a"), limit_s=LIMIT_S)
        assert (tmp_path / "b" / "metadata.cq4t").exists() != is_empty


def test_a_source_with_an_older_file_lets_another_node_lead(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        [file] = cluster.path("a").glob("*.cq4")
        shutil.copyfile(file, tmp_path / "older")
        index = acknowledged_by_all(cluster)
        for name in "ba":
            cluster.kill(name)
        shutil.copyfile(tmp_path / "older", file)
        cluster.start("a")
        lost = "this node has lost messages that it had, and is not promoted: name=a"
        wait_until(lambda: lost in cluster.errors("a"), limit_s=LIMIT_S)
        cluster.start("b")
        assert cluster.wait_for_leader(after=1).name == "b"
        cluster.wait_in_sync()
        cluster.wait_for_copies(index, {"a", "b"})
        assert cluster.payloads("a") == cluster.payloads("b")


def with_an_older_copy(cluster: Cluster) -> int:
    """
    Restore the directory of ``b`` from an older copy, with all nodes killed.

    Return the index of a message that both nodes have acknowledged and the copy lacks.
    """
    older = cluster.folder / "older"
    cluster.begin()
    cluster.kill("b")
    shutil.copytree(cluster.path("b"), older)
    cluster.start("b")
    cluster.wait_in_sync()
    index = acknowledged_by_all(cluster)
    for name in "ab":
        cluster.kill(name)
    shutil.rmtree(cluster.path("b"))
    shutil.copytree(older, cluster.path("b"))
    cluster.start("b")
    lost = "this node's directory is an older copy, or was restored, and is not promoted: name=b"
    wait_until(lambda: lost in cluster.errors("b"), limit_s=LIMIT_S)
    return index


def test_an_older_copy_is_not_promoted(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        index = with_an_older_copy(cluster)
        time.sleep(LEASE_S + 2)  # until which a member would be promoted
        assert cluster.leader() is None
        cluster.start("a")
        assert cluster.wait_for_leader(after=1).name == "a"
        cluster.wait_in_sync()
        cluster.wait_for_copies(index, {"a", "b"})
        assert cluster.payloads("a") == cluster.payloads("b")


def test_an_older_copy_that_was_promoted_by_hand_leads(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        index = with_an_older_copy(cluster)
        cluster.kill("b")
        promote(cluster.path("b"))
        cluster.start("b")
        assert cluster.wait_for_leader(after=1).name == "b"
        assert index not in dict(cluster.payloads("b"))


def test_a_directory_that_was_copied_after_its_node_was_killed_leads(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        index = acknowledged_by_all(cluster)
        for name in "ab":
            cluster.kill(name)
        shutil.copytree(cluster.path("b"), tmp_path / "copy")
        shutil.rmtree(cluster.path("b"))
        (tmp_path / "copy").rename(cluster.path("b"))
        cluster.start("b")
        assert cluster.wait_for_leader(after=1).name == "b"
        assert index in dict(cluster.payloads("b"))


def test_a_node_that_ends_leaves_a_mark_that_earlier_copies_do_not_have(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        wait_until(lambda: set(cluster.view.marks) == {"a", "b"}, limit_s=LIMIT_S)
        before = directory_mark.marks_at(cluster.path("b"))
        cluster.send("b", signal.SIGTERM)
        cluster.ended("b")
        mark = cluster.view.marks["b"]
        assert mark in directory_mark.marks_at(cluster.path("b"))
        assert mark not in before


async def follow_from_the_start(port: int, until_so: Callable[[], bool]) -> None:
    """
    Be a sink that has nothing, and acknowledges nothing, until something holds.

    As any sink it connects again: the source disconnects one that is silent, and all of them when
    its lease is over, as on a machine that is busy.
    """
    ends = time.monotonic() + LIMIT_S
    while not until_so():
        assert time.monotonic() < ends
        with suppress(OSError):
            peer = await Peer.connect(port)
            await peer.send(greeting("b"), start(None))
            with suppress(AssertionError):
                await asyncio.to_thread(wait_until, until_so, limit_s=5)
            await peer.close()


def test_a_member_that_begins_again_leaves_the_in_sync_set(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        acknowledged_by_all(cluster)
        cluster.kill("b")
        port = int(cluster.address("a").rpartition(":")[2])
        asyncio.run(follow_from_the_start(port, lambda: cluster.view.in_sync == frozenset("a")))
        lost = (
            "a node has lost messages that it had acknowledged, and leaves"
            " the in-sync set: name='b'"
        )
        assert lost in cluster.errors("a")
        shutil.rmtree(cluster.path("b"))
        cluster.start("b")
        cluster.wait_in_sync()
        assert cluster.payloads("a") == cluster.payloads("b")
