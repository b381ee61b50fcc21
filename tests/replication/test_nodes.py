"""Nodes with a real etcd: one is the source, and another takes its place when it is lost."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import quire
from authority import Authority
from cli_runs import run, started
from cluster import LEASE_S, Cluster, RunningEtcd, cluster_of, running_etcd
from event_loops import until
from ports import free_port
from queues import problems_of
from quire.errors import AppendLockedError, WaitTimeoutError
from quire.replication import Node, Sink, standing
from replicas import last_index, wait_until
from replication_reference import BATCH, COMPRESSED_BATCH, Peer, greeting, start
from tally import RUN, Tally, scaled

pytestmark = pytest.mark.check
PROMISE = "What all nodes in sync have stays when the source is killed or stopped"
LIMIT_S = 60.0


@contextmanager
def http_server() -> Generator[str]:
    """Serve HTTP, but nothing of an etcd."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def is_refused(cluster: Cluster, name: str) -> bool:
    try:
        cluster.append(name, b"probe")
    except AppendLockedError:
        return True
    return False


def test_another_node_takes_the_place_of_a_killed_source(tmp_path: Path) -> None:
    with cluster_of("abc", tmp_path) as cluster:
        cluster.begin()
        first = cluster.wait_for_leader()
        assert (first.name, first.epoch) == ("a", 1)
        written = [cluster.append("a", b"%d" % number) for number in range(50)]
        cluster.wait_for_copies(written[-1], {"b", "c"})
        assert all(is_refused(cluster, it) for it in "bc")
        cluster.kill("a")
        second = cluster.wait_for_leader(after=1)
        assert (second.name in "bc", second.epoch) == (True, 2)
        assert [it for it, _ in cluster.payloads(second.name)][-50:] == written
        wait_until(lambda: is_refused(cluster, "a"), limit_s=LIMIT_S)
        after = cluster.append(second.name, b"of the new source")
        cluster.start("a")
        cluster.wait_in_sync()
        cluster.wait_for_copies(after, {"a", "b", "c"})
        assert cluster.payloads("a") == cluster.payloads("b") == cluster.payloads("c")
        assert is_refused(cluster, "a")


def test_nodes_with_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutual, among the nodes and with etcd; a node of another authority takes no part."""
    ours, theirs = (Authority.make(tmp_path, name) for name in ("ours", "theirs"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(theirs.file))  # the given authority counts
    with cluster_of("ab", tmp_path, ours) as cluster:
        cluster.begin()
        cluster.wait_for_copies(cluster.append("a", b"one"), {"b"})
        cluster.kill("a")
        assert cluster.wait_for_leader(after=1).name == "b"
        index = cluster.append("b", b"two")
        honest = cluster.tls["a"]
        cluster.tls["a"] = theirs.signed("stranger")
        cluster.start("a")
        assert cluster.ended("a") == 1
        assert "etcd does not answer" in cluster.errors("a")
        assert cluster.view.in_sync == {"b"}
        cluster.tls["a"] = honest
        cluster.start("a")
        cluster.wait_in_sync()
        cluster.wait_for_copies(index, {"a"})
        assert cluster.payloads("a") == cluster.payloads("b")


async def first_batch(port: int) -> int:
    """Return the kind of the first batch that a sink is sent which takes compressed ones."""
    peer = await Peer.connect(port)
    await peer.send(greeting("x", features=["zstd"]), start(None))
    while (kind := (await peer.receive_raw())[0]) not in {BATCH, COMPRESSED_BATCH}:
        pass
    await peer.close()
    return kind


@pytest.mark.parametrize(("options", "kind"), [(["--compress"], COMPRESSED_BATCH), ([], BATCH)])
def test_the_node_that_is_the_source_compresses_if_asked(
    tmp_path: Path, options: list[str], kind: int
) -> None:
    with cluster_of("ab", tmp_path, options=options) as cluster:
        cluster.begin()
        index = cluster.append("a", b"said again and again " * 100)
        cluster.wait_for_copies(index, {"b"})
        assert cluster.payloads("a") == cluster.payloads("b")
        port = int(cluster.address("a").rpartition(":")[2])
        assert asyncio.run(first_batch(port)) == kind


def test_what_was_never_acknowledged_is_put_aside(tmp_path: Path) -> None:
    with cluster_of("abc", tmp_path) as cluster:
        cluster.begin()
        with quire.open(cluster.path("a")) as queue, queue.appender() as appender:
            cluster.send("a", signal.SIGSTOP)
            lone = appender.write_bytes(b"only at a")  # its lease goes on for a second or more
        cluster.kill("a")
        second = cluster.wait_for_leader(after=1).name
        index = cluster.append(second, b"of the new source")
        assert index == lone
        cluster.start("a")
        cluster.wait_in_sync()
        cluster.wait_for_copies(index, {"a"})
        assert cluster.payloads("a") == cluster.payloads(second)
        [part] = (cluster.path("a") / "aside").iterdir()
        with quire.open(part, read_only=True) as queue, queue.tailer() as tailer:
            assert tailer.move_to_index(lone)
            assert tailer.read_bytes() == b"only at a"
        assert cluster.errors("a").count("put aside") == 1


def change(path: Path, old: bytes, new: bytes) -> None:
    """Change a message in place, as damage of a disk does."""
    [file] = path.glob("*.cq4")
    with file.open("r+b") as changed:
        changed.seek(file.read_bytes().index(old))
        changed.write(new)


def test_damage_at_the_source_does_not_displace_good_copies(tmp_path: Path) -> None:
    """Neither in its epoch, nor after it was started again."""
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        cluster.wait_for_copies(cluster.append("a", b"a good message"), {"b"})
        kept = cluster.payloads("b")
        cluster.kill("b")
        change(cluster.path("a"), b"a good message", b"a BAD  message")
        cluster.start("b")
        assert cluster.ended("b") == 1
        cluster.kill("a")
        cluster.start("a")
        assert cluster.wait_for_leader(after=1).name == "a"
        cluster.start("b")
        assert cluster.ended("b") == 1
        assert cluster.errors("b").count("one of the two files was damaged") == 2
        assert cluster.payloads("b") == kept
        assert not (cluster.path("b") / "aside").exists()
        change(cluster.path("a"), b"a BAD  message", b"a good message")
        cluster.start("b")
        cluster.wait_in_sync()
        cluster.wait_for_copies(cluster.append("a", b"after"), {"b"})
        assert cluster.payloads("a") == cluster.payloads("b")


def test_a_node_that_is_away_is_forgotten(tmp_path: Path) -> None:
    with cluster_of("abc", tmp_path) as cluster:
        cluster.begin()
        cluster.kill("c")
        forget = ("replicate", "forget")
        with quire.open(cluster.path("a"), timeout_s=0.3) as queue, queue.appender() as appender:
            with pytest.raises(WaitTimeoutError):
                appender.write_bytes(b"c is waited for", wait="all")
            ran = run(*forget, cluster.path("b"), "c", timeout_s=LIMIT_S)
            assert (ran.code, "no source of this queue took" in ran.err) == (1, True)
            ran = run(*forget, cluster.path("a"), "c", timeout_s=LIMIT_S)
            assert (ran.code, ran.out, ran.err) == (0, "forgot c\n", "")
            assert cluster.view.in_sync == {"a", "b"}
            index = appender.write_bytes(b"c is not waited for")
            appender.acknowledged(index, wait="all", timeout_s=LIMIT_S)
        for name in ("c", "a", "never"):
            ran = run(*forget, cluster.path("a"), name, timeout_s=LIMIT_S)
            assert (ran.code, "no other member of this name" in ran.err) == (1, True)
        cluster.etcd.send(signal.SIGSTOP)
        ran = run(*forget, cluster.path("a"), "b", timeout_s=LIMIT_S)
        cluster.etcd.send(signal.SIGCONT)
        assert ran.code == 1  # etcd may do it later than it was waited for; b joins again then
        cluster.wait_for_leader()
        cluster.start("c")
        cluster.wait_in_sync()


def test_the_in_sync_set_of_a_source_is_that_in_etcd(tmp_path: Path) -> None:
    """Also of one that had more members when it was the source before; no other sink joins it."""

    def members(name: str) -> set[str]:
        with quire.open(cluster.path(name)) as queue:
            return {it.name for it in queue.replicas if it.in_sync}

    def has_members(name: str, expected: set[str]) -> bool:
        return members(name) == expected

    async def follow(index: int) -> None:
        port = int(cluster.address("b").rpartition(":")[2])
        async with Sink(tmp_path / "copy", port=port, name="plain") as sink:
            await sink.stored(index)
            with quire.open(cluster.path("b")) as queue:
                await until(lambda: "plain" in {it.name for it in queue.replicas if it.connected})
                await until(lambda: (queue.last_acknowledged_index or 0) >= index)
            assert members("b") == set()

    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        for source, target in ("ab", "ba"):
            ran = run("handover", cluster.path(source), "--to", target, timeout_s=LIMIT_S)
            assert ran.code == 0, ran.err
            cluster.wait_in_sync()
            wait_until(partial(has_members, target, {source}))
        cluster.kill("a")
        assert cluster.wait_for_leader(after=3).name == "b"
        assert members("b") == cluster.view.in_sync - {"b"} == set()
        asyncio.run(follow(cluster.append("b", b"x")))
        ran = run("replicate", "forget", cluster.path("b"), "a", timeout_s=LIMIT_S)
        assert (ran.code, "no other member of this name" in ran.err) == (1, True)
        cluster.start("a")
        cluster.wait_in_sync()
        wait_until(partial(has_members, "b", {"a"}), limit_s=LIMIT_S)


def test_a_node_of_the_library_keeps_an_encrypted_queue(tmp_path: Path) -> None:
    """It needs no key, as no source and no sink does."""
    key, path = bytes(range(32)), tmp_path / "orders"
    with quire.open(path, key=key) as queue:
        queue.appender().write_bytes(b"one")

    async def work(etcd: RunningEtcd) -> None:
        said = list[str]()
        node = Node(
            *(path, etcd.client()),
            name="a",
            port=free_port(),
            lease_s=LEASE_S,
            on_change=said.append,
        )
        running = asyncio.create_task(node.run_forever())
        await until(lambda: running.done() or any("source epoch=1" in it for it in said))
        assert not running.done(), running.exception()
        with quire.open(path, key=key) as queue:
            queue.appender().write_bytes(b"two")
        running.cancel()
        await asyncio.wait({running})

    with running_etcd(tmp_path / "etcd") as etcd:
        asyncio.run(work(etcd))


def test_groups_go_on_at_the_next_source(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        for number in range(20):
            cluster.append("a", b"%d" % number)
        everything = [index for index, _ in cluster.payloads("a")]

        def position(name: str) -> tuple[int, int] | None:
            with quire.open(cluster.path(name), read_only=True) as queue:
                return next(((it.next_index, it.pending) for it in queue.groups()), None)

        with (
            quire.open(cluster.path("a")) as queue,
            queue.group("billing").consumer() as consumer,
        ):
            held = [consumer.read() for _ in range(8)]
            assert all(message is not None and message.ack() for message in held[:5])
            wait_until(lambda: position("b") == position("a"), limit_s=LIMIT_S)
            cluster.kill("a")
        assert cluster.wait_for_leader(after=1).name == "b"
        with (
            quire.open(cluster.path("b"), create=False) as queue,
            queue.group("billing").consumer() as consumer,
        ):
            assert sorted(message.index for message in consumer if message.ack()) == everything[5:]


def test_a_stopped_source_refuses_appends_and_becomes_a_sink(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        with quire.open(cluster.path("a")) as queue, queue.appender() as appender:
            cluster.wait_for_copies(appender.write_bytes(b"before"), {"b"})
            cluster.send("a", signal.SIGSTOP)
            assert cluster.wait_for_leader(after=1).name == "b"
            with pytest.raises(AppendLockedError):  # by a process that goes on
                appender.write_bytes(b"lost")
            index = cluster.append("b", b"after")
            cluster.send("a", signal.SIGCONT)
            cluster.wait_in_sync()
            cluster.wait_for_copies(index, {"a"})
        assert "sink epoch=2 of=b" in cluster.output("a")
        assert cluster.payloads("a") == cluster.payloads("b")


def test_a_fail_over_takes_at_most_the_lease_and_two_seconds(tmp_path: Path) -> None:
    """The time is measured by the machine; a busy one gets some seconds more."""
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        cluster.kill("a")
        began = time.monotonic()
        cluster.wait_for_leader(after=1)
        took = time.monotonic() - began
        print(f"fail-over in {took:.2f} s with a lease of {LEASE_S} s")  # noqa: T201


def test_a_node_outside_the_set_waits(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        cluster.send("b", signal.SIGSTOP)
        cluster.append("a", b"only here")
        cluster.kill("a")
        cluster.send("b", signal.SIGCONT)
        second = cluster.wait_for_leader(after=1)
        assert second.name == "b"  # in the set, and what only a had was never acknowledged
        cluster.kill("b")
        cluster.start("a")
        wait_until(lambda: "waiting" in cluster.output("a")[-1:], limit_s=LIMIT_S)
        wait_until(lambda: "a" in cluster.view.nodes and not cluster.view.leader, limit_s=LIMIT_S)
        assert is_refused(cluster, "a")
        cluster.start("b")
        assert cluster.wait_for_leader(after=2).name == "b"
        cluster.wait_in_sync()
        assert cluster.payloads("a") == cluster.payloads("b")


def test_etcd_away(tmp_path: Path) -> None:
    """The source goes on until its lease ends, then refuses, and goes on when etcd is back."""
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        cluster.etcd.send(signal.SIGSTOP)
        cluster.append("a", b"within the lease")
        wait_until(lambda: is_refused(cluster, "a"), limit_s=LIMIT_S)
        assert is_refused(cluster, "b")
        wait_until(lambda: "etcd does not answer" in cluster.errors("a"), limit_s=LIMIT_S)
        cluster.etcd.send(signal.SIGCONT)
        wait_until(
            lambda: any(not is_refused(cluster, it.name) for it in [cluster.leader()] if it),
            limit_s=LIMIT_S,
        )
        said = cluster.errors("a").count("etcd does not answer")
        assert said == 1, cluster.errors("a")


def test_a_handover_between_nodes(tmp_path: Path) -> None:
    with cluster_of("abc", tmp_path) as cluster:
        cluster.begin()
        index = cluster.append("a", b"before")
        ran = run("handover", cluster.path("a"), "--to", "c", timeout_s=LIMIT_S)
        assert (ran.code, ran.err) == (0, "")
        assert "to=c epoch=2" in ran.out
        assert cluster.wait_for_leader(after=1).name == "c"
        after = cluster.append("c", b"after")
        assert after > index
        cluster.wait_in_sync()
        cluster.wait_for_copies(after, {"a", "b"})
        ran = run("handover", cluster.path("c"), "--to", cluster.address("a"), timeout_s=LIMIT_S)
        assert ran.code == 0, ran.err
        assert cluster.wait_for_leader(after=2).name == "a"


def test_a_node_that_ends_lets_another_take_over(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        cluster.send("a", signal.SIGTERM)
        assert cluster.ended("a") == 0
        assert cluster.wait_for_leader(after=1).name == "b"
        assert "Traceback" not in cluster.errors("a")


def test_how_a_node_says_that_it_cannot_begin(tmp_path: Path) -> None:
    orders = tmp_path / "orders"
    with quire.open(orders) as queue:
        queue.appender().write_bytes(b"one")
    given = ("--listen", "127.0.0.1:7001", "--name", "a", "--lease", str(LEASE_S))
    away = f"http://127.0.0.1:{free_port()}"
    ran = run("replicate", "node", orders, "--etcd", away, *given)
    assert (ran.code, ran.err) == (1, f"quire: etcd does not answer: url={away}\n")
    for wrong in ("nowhere", "ftp://a:1", "http://", "http://a:1/path", "http://a:x"):
        ran = run("replicate", "node", orders, "--etcd", wrong, *given)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1)
        assert "not the URL of an etcd" in ran.err
    with http_server() as other:
        ran = run("replicate", "node", orders, "--etcd", other, *given)
        assert (ran.code, len(ran.err.splitlines())) == (1, 1)
        assert "no etcd answers" in ran.err


def test_a_name_that_another_node_has(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        arguments = cluster.arguments("b")
        arguments[2] = str(tmp_path / "other")
        ran = run(*arguments, timeout_s=LIMIT_S)
        assert ran.code == 1
        assert "another node of this name lives" in ran.err.splitlines()[-1]
        assert cluster.leader() is not None


def test_a_source_that_was_stopped_while_another_node_took_its_name_ends(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        cluster.send("a", signal.SIGSTOP)
        assert cluster.wait_for_leader(after=1).name == "b"
        arguments = cluster.arguments("a")
        arguments[2], address = str(tmp_path / "other"), f"127.0.0.1:{free_port()}"
        arguments[arguments.index(cluster.address("a"))] = address
        with started(*arguments):
            wait_until(
                lambda: "a" in (nodes := cluster.view.nodes) and address in nodes["a"].value,
                limit_s=LIMIT_S,
            )
            cluster.send("a", signal.SIGCONT)
            assert cluster.ended("a") == 1
            assert "another node of this name lives" in cluster.errors("a").splitlines()[-1]
        assert is_refused(cluster, "a")


def test_two_processes_for_one_copy(tmp_path: Path) -> None:
    with cluster_of("ab", tmp_path) as cluster:
        cluster.begin()
        ran = run(
            *("replicate", "sink", cluster.path("b"), "--from", cluster.address("a")),
            timeout_s=LIMIT_S,
        )
        assert ran.code == 1
        assert len(ran.err.splitlines()) == 1
        assert cluster.leader() is not None


@pytest.mark.parametrize("seed", range(4))
def test_random_kills_and_stops(seed: int, tmp_path: Path, tally: Tally) -> None:
    chance, rounds = random.Random(seed + 4 * RUN), scaled(5, 250)  # noqa: S311
    with cluster_of("abc", tmp_path) as cluster, ExitStack() as stack:
        cluster.begin()
        writer = stack.enter_context(cluster.writer())
        epochs = {1: "a"}
        for _ in range(rounds):
            leader = cluster.wait_for_leader()
            writer.wait_for_more()
            victim = chance.choice(["leader", "leader", "sink"])
            name = leader.name
            if victim == "sink":
                name = chance.choice(sorted(set("abc") - {leader.name}))
            if chance.random() < 0.5:
                cluster.kill(name)
                later = cluster.wait_for_leader(after=leader.epoch - (name != leader.name))
                cluster.start(name)
            else:
                cluster.send(name, signal.SIGSTOP)
                if name == leader.name:
                    later = cluster.wait_for_leader(after=leader.epoch)
                    assert is_refused(cluster, name)
                else:
                    later = leader
                cluster.send(name, signal.SIGCONT)
            assert epochs.setdefault(later.epoch, later.name) == later.name
            acknowledged = dict(writer.acknowledged)
            assert acknowledged.items() <= dict(cluster.payloads(later.name)).items()
            cluster.wait_in_sync()
        stack.close()
        last = last_index(cluster.path(cluster.wait_for_leader().name))
        cluster.wait_for_copies(last, set("abc"))
        assert cluster.payloads("a") == cluster.payloads("b") == cluster.payloads("c")
        assert all(problems_of(cluster.path(it)) == [] for it in "abc")
        for name in "abc":
            assert standing.read(cluster.path(name)) is not None
            assert "Traceback" not in cluster.errors(name), cluster.errors(name)
    tally(PROMISE, rounds, "nodes killed or stopped")
