"""The same question asked twice: each answer is of the queue as it is then."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import pytest

import quire
from served import connected, serving

START_MS = 1_705_314_600_000


def indexes(entries: Any) -> list[int]:  # noqa: ANN401 - of redis-py
    return [int(name[:-2]) for name, _ in entries]


def rows(client: Any, *more: str | int) -> list[int]:  # noqa: ANN401
    _, found = client.execute_command("QUIRE.READ", "q", "FROM", 0, "COUNT", 10, *more)
    return [index for index, *_ in found]


QUESTIONS: Final[dict[str, Callable[[Any], list[int]]]] = {
    "XREAD": lambda client: indexes(client.xread({"q": "0"})[0][1]),
    "XRANGE": lambda client: indexes(client.xrange("q")),
    "XRANGE COUNT": lambda client: indexes(client.xrange("q", count=100)),
    "XREVRANGE": lambda client: indexes(client.xrevrange("q"))[::-1],
    "READ": rows,
    "READ LAST": lambda client: rows(client, "LAST"),
}


@pytest.mark.parametrize("kind", ["chronicle", "vanilla", "quick-queue"])
def test_what_was_appended_meanwhile_is_answered(
    tmp_path: Path, kind: Literal["chronicle", "vanilla", "quick-queue"]
) -> None:
    root = tmp_path / "queues"
    quire.open(root / "q", format=kind).close()
    with serving(root) as (port, _), connected(port) as client:
        added = [int(client.xadd("q", {"n": 1})[:-2])]
        for name, question in QUESTIONS.items():
            assert question(client) == added, name
            added.append(int(client.xadd("q", {"n": 1})[:-2]))
            assert question(client) == added, name


def test_what_another_process_appended_meanwhile_is_answered(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with (
        quire.open(root / "q") as home,
        home.appender() as appender,
        serving(root) as (port, _),
        connected(port) as client,
    ):
        added = [appender.write_bytes(b"home")]
        for name, question in QUESTIONS.items():
            assert question(client) == added, name
            added.append(appender.write_bytes(b"home"))
            assert question(client) == added, name


@contextmanager
def two_cycles(root: Path) -> Generator[tuple[Any, list[int]]]:
    """Serve a queue of two cycles with two messages each."""
    clock = quire.ManualClock(START_MS)
    made = quire.open(root / "q", roll_cycle="TEST_SECONDLY", clock=clock)
    with made as queue, queue.appender() as appender:
        added: list[int] = []
        for _ in range(2):
            added += [appender.write_bytes(b"one"), appender.write_bytes(b"two")]
            clock.advance(1000)
    with serving(root) as (port, _), connected(port) as client:
        yield client, added


def trim(client: Any, _path: Path) -> None:  # noqa: ANN401
    assert client.xtrim("q", maxlen=1, approximate=True) == 2


def delete(_client: Any, path: Path) -> None:  # noqa: ANN401
    min(path.glob("*.cq4")).unlink()


@pytest.mark.parametrize("remove", [trim, delete])
@pytest.mark.parametrize("name", ["XREAD", "XREVRANGE"])
def test_what_was_removed_is_not_answered(tmp_path: Path, name: str, remove: Any) -> None:  # noqa: ANN401
    with two_cycles(tmp_path / "queues") as (client, added):
        ((_, ((first, _),)),) = client.xread({"q": "0"}, count=1)
        assert QUESTIONS[name](client) == added
        remove(client, tmp_path / "queues" / "q")
        assert QUESTIONS[name](client) == added[2:]
        ((_, entries),) = client.xread({"q": first})  # on from within the first cycle
        assert indexes(entries) == added[2:]
