"""Jedis, the Java client of Redis, against a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from java_peer import JEDIS, JEDIS_VERSION, JavaPeer
from served import connected, serving

pytestmark = pytest.mark.java
TEXT = "é 中 😀"


@pytest.fixture(scope="module")
def jedis() -> JavaPeer:
    return JavaPeer(JEDIS_VERSION, mains=JEDIS)


@pytest.mark.parametrize("pipelined", [False, True])
def test_jedis_appends(jedis: JavaPeer, tmp_path: Path, *, pipelined: bool) -> None:
    with serving(tmp_path / "queues") as (port, _), connected(port) as client:
        ids = jedis.run(
            "append", port=port, queue="orders/eur", count=300, text=TEXT, pipelined=pipelined
        )
        found = client.xrange("orders/eur")
        assert [index.decode() for index, _ in found] == ids
        assert [fields for _, fields in found] == [
            {b"number": b"%d" % number, b"text": TEXT.encode()} for number in range(300)
        ]


def test_jedis_tails_what_is_there_and_what_comes(jedis: JavaPeer, tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, _), connected(port) as client:
        ids = [client.xadd("orders", {"number": str(it), "text": TEXT}) for it in range(150)]
        with jedis.start("tail", port=port, queue="orders", count=160) as tail:
            tail.expect("READY")
            first = [tail.read_line() for _ in range(150)]
            while not client.info("clients")["blocked_clients"]:
                pass
            ids += [client.xadd("orders", {"number": str(it), "text": ""}) for it in range(10)]
            found = [*first, *tail.rest()]
        wanted = [(it, TEXT) for it in range(150)] + [(it, "") for it in range(10)]
        assert found == [
            f"{index.decode()} {number} {text}"
            for index, (number, text) in zip(ids, wanted, strict=True)
        ]


def test_jedis_is_a_consumer_of_a_group(jedis: JavaPeer, tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, _), connected(port) as client:
        ids = [client.xadd("orders", {"number": str(it)}).decode() for it in range(5)]
        found = jedis.run("consume", port=port, queue="orders", group="workers", count=3)
        assert found == [*ids[:3], "pending 0"]


def test_jedis_as_a_client_of_a_cluster(jedis: JavaPeer, tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, _), connected(port) as client:
        *found, nodes = jedis.run("cluster", port=port, queue="orders/eur", count=5)
        assert nodes == "nodes 1"
        assert found == [index.decode() for index, _ in client.xrange("orders/eur")]
        assert len(found) == 5
