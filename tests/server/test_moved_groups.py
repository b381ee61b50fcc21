"""Groups of Redis' consumers, and queues that are opened again, renamed, removed, or shared."""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import quire
from served import WAIT_S, command, connected, serving


class Served(NamedTuple):
    """A server with a queue of six messages, of which consumer *c* of group *g* has three."""

    root: Path
    port: int
    client: Any
    taken: list[bytes]

    def counts(self, topic: str) -> dict[bytes, int]:
        """How often each pending message was delivered."""
        found = self.client.xpending_range(topic, "g", "-", "+", 10)
        return {it["message_id"]: it["times_delivered"] for it in found}

    def read(self, topic: str, consumer: str) -> list[bytes]:
        """All messages that a consumer gets."""
        ids = list[bytes]()
        while found := self.client.xreadgroup("g", consumer, {topic: ">"}, count=2):
            ids += [it for it, _ in found[0][1]]
        return ids


@pytest.fixture
def served(tmp_path: Path) -> Generator[Served]:
    with serving(tmp_path) as (port, _), connected(port) as client:
        ids = [client.xadd("orders", {"n": number}) for number in range(6)]
        client.xgroup_create("orders", "g", "0")
        client.xreadgroup("g", "c", {"orders": ">"}, count=3)
        yield Served(tmp_path, port, client, ids)


def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        pass


def test_consumers_keep_what_they_have_when_the_server_opens_the_queue_again(
    served: Served,
) -> None:
    place, aside = served.root / "orders", served.root / ".aside"
    place.rename(aside)
    until(lambda: not served.client.exists("orders"))
    aside.rename(place)
    assert served.counts("orders") == dict.fromkeys(served.taken[:3], 1)
    assert served.read("orders", "d") == served.taken[3:]
    assert served.client.xack("orders", "g", *served.taken[:3]) == 3


@pytest.mark.parametrize("asks", [True, False])
def test_what_consumers_had_is_delivered_again_by_the_new_name(
    served: Served,
    asks: bool,  # noqa: FBT001 - a parameter
) -> None:
    (served.root / "orders").rename(served.root / "moved")
    if asks:
        until(lambda: not served.client.exists("orders"))
    group = quire.open(served.root / "moved", read_only=True).group("g")
    until(lambda: all(it.consumer is None for it in group.pending()))  # the server has left it
    assert sorted(served.read("moved", "d")) == served.taken
    counts = dict.fromkeys(served.taken[:3], 2) | dict.fromkeys(served.taken[3:], 1)
    assert served.counts("moved") == counts


def test_who_waits_for_messages_of_a_group_is_answered_when_the_queue_is_removed(
    served: Served,
) -> None:
    served.read("orders", "c")
    words = ("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "orders", ">")
    with socket.create_connection(("127.0.0.1", served.port), timeout=WAIT_S) as raw:
        raw.sendall(command(*words))
        until(lambda: bool(served.client.info("clients")["blocked_clients"]))
        (served.root / "orders").rename(served.root / "moved")
        assert raw.recv(1000).startswith(b"-NOGROUP ")


def test_a_message_that_another_consumer_had_says_that_it_is_delivered_again(
    served: Served,
) -> None:
    with quire.open(served.root / "orders") as queue, queue.group("g").consumer() as consumer:
        assert len(consumer.read_many(2)) == 2
    assert sorted(served.read("orders", "d")) == served.taken[3:]
    assert [*served.counts("orders").values()] == [1, 1, 1, 2, 2, 1]


def test_who_looks_at_a_group_of_others_takes_nothing_from_it(served: Served) -> None:
    with quire.open(served.root / "orders") as queue:
        groups = [queue.group("own"), queue.group("keyed", key="n")]
        for group in groups:
            with group.consumer() as consumer:
                assert len(consumer.read_many(2)) == 2
        found = {it["name"]: it["pending"] for it in served.client.xinfo_groups("orders")}
        assert found == {b"g": 3, b"keyed": 0, b"own": 0}
        for group in groups:
            group.reset("start")  # the server is no member
        with groups[0].consumer() as consumer:
            assert len(consumer.read_many(2)) == 2
        assert served.client.xpending("orders", "own")["pending"] == 0
        assert served.client.xinfo_consumers("orders", "own") == []
        with groups[0].consumer() as consumer:
            assert [it.delivery_count for it in consumer.read_many(6)] == [2, 2]
            assert len(consumer.read_many(6)) == 4
