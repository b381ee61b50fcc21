"""`XADD` commands that arrive together: each has its own answer, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import pytest
from redis.exceptions import NoPermissionError, ResponseError

import quire
from cli_runs import run_here
from served import command, connected, serving, talk

_SMALL = 64 << 10
_TWO_CYCLES = 16


def _pipelined(client: Any, rows: Sequence[tuple[str, object]]) -> list[Any]:  # noqa: ANN401
    pipe = client.pipeline(transaction=False)
    for name, value in rows:
        pipe.xadd(name, {"n": value})
    found: list[Any] = pipe.execute(raise_on_error=False)
    return found


def _entries(client: Any, name: str) -> list[tuple[bytes, bytes]]:  # noqa: ANN401
    return [(index, fields[b"n"]) for index, fields in client.xrange(name)]


def test_one_that_is_too_long_fails_alone(tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, _), connected(port) as client:
        client.execute_command("QUIRE.OPEN", "small", "CREATE", "block_bytes", _SMALL)
        for length in (65_535, 100_000):  # only the first is appended together with others
            rows = [("small", "a"), ("small", "x" * length), ("small", "b")]
            first, refused, last = _pipelined(client, rows)
            assert isinstance(refused, ResponseError)
            assert "too long" in str(refused)
            assert _entries(client, "small")[-2:] == [(first, b"a"), (last, b"b")]


@pytest.mark.parametrize("kind", ["vanilla", "quick-queue"])
def test_older_formats_get_them_one_by_one(
    tmp_path: Path, kind: Literal["vanilla", "quick-queue"]
) -> None:
    root = tmp_path / "queues"
    quire.open(root / "old", format=kind).close()
    with serving(root) as (port, _), connected(port) as client:
        found = _pipelined(client, [("old", str(it)) for it in range(100)])
        assert _entries(client, "old") == [(it, b"%d" % n) for n, it in enumerate(found)]


@pytest.mark.check
def test_their_ids_are_those_of_two_cycles_if_the_queue_rolls_between(tmp_path: Path) -> None:
    """A second is a cycle: rolls fall between commands that arrive together, or within them."""
    root = tmp_path / "queues"
    quire.open(root / "rolling", roll_cycle="TEST_SECONDLY").close()
    found: list[Any] = []
    with serving(root) as (port, _), connected(port) as client, connected(port) as reader:
        while len(reader.execute_command("QUIRE.CYCLES", "rolling")[0]) < _TWO_CYCLES:
            start = len(found)
            found += _pipelined(client, [("rolling", str(start + it)) for it in range(200)])
        entries = _entries(reader, "rolling")
        assert entries == [(it, b"%d" % n) for n, it in enumerate(found)]


def test_while_another_writer_holds_the_lock_they_wait_together(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with serving(root) as (port, _), connected(port) as client, connected(port) as other:
        client.xadd("held", {"n": "0"})
        with quire.open(root / "held") as queue, queue.appender() as appender:
            found: list[Any] = []
            rows = [("held", str(it)) for it in range(1, 100)]
            with appender.writing_document() as document:
                waiting = Thread(target=lambda: found.extend(_pipelined(client, rows)))
                waiting.start()
                assert other.xlen("held") == 1
                document.write("n", "before")
            waiting.join()
        assert [index for index, _ in _entries(other, "held")[2:]] == found


def test_a_token_that_may_not_append_is_refused_each_time(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    made = run_here(
        "token", "add", "writer", "--tokens", str(file), "--append", "a", "--create", "a"
    )
    token = made.out.strip()
    three = command("XADD", "a", "*", "n", "1") * 3
    with serving(tmp_path / "queues", "--tokens", file) as (port, _):
        assert talk(port, three) == b"-NOAUTH Authentication required.\r\n" * 3
        with connected(port, password=token) as client:
            rows = [("b", "1"), ("b", "2"), ("a", "3"), ("../a", "4"), ("../a", "5")]
            one, two, three_, *wrong = _pipelined(client, rows)
            assert isinstance(one, NoPermissionError)
            assert isinstance(two, NoPermissionError)
            assert three_.endswith(b"-0")
            assert all("invalid name" in str(it) for it in wrong)
