"""Quire's own commands, byte for byte, and appends that are sent again."""

from __future__ import annotations

import re
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
import redis

import quire
from quire.remote import RemoteQueue
from served import command, connected, serving, talk

CLIENT = bytes(range(1, 17))
DAY_MS = 86_400_000


def first_index(root: Path, name: str) -> int:
    with quire.open(root / name, read_only=True) as queue:
        assert queue.first_index is not None
        return queue.first_index


@pytest.mark.parametrize(
    ("of", "before"), [("Redis' commands", []), ("Quire's own commands", [b"zero"])]
)
def test_the_vectors_of_the_page(tmp_path: Path, of: str, before: list[bytes]) -> None:
    """The bytes in docs/remote.md, with the indexes of today."""
    root = tmp_path / "queues"
    page = Path(__file__, "..", "..", "..", "docs", "remote.md").resolve().read_text()
    with serving(root) as (port, _):
        with connected(port) as client:
            client.execute_command("QUIRE.APPEND", "today", "CREATE", "VALUES", b"zero")
            for message in before:
                client.execute_command("QUIRE.APPEND", "orders", "CREATE", "VALUES", message)
        base = first_index(root, "today")
        block = page.partition(f"<!-- vectors of {of} -->")[2].partition("| Command")[0]
        said = [line for line in block.splitlines() if line.startswith(("> *", "< "))]
        assert len(said) >= 8
        for asked, answered in zip(said[::2], said[1::2], strict=True):
            wanted, expected = (
                re.sub(
                    b"8926230531276[89]|8926230531277[0-9]",
                    lambda found: b"%d" % (base + int(found[0]) - 89262305312768),
                    raw(line),
                )
                for line in (asked, answered)
            )
            assert talk(port, wanted).removesuffix(b"+OK\r\n") == expected, asked  # its QUIT


def raw(line: str) -> bytes:
    return line[2:].encode().decode("unicode_escape").encode("latin-1")


def test_each_message_is_appended_once(tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, _), connected(port) as client:
        client.execute_command("QUIRE.OPEN", "orders", "CREATE")

        def append(number: int, *values: bytes) -> int:
            found: int = client.execute_command(
                *("QUIRE.APPEND", "orders", "ID", CLIENT, number, "VALUES", *values)
            )
            return found

        last = append(1, b"one", b"two")
        assert append(1, b"one", b"two") == last
        assert append(2, b"two", b"three") == last + 1  # the part that is new
        assert append(1, b"one") is None  # it is there; where, is not known any more
        with pytest.raises(redis.ResponseError, match="GAP"):
            append(9, b"nine")
        other = client.execute_command(
            *("QUIRE.APPEND", "orders", "ID", bytes(15) + b"\1", 1, "VALUES", b"one")
        )
        assert other == last + 2
        assert client.xlen("orders") == 4


def test_metadata_and_seeks(tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, _), connected(port) as client:
        ask = client.execute_command
        ask("QUIRE.OPEN", "orders", "CREATE")
        first = ask("QUIRE.APPEND", "orders", "VALUES", b"one")
        ask("QUIRE.APPEND", "orders", "METADATA", "VALUES", b"note")
        ask("QUIRE.APPEND", "orders", "VALUES", b"two")
        assert ask("QUIRE.READ", "orders", "FROM", 0) == [
            *(first + 2, [[first, 0, b"one"], [first + 1, 0, b"two"]])
        ]
        assert ask("QUIRE.READ", "orders", "FROM", first, "METADATA") == [
            *(first + 2, [[first, 0, b"one"], [first + 1, 1, b"note"], [first + 1, 0, b"two"]])
        ]
        assert ask("QUIRE.SEEK", "orders", "INDEX", 0) == first
        assert ask("QUIRE.SEEK", "orders", "INDEX", first + 50) == first + 2
        assert ask("QUIRE.READ", "orders", "FROM", 0, "TO", first + 1, "PACKED") == [
            *(first + 1, struct.pack("<q", first), struct.pack("<2i", 0, 3), b"one")
        ]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["QUIRE.APPEND", "orders", "PACKED", b"123", b"x"], "INVALID"),
        (["QUIRE.APPEND", "orders", "PACKED", struct.pack("<2i", 0, 9), b"x"], "INVALID"),
        (["QUIRE.APPEND", "orders", "PACKED", struct.pack("<3i", 0, -4, 1), b"x"], "INVALID"),
        (["QUIRE.APPEND", "orders", "PACKED", struct.pack("<3i", 0, 7, 1), b"x"], "INVALID"),
        (["QUIRE.APPEND", "orders", "PACKED", struct.pack("<2i", 0, 0), b""], "INVALID"),
        (["QUIRE.APPEND", "orders", "VALUES", b""], "INVALID"),
        (["QUIRE.APPEND", "orders", "ID", b"short", "1", "VALUES", b"x"], "invalid client"),
        (["QUIRE.APPEND", "orders", "ID", CLIENT, "0", "VALUES", b"x"], "not an integer"),
        (["QUIRE.APPEND", "nothing", "VALUES", b"x"], "NOTAQUEUE"),
        (["QUIRE.APPEND", "../orders", "VALUES", b"x"], "invalid name"),
        (["QUIRE.OPEN", "new", "CREATE", "durability", "each"], "UNSUPPORTED"),
        (["QUIRE.OPEN", "new", "CREATE", "roll_cycle", "NONE"], "cannot open"),
        (["QUIRE.READ", "orders", "FROM", "-1"], "not an integer"),
        (["QUIRE.READ", "orders", "COUNT", "1"], "syntax error"),
        (["QUIRE.READ", "nothing", "FROM", "0"], "NOTAQUEUE"),
        (["QUIRE.SEEK", "orders", "TIME", "1", "FIELD", "none"], "INVALID"),
        (["QUIRE.TAILER", "COMMIT", "orders", "risk", "1"], "CLOSED"),
        (["QUIRE.TAILER", "OPEN", "orders", "a\nb"], "INVALID|UNSUPPORTED|ERR"),
        (["QUIRE.GROUP", "READ", "77"], "GROUP"),
        (["QUIRE.GROUP", "JOIN", "orders", "../x", "c"], "INVALID|ERR|GROUP"),
        (["QUIRE.GROUP", "NONE", "orders", "billing"], "syntax error"),
    ],
)
def test_bad_requests(shared: Any, words: list[Any], error: str) -> None:  # noqa: ANN401
    with pytest.raises(redis.ResponseError, match=error):
        shared.execute_command(*words)
    assert shared.xlen("orders") == 1


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401
    folder = tmp_path_factory.mktemp("served")
    with serving(folder / "queues") as (port, _), connected(port) as client:
        client.execute_command("QUIRE.APPEND", "orders", "CREATE", "VALUES", b"\xb9\x01n\xe11")
        yield client


def asked(number: int) -> bytes:
    return command(
        *("QUIRE.APPEND", "orders", "ID", CLIENT, str(number), "VALUES", b"message %d" % number)
    )


@pytest.mark.parametrize("answers", [0, 1, 300])
def test_a_server_that_is_killed_in_the_middle_of_pipelined_appends(
    tmp_path: Path, answers: int
) -> None:
    """What was answered is there; sent again to the next server, each is there once, in order."""
    root = tmp_path / "queues"
    with serving(root) as (port, process):
        with connected(port) as client:
            client.execute_command("QUIRE.OPEN", "orders", "CREATE")
        with socket.create_connection(("127.0.0.1", port)) as raw_socket:
            raw_socket.sendall(b"".join(map(asked, range(1, 1001))))
            answered = b""
            while answered.count(b"\r\n") < answers:
                answered += raw_socket.recv(1 << 16)
            process.kill()
            process.wait()
    with quire.open(root / "orders") as queue:
        kept = queue.tailer().read_many(2000)
    assert kept == [b"message %d" % number for number in range(1, len(kept) + 1)]
    assert len(kept) >= answered.count(b"\r\n")
    first_unanswered = 1 + answered.count(b"\r\n")
    with serving(root) as (port, _):
        again = b"".join(map(asked, range(first_unanswered, 1001)))
        assert b"-" not in talk(port, again).replace(b"$-1", b"")
    with quire.open(root / "orders") as queue:
        found = queue.tailer().read_many(2000)
    assert found == [b"message %d" % number for number in range(1, 1001)]


def test_an_append_whose_end_was_not_noted(tmp_path: Path) -> None:
    """Died after a part was appended: the retry looks for it behind where the queue ended."""
    root = tmp_path / "queues"
    with serving(root) as (port, process), connected(port) as client:
        client.execute_command("QUIRE.OPEN", "orders", "CREATE")
        assert talk(port, asked(1)).startswith(b":")
        process.kill()
        process.wait()
    with quire.open(root / "orders") as queue, queue.appender() as appender:
        end = (queue.last_index or 0) + 1
        appender.write_many([b"of another", b"message 2", b"of another", b"message 3"])
    from quire.server.append_ids import Appended, AppendIds

    ids = AppendIds(root, ".quire-server")
    known = ids.of(CLIENT, "orders")
    ids._store(CLIENT, "orders", known.place, (2, 5, end, -1))  # pyright: ignore[reportPrivateUsage]
    ids.close()
    assert isinstance(known, Appended)
    with serving(root) as (port, _):
        values = [b"message %d" % number for number in (2, 3, 4)]
        found = talk(port, command("QUIRE.APPEND", "orders", "ID", CLIENT, "2", "VALUES", *values))
        assert found == b":%d\r\n" % (end + 4)
    with quire.open(root / "orders") as queue:
        kept = queue.tailer().read_many(100)
    assert kept == [
        *(b"message 1", b"of another", b"message 2", b"of another", b"message 3", b"message 4")
    ]


def test_a_handle_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with serving(root) as (port, process):
        queue: Any = quire.open(f"quire://127.0.0.1:{port}/orders", timeout_s=60)
        assert isinstance(queue, RemoteQueue)
        appender, tailer, named = queue.appender(), queue.tailer(), queue.tailer("risk")
        appender.write_many([b"one", b"two"])
        assert tailer.read_bytes() == named.read_bytes() == b"one"
        named.commit()
        process.kill()
        process.wait()
    with serving(root, "--listen", f"127.0.0.1:{port}"):
        appender.write_many([b"three", b"four"])
        assert [it.data for it in tailer] == [b"two", b"three", b"four"]
        assert named.read_many(10) == [b"two", b"three", b"four"]
        assert queue.entry_count == 4
        queue.close()


def append_until_refused(appender: quire.Appender) -> None:
    while True:
        appender.write_bytes(b"two")


def test_a_queue_that_is_removed_underneath(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with serving(root) as (port, _):
        queue: Any = quire.open(f"quire://127.0.0.1:{port}/orders")
        appender, tailer = queue.appender(), queue.tailer()
        appender.write_bytes(b"one")
        assert tailer.read_bytes() == b"one"
        (root / "orders").rename(root / "others")
        with pytest.raises(quire.QuireError):  # the server looks now and then
            append_until_refused(appender)
        with quire.open(f"quire://127.0.0.1:{port}/others") as renamed:
            assert renamed.tailer().read_bytes() == b"one"
            assert renamed.last_index == appender.last_index_appended


def test_tokens(tmp_path: Path) -> None:
    from quire.server import TokenFile

    file = TokenFile(tmp_path / "tokens")
    token = file.add("writer", {"read": ("*",), "append": ("orders",), "create": ("orders",)})
    reader = file.add("reader", {"read": ("orders",)})
    with serving(tmp_path / "queues", "--tokens", tmp_path / "tokens") as (port, _):
        url = f"quire://127.0.0.1:{port}/orders"
        with pytest.raises(quire.errors.RefusedError, match="NOAUTH"):
            quire.open(url)
        with pytest.raises(quire.errors.RefusedError, match="WRONGPASS"):
            quire.open(url, token="wrong")  # noqa: S106
        with quire.open(url, token=token) as queue, queue.tailer() as tailer:
            with queue.appender() as appender:
                appender.write_bytes(b"one")
                with quire.open(url, token=reader, create=False) as other:
                    assert other.tailer().read_bytes() == b"one"
                    with pytest.raises(quire.errors.RefusedError, match="NOPERM"):
                        other.appender().write_bytes(b"two")
                    with pytest.raises(quire.errors.RefusedError, match="NOPERM"):
                        other.group("g").delete()
                file.revoke("writer")
                with pytest.raises(quire.errors.RefusedError, match=r"NOAUTH|WRONGPASS"):
                    append_until_refused(appender)
            with pytest.raises(quire.errors.RefusedError, match=r"NOAUTH|WRONGPASS"):
                tailer.read_bytes()


def test_counts_of_cycles_follow_what_happens_to_files(tmp_path: Path) -> None:
    root, clock = tmp_path / "queues", quire.ManualClock(DAY_MS)
    options: dict[str, Any] = {"roll_cycle": "TEST4_DAILY", "clock": clock}
    open_any: Any = quire.open
    with (
        serving(root) as (port, _),
        connected(port) as client,
        open_any(root / "orders", **options) as queue,
        queue.appender() as appender,
    ):

        def counts() -> list[int]:
            return [*memoryview(client.execute_command("QUIRE.CYCLES", "orders")[1]).cast("q")]

        def append(count: int) -> None:
            appender.write_many([b"x"] * count)

        append(3)
        assert counts() == [3]
        append(1)
        for count in (2, 5):
            clock.now_ms += DAY_MS
            append(count)
        assert counts() == counts() == [4, 2, 5]
        append(1)
        other = tmp_path / "other"
        with quire.open(other, roll_cycle="TEST4_DAILY", clock=quire.ManualClock(DAY_MS)) as made:
            made.appender().write_bytes(b"one")
        files = sorted((root / "orders").glob("*.cq4"))
        (first,) = other.glob("*.cq4")
        first.replace(files[0])
        assert counts() == [1, 2, 6]
        files[0].unlink()
        assert counts() == [2, 6]
