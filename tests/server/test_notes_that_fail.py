"""What a server notes for its clients, where it cannot be kept, as on a full disk."""

from __future__ import annotations

import errno
import os
import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest
import redis

from served import connected, serving, serving_here

FULL = "CREATE TRIGGER full BEFORE INSERT ON {0} BEGIN SELECT RAISE(ABORT, 'it is full'); END"
CANNOT = "cannot record which consumer has which message: .* error=it is full"


@pytest.mark.parametrize("table", ["pending", "consumer"])
def test_messages_whose_consumer_cannot_be_kept_are_delivered_later(
    tmp_path: Path, table: str
) -> None:
    with serving(tmp_path) as (port, _), connected(port) as client:
        ids = [client.xadd("orders", {"n": number}) for number in range(4)]
        client.xgroup_create("orders", "g", "0")
        with sqlite3.connect(tmp_path / ".quire-server" / "groups.sqlite") as database:
            database.execute(FULL.format(table))
        for _ in range(2):
            with pytest.raises(redis.ResponseError, match=CANNOT):
                client.xreadgroup("g", "c", {"orders": ">"}, count=3)
            assert client.xpending("orders", "g")["pending"] == 0
        database.execute("DROP TRIGGER full")
        database.close()
        found = client.xreadgroup("g", "d", {"orders": ">"}, count=3)[0][1]
        assert found == [(it, {b"n": b"%d" % n}) for n, it in enumerate(ids[:3])]
        assert client.xack("orders", "g", *ids) == 3


def test_an_append_id_that_cannot_be_noted_can_be_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = list[bytes]()

    def fails(_file: int, data: bytes, _at: int) -> int:
        writes.append(data)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def append(client: Any, number: int) -> int:  # noqa: ANN401
        words = ("ID", b"client of 16 byt", number, "VALUES", b"message %d" % number)
        return int(client.execute_command("QUIRE.APPEND", "orders", "CREATE", *words))

    with serving_here(tmp_path) as port, connected(port) as client:
        first = append(client, 1)
        with monkeypatch.context() as full:
            full.setattr(os, "pwrite", fails)
            with pytest.raises(redis.ResponseError, match="cannot record the append id"):
                append(client, 2)
        assert append(client, 2) == first + 1
        write = os.pwrite

        def fails_afterwards(file: int, data: bytes, at: int) -> int:
            *_, last, _ = struct.unpack_from("<16s16sQQqqI", data)
            return write(file, data, at) if last < 0 else fails(file, data, at)

        with monkeypatch.context() as full:
            full.setattr(os, "pwrite", fails_afterwards)
            assert append(client, 3) == append(client, 3) == first + 2
    assert len(writes) == 2
    with serving_here(tmp_path) as port, connected(port) as client:
        assert append(client, 3) == first + 2  # looked for
        assert client.xlen("orders") == 3
