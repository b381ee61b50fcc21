"""Streams of requests that were changed at random, sent to a server beside a good client."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from pathlib import Path

import hiredis
import pytest

from served import command, connected, serving

WAIT_S = 30.0
_MORE = range(1, 9)
_OFFSETS = b"".join(it.to_bytes(4, "little") for it in (0, 3, 8))
VALID = [
    command("PING"),
    command("HELLO", "3"),
    command("XADD", "changed", "*", "symbol", "EURUSD", "price", "1.1"),
    command("XADD", "changed", "*", "bytes", b"\xff\x00") * 3,
    command("XADD", "changed", "NOMKSTREAM", "*", "n", "1"),
    command("XLEN", "changed"),
    command("XRANGE", "changed", "-", "+", "COUNT", "2"),
    command("XREAD", "COUNT", "2", "STREAMS", "changed", "0-0"),
    command("XREAD", "BLOCK", "1", "STREAMS", "changed", "$"),
    command("XINFO", "STREAM", "changed"),
    command("SCAN", "0", "COUNT", "3"),
    command("QUIRE.APPEND", "changed", "PACKED", _OFFSETS, "twothree"),
    command("QUIRE.APPEND", "changed", "ID", b"\x01" * 16, "1", "VALUES", "one"),
    command("QUIRE.READ", "changed", "FROM", "0", "COUNT", "2", "PACKED"),
    command("QUIRE.SEEK", "changed", "TIME", "0"),
    command("QUIRE.CYCLES", "changed"),
]
_HOSTILE = [
    b"*1048577\r\n",
    b"$67108865\r\n",
    b"*-1\r\n",
    b"$-1\r\n",
    b"*0\r\n",
    b"*1\r\n" * 50,
    b":1\r\n",
    b"%1\r\n",
    b"\r\n",
    b"$99999999999999999999\r\n",
    bytes(100),
]


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def _replace(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] = chance.randrange(256)


def _remove(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    del data[at : at + chance.randrange(1, 8)]


def _insert(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    data[at:at] = chance.choice(_HOSTILE)


def _repeat(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    data[at:at] = data[at : at + chance.randrange(1, 200)]


_CHANGES: list[Callable[[bytearray, random.Random], None]] = [
    _cut,
    _replace,
    _remove,
    _insert,
    _repeat,
]


def _changed(chance: random.Random) -> bytes:
    data = bytearray(b"".join(chance.choices(VALID, k=chance.randrange(1, 8))))
    for _ in range(chance.randrange(1, 4)):
        if data:
            chance.choice(_CHANGES)(data, chance)
    return bytes(data)


def _answers(port: int, data: bytes) -> list[object]:
    """Send bytes in two pieces, and return the answers until the server closes the connection."""
    reader, found = hiredis.Reader(), list[object]()
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as raw:
        try:
            raw.sendall(data[: len(data) // 2])
            raw.sendall(data[len(data) // 2 :])
            raw.shutdown(socket.SHUT_WR)
            while more := raw.recv(1 << 16):
                reader.feed(more)
        except TimeoutError:
            raise
        except OSError:  # the server has closed it: it understands no more
            pass
    while (answer := reader.gets()) is not False:
        found.append(answer)
    assert not reader.has_data(), "half an answer"
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(it, marks=pytest.mark.check) for it in _MORE)])
def test_changed_requests_trouble_nobody_else(seed: int, tmp_path: Path) -> None:
    """Each is answered, in RESP, by what was asked or by an error that is not the server's own."""
    chance = random.Random(seed)  # noqa: S311 - the same each time
    rounds, streams = 2, 50 if seed == 0 else 200  # more would fill the pipe of the server's log
    with serving(tmp_path / "queues") as (port, process), connected(port) as good:
        good.xadd("good", {"n": "0"})
        for number in range(rounds):
            for _ in range(streams):
                for answer in _answers(port, _changed(chance)):
                    assert "internal error" not in str(answer), answer
            good.xadd("good", {"n": str(number + 1)})
            found = [int(fields[b"n"]) for _, fields in good.xrange("good")]
            assert found == list(range(number + 2))
        assert process.poll() is None
