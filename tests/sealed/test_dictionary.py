"""Dictionaries for the compression of messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import Cli
from queues import DAY_MS, START_MS
from quire import maintenance
from quire.errors import (
    DictionaryError,
    EncryptionError,
    ReplicationError,
    UnsupportedError,
)
from quire.maintenance import compress_dictionary
from quire.replication.aside import put_aside
from quire.sealed.key_file import dictionary_file
from quire.sealed.key_ring import structure_only
from quire.sealed.needed_files import CURRENT
from reference import read_queue
from replicas import replicate

COUNT = 600
KEY = bytes(range(32))
open_any: Any = quire.open


def quotes(path: Path, start: int = 0, count: int = COUNT, **options: Any) -> int:  # noqa: ANN401
    """Append short messages, and return how many bytes are stored for the last one."""
    opened = open_any(path, compression="zstd", **options)
    with opened as queue, queue.appender() as appender:
        for number in range(start, start + count):
            appender.write_map(
                {"symbol": "EURUSD", "venue": "LMAX", "bid": number, "ask": number + 1}
            )
    return len(read_queue(path)[-1][1])


def asks(path: Path, **options: Any) -> list[object]:  # noqa: ANN401
    with open_any(path, read_only=True, **options) as queue, queue.tailer() as tailer:
        return [(tailer.read_map() or {}).get("ask") for _ in range(queue.entry_count)]


def test_short_messages_get_shorter(tmp_path: Path) -> None:
    path = tmp_path / "q"
    before = quotes(path)
    made = compress_dictionary(path, size=4096)
    assert made.samples == COUNT
    assert quotes(path, COUNT, 5) < before
    compress_dictionary(path, samples=300, size=2048)  # older messages keep their dictionary
    quotes(path, COUNT + 5, 5)
    assert asks(path) == [*range(1, COUNT + 11)]
    assert quire.verify(path).ok
    with quire.open(path) as queue:
        assert "EURUSD" in queue.dump()


def test_copies_have_them(tmp_path: Path) -> None:
    quotes(tmp_path / "q")
    compress_dictionary(tmp_path / "q", size=4096)
    quotes(tmp_path / "q", COUNT, 3)
    quire.copy_queue(tmp_path / "q", tmp_path / "copy")
    assert asks(tmp_path / "copy") == [*range(1, COUNT + 4)]


def follow(source: Path, sink: Path) -> None:
    with structure_only():  # neither side has the key
        replicate(source, sink)


def payloads(path: Path) -> list[bytes]:
    with open_any(path, read_only=True) as queue, queue.tailer() as tailer:
        return [bytes(it) for it in tailer.payloads()]


@pytest.mark.parametrize("damage", ["missing", "flipped", "link", "long"])
def test_a_damaged_dictionary_is_not_used(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "q"
    quotes(path)
    made = compress_dictionary(path, size=4096)
    quotes(path, COUNT, 3)
    file = path / f"{made.number:07x}.dictionary.quire"
    content = file.read_bytes()
    file.unlink()
    if damage == "flipped":
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        file.symlink_to(tmp_path / "elsewhere")
    elif damage == "long":
        file.write_bytes(bytes((1 << 20) + 1))
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert queue.last_index is not None
        assert tailer.move_to_index(queue.last_index)
        with pytest.raises(DictionaryError, match=file.name):
            tailer.read()
        tailer.to_start()
        assert tailer.read_map() == {"symbol": "EURUSD", "venue": "LMAX", "bid": 0, "ask": 1}
    with pytest.raises(DictionaryError, match=file.name):
        quire.open(path, compression="zstd")
    assert quire.verify(path).messages == COUNT + 3
    file.unlink(missing_ok=True)
    file.write_bytes(content)
    current = (path / CURRENT).read_bytes()
    for damaged in (b"", b"none", b"0" * 1000, b"0000001"):
        (path / CURRENT).write_bytes(damaged)
        with pytest.raises(DictionaryError):
            quire.open(path, compression="zstd")
    (path / CURRENT).write_bytes(current)
    assert asks(path)[-1] == COUNT + 3


def test_an_encrypted_queue_has_an_encrypted_dictionary(tmp_path: Path) -> None:
    path, plain = tmp_path / "q", tmp_path / "plain"
    before = quotes(path, key=KEY)
    with pytest.raises(EncryptionError, match="the queue is encrypted"):
        compress_dictionary(path, size=4096)
    made = compress_dictionary(path, size=4096, key=KEY)
    assert quotes(path, COUNT, 5, key=KEY) < before
    assert asks(path, key=KEY) == [*range(1, COUNT + 6)]
    quire.copy_queue(path, tmp_path / "copy")
    assert asks(tmp_path / "copy", key=KEY) == [*range(1, COUNT + 6)]
    words = (b"EURUSD", b"LMAX", b"symbol")
    files = [it for it in tmp_path.rglob("*") if it.is_file()]
    assert not [it.name for it in files if any(word in it.read_bytes() for word in words)]

    quotes(plain)
    shown = compress_dictionary(plain, size=2048)
    assert shown.number != made.number
    content = (plain / dictionary_file(shown.number)).read_bytes()
    assert any(word in content for word in words)  # the test would see them
    # Nobody without the key makes a dictionary for it, or moves one there from another queue.
    for foreign in (content, (path / dictionary_file(made.number)).read_bytes()):
        (path / dictionary_file(shown.number)).write_bytes(foreign)
        (path / CURRENT).write_text(f"{shown.number:07x}")
        with pytest.raises(DictionaryError, match="missing or damaged"):
            quire.open(path, key=KEY, compression="zstd")
        with pytest.raises(DictionaryError, match="missing or damaged"):
            quire.open(path, key=KEY, allow_plain=True, compression="zstd")
    assert asks(path, key=KEY) == [*range(1, COUNT + 6)]


def test_a_dictionary_from_before_is_encrypted_with_what_follows(tmp_path: Path) -> None:
    path = tmp_path / "q"
    quotes(path)
    made = compress_dictionary(path, size=4096)
    quotes(path, COUNT, 5)
    plain = (path / dictionary_file(made.number)).read_bytes()
    quotes(path, COUNT + 5, 5, key=KEY, allow_plain=True)
    assert asks(path, key=KEY, allow_plain=True) == [*range(1, COUNT + 11)]
    (path / dictionary_file(made.number)).write_bytes(plain)
    with pytest.raises(DictionaryError, match="missing or damaged"):
        asks(path, key=KEY, allow_plain=True)


@pytest.mark.parametrize("key", [None, KEY])
def test_a_replica_has_what_its_messages_need(tmp_path: Path, key: bytes | None) -> None:
    source, sink = tmp_path / "q", tmp_path / "sink"
    options: dict[str, Any] = {} if key is None else {"key": key}
    quotes(source, **options)
    compress_dictionary(source, size=4096, key=key)
    quotes(source, COUNT, 3, **options)
    follow(source, sink)
    assert asks(sink, **options) == asks(source, **options) == [*range(1, COUNT + 4)]
    compress_dictionary(source, samples=300, size=2048, key=key)
    quotes(source, COUNT + 3, 3, **options)
    follow(source, sink)
    assert asks(sink, **options) == asks(source, **options)


def test_a_replica_keeps_the_wrapped_keys_of_its_own_queue(tmp_path: Path) -> None:
    source, sink = tmp_path / "q", tmp_path / "sink"
    quotes(source, count=3, key=KEY)
    follow(source, sink)
    quotes(tmp_path / "other", count=3, key=KEY)
    others = (tmp_path / "other" / "keys.quire").read_bytes()
    own = (sink / "keys.quire").read_bytes()
    (sink / "keys.quire").write_bytes(others)
    with pytest.raises(ReplicationError, match="the wrapped keys of another queue"):
        follow(source, sink)
    assert (sink / "keys.quire").read_bytes() == others
    (sink / "keys.quire").write_bytes(own)
    follow(source, sink)
    assert asks(sink, key=KEY) == [1, 2, 3]


def test_cycles_that_are_moved_take_them_along(tmp_path: Path) -> None:
    path, dest = tmp_path / "q", tmp_path / "moved"
    clock = quire.ManualClock(START_MS)
    quotes(path, clock=clock, key=KEY)
    compress_dictionary(path, size=4096, key=KEY)
    clock.now_ms += DAY_MS
    quotes(path, COUNT, 3, clock=clock, key=KEY)
    clock.now_ms += DAY_MS
    quotes(path, COUNT + 3, 3, clock=clock, key=KEY)
    quire.prune(path, max_cycles=1, action="move", dest=dest)
    assert asks(path, key=KEY) == [*range(COUNT + 4, COUNT + 7)]
    assert asks(dest, key=KEY) == [*range(1, COUNT + 4)]


def test_what_is_made_of_a_queue_is_read(tmp_path: Path) -> None:
    path = tmp_path / "q"
    quotes(path)
    compress_dictionary(path, size=4096)
    quotes(path, COUNT, 4)
    expected = [*range(1, COUNT + 5)]
    maintenance.split_queue(path, tmp_path / "parts", lambda it: f"q{it.to_dict()['ask'] % 2}")
    parts = sorted((tmp_path / "parts").iterdir())
    maintenance.merge_queues(parts, tmp_path / "joined", lambda it: it.to_dict()["ask"])
    assert asks(tmp_path / "joined") == expected
    quire.convert(path, tmp_path / "vanilla", into="vanilla")
    assert payloads(tmp_path / "vanilla") == payloads(path)
    with quire.open(path, read_only=True) as queue:
        assert queue.last_index is not None
        index = queue.last_index - 1
    done = put_aside(path, index)
    assert asks(path) == expected[:-2]
    assert asks(done.folder)[-2:] == expected[-2:]


def test_an_encrypted_message_without_wrapped_keys_is_none_of_bytes(tmp_path: Path) -> None:
    path = tmp_path / "q"
    quotes(path, count=3, key=KEY)
    (path / "keys.quire").unlink()
    with pytest.raises(EncryptionError, match="had no wrapped keys"):
        asks(path)


def test_what_is_refused(tmp_path: Path) -> None:
    quotes(tmp_path / "q", 0, 2)
    with quire.open(tmp_path / "v", format="vanilla") as vanilla:
        vanilla.appender().write_bytes(b"raw")
    with pytest.raises(UnsupportedError):
        compress_dictionary(tmp_path / "v")
    wrongs: list[dict[str, Any]] = [{"samples": 7}, {"size": 255}, {"size": (1 << 20) + 1}]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            compress_dictionary(tmp_path / "q", **wrong)
    with pytest.raises(ValueError, match="no dictionary can be trained"):
        compress_dictionary(tmp_path / "q")
    assert not [*(tmp_path / "q").glob("*dictionary*")]


def test_the_command_line(cli: Cli, tmp_path: Path) -> None:
    quotes(tmp_path / "q")
    assert "trained on 600 messages" in cli.ok("compress-dictionary", tmp_path / "q").out
