"""Encrypted queues: what the files show, who reads them, and what is noticed."""

from __future__ import annotations

import base64
import json
import os
import pickle
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import pytest

import quire
from cli_runs import Cli
from parameters import some
from queues import START_MS
from quire._native import is_encrypted
from quire.errors import (
    EncryptionError,
    ForgedMessageError,
    PlainMessageError,
    ReadOnlyError,
    UnsupportedError,
)
from quire.maintenance import rewrap, seal
from quire.sealed.key_file import KEYS
from reference import read_queue

KEY: Final = bytes(range(32))
OTHER: Final = bytes(range(1, 33))
WORDS: Final = (b"attack at dawn", b"some metadata", b"orderNumber", b"plainTopic", b"buyTheDip")
DAY_MS: Final = 86_400_000
open_any: Any = partial(quire.open, block_bytes=1 << 21)  # files that tests read whole


class Said:
    """The interface of a method writer."""

    def buyTheDip(self, text: str) -> None: ...  # noqa: N802 - a word to look for


def texts(path: Path, **options: Any) -> list[str | None]:  # noqa: ANN401
    with open_any(path, read_only=True, **options) as queue, queue.tailer() as tailer:
        return [tailer.read_text() for _ in range(queue.entry_count)]


def fill(path: Path, count: int = 5, key: Any = KEY, **options: Any) -> list[int]:  # noqa: ANN401
    with open_any(path, key=key, **options) as queue, queue.appender() as appender:
        return [appender.write_text(f"attack at dawn {it}") for it in range(count)]


def plain_words(path: Path) -> list[tuple[str, bytes]]:
    files = [it for it in path.rglob("*") if it.is_file()]
    assert files
    contents = [(it.name, it.read_bytes()) for it in files]
    return [(name, word) for name, content in contents for word in WORDS if word in content]


def write_bytes(appender: quire.JournalAppender) -> object:
    return appender.write_bytes(b"attack at dawn")


def write_text(appender: quire.JournalAppender) -> object:
    return appender.write_text("attack at dawn")


def write_map(appender: quire.JournalAppender) -> object:
    return appender.write_map({"orderNumber": "attack at dawn"})


def write_many(appender: quire.JournalAppender) -> object:
    return appender.write_many([b"attack at dawn" for _ in range(300)])


def write_texts(appender: quire.JournalAppender) -> object:
    import pyarrow as pa

    return appender.write_batch(pa.array(["attack at dawn"] * 200))


def write_document(appender: quire.JournalAppender) -> object:
    with appender.writing_document() as document:
        document.write("orderNumber", "attack at dawn")
    return None


def write_metadata(appender: quire.JournalAppender) -> object:
    appender.write_text("attack at dawn")
    with appender.writing_document(metadata=True) as document:
        document.write("orderNumber", "some metadata")
    return None


def call_method(appender: quire.JournalAppender) -> object:
    appender.method_writer(Said).buyTheDip("attack at dawn")
    return None


def write_large(appender: quire.JournalAppender) -> object:
    return appender.write_bytes(b"attack at dawn" * 20_000)


WAYS: Final[list[Callable[[quire.JournalAppender], object]]] = [
    *(write_bytes, write_text, write_map, write_many, write_texts, write_document, write_metadata),
    *(call_method, write_large),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda it: it.__name__)
def test_no_file_shows_a_plain_word(
    tmp_path: Path, way: Callable[[quire.JournalAppender], object]
) -> None:
    plain, vault = tmp_path / "plain", tmp_path / "vault"
    for path, options in ((plain, {}), (vault, {"key": KEY})):
        opened = open_any(path, time_index=True, metrics=True, integrity=True, **options)
        with opened as queue, queue.appender() as appender, queue.tailer("risk") as tailer:
            way(appender)
            appender.write_bytes(b"\x01plain")
            assert tailer.read_bytes() is not None
    assert plain_words(plain)  # the test would see them
    assert plain_words(vault) == []
    with quire.open(plain) as left, quire.open(vault, key=KEY) as right:
        assert _payloads(left) == _payloads(right)


def test_all_ways_of_reading(tmp_path: Path) -> None:
    vault = tmp_path / "q"
    with quire.open(vault, key=KEY) as queue, queue.appender() as appender:
        first = appender.write_map({"n": 1, "text": "attack at dawn"})
        appender.write_map({"n": 2, "text": "some more"})
        with queue.tailer() as tailer:
            assert tailer.read_map() == {"n": 1, "text": "attack at dawn"}
            with tailer.reading_document() as document:
                assert document.is_present
                assert document.map()["n"] == 2
            tailer.to_start()
            assert tailer.read_many(5) == [*_payloads(queue)]
            tailer.to_end()
            tailer.direction = "backward"
            found = tailer.read()
            assert found is not None
            assert b"some more" in bytes(found.data)
            tailer.direction = "forward"
            assert tailer.move_to_index(first)
            batch = tailer.read_batch()
            payloads = cast("list[bytes | None]", batch["payload"].to_pylist())
            assert [b"attack" in (it or b"") for it in payloads] == [True, False]


def _payloads(queue: quire.JournalQueue) -> list[bytes]:
    with queue.tailer() as tailer:
        return [*tailer.payloads()]


def test_without_a_key(tmp_path: Path) -> None:
    vault = tmp_path / "q"
    indexes = fill(vault)
    before = {it.name: (it.read_bytes(), it.stat().st_mtime_ns) for it in vault.iterdir()}
    for options in ({}, {"read_only": True}, {"create": False}):
        with pytest.raises(EncryptionError, match="the queue is encrypted"):
            open_any(vault, **options)
    for key, reason in ((OTHER, "none of the keys opens the queue"), (b"short", "32 bytes")):
        with pytest.raises((EncryptionError, ValueError), match=reason):
            quire.open(vault, key=key)
    with pytest.raises(TypeError, match=r"32 bytes or a quire\.KeyRing"):
        open_any(vault, key="text")
    assert before == {it.name: (it.read_bytes(), it.stat().st_mtime_ns) for it in vault.iterdir()}
    assert quire.verify(vault).ok
    assert quire.verify(vault).messages == len(indexes)
    assert texts(vault, key=KEY) == [f"attack at dawn {it}" for it in range(5)]


def test_what_works_without_a_key(tmp_path: Path) -> None:
    vault, copied = tmp_path / "q", tmp_path / "copy"
    clock = quire.ManualClock(START_MS)
    for day in range(4):
        clock.now_ms = START_MS + day * DAY_MS
        fill(vault, 3, clock=clock)
    assert quire.copy_queue(vault, copied).messages == 12
    assert texts(copied, key=KEY)[:3] == [f"attack at dawn {it}" for it in range(3)]
    assert seal(vault) is not None
    assert quire.verify(vault, seals=True).ok
    quire.prune(vault, max_cycles=3, action="compress")
    quire.prune(vault, max_cycles=2)
    assert len(texts(vault, key=KEY)) == 6
    assert quire.verify(vault, seals=True).ok
    assert plain_words(vault) == plain_words(copied) == []


def test_readers_without_a_key_get_nothing(tmp_path: Path) -> None:
    from quire.sealed.key_ring import structure_only

    vault = tmp_path / "q"
    fill(vault)
    with structure_only(), quire.open(vault) as queue, queue.tailer() as tailer:
        for read in (tailer.read, tailer.read_bytes, tailer.read_text, tailer.read_map):
            with pytest.raises(EncryptionError):
                read()
        with pytest.raises(EncryptionError):
            tailer.read_many(3)
        with pytest.raises(EncryptionError):
            queue.appender().write_text("attack at dawn")
    assert plain_words(vault) == []


def test_rotation_and_rewrapping(tmp_path: Path) -> None:
    vault = tmp_path / "q"
    old, new = secrets.token_bytes(32), secrets.token_bytes(32)
    fill(vault, 2, quire.KeyRing({"2026": old}, current="2026"))
    both = quire.KeyRing({"2026": old, "2027": new}, current="2027")
    fill(vault, 2, both)
    fill(vault, 1, both)
    assert len(json.loads((vault / KEYS).read_bytes())["keys"]) == 2
    assert len(texts(vault, key=both)) == 5
    with pytest.raises(EncryptionError, match="none of the keys opens the data key of a message"):
        texts(vault, key=quire.KeyRing({"2027": new}, current="2027"))
    with pytest.raises(EncryptionError, match="wrapped by another key"):
        rewrap(vault, key=old, new_key=KEY)
    files = {it.name: it.read_bytes() for it in vault.glob("*.cq4")}
    assert rewrap(vault, key=both, new_key=quire.KeyRing({"2028": KEY}, current="2028")) == 2
    assert files == {it.name: it.read_bytes() for it in vault.glob("*.cq4")}
    assert len(texts(vault, key=KEY)) == 5
    for lost in (old, new):
        with pytest.raises(EncryptionError, match="none of the keys"):
            quire.open(vault, key=lost)


PAST: Final = datetime(2026, 1, 1, tzinfo=UTC)
FUTURE: Final = datetime(9000, 1, 1, tzinfo=UTC)


def test_an_expired_key_reads_and_begins_nothing(tmp_path: Path) -> None:
    vault = tmp_path / "q"
    other = secrets.token_bytes(32)
    expired = quire.KeyRing({"2026": KEY}, current="2026", expires=PAST)
    with pytest.raises(EncryptionError, match=r"the key has expired: name=2026 expired=2026-01-01"):
        quire.open(vault, key=expired)
    assert not vault.exists()
    fill(vault, 2, quire.KeyRing({"2026": KEY}, current="2026", expires=FUTURE))
    before = {it.name: it.read_bytes() for it in vault.iterdir()}
    assert len(texts(vault, key=expired)) == 2
    with quire.open(vault, key=expired) as queue, queue.tailer("named") as tailer:
        assert len([*iter(tailer.read_text, None)]) == 2
        with pytest.raises(EncryptionError, match=r"has expired: expired=2026-01-01T00:00:00Z"):
            queue.appender().write_text("attack at dawn")
    with pytest.raises(EncryptionError, match="the key has expired"):
        rewrap(vault, key=KEY, new_key=quire.KeyRing({"a": other}, current="a", expires=PAST))
    assert before[KEYS] == (vault / KEYS).read_bytes()
    fill(vault, 1, quire.KeyRing({"2026": KEY, "2027": other}, current="2027", expires=FUTURE))
    assert len(texts(vault, key=quire.KeyRing({"a": KEY, "b": other}, current="b"))) == 3
    assert quire.verify(vault).ok


def test_each_way_to_a_key_takes_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(KEY.hex())
    monkeypatch.setenv("QUIRE_TEST_KEY", KEY.hex())
    made = [
        quire.KeyRing.from_file(tmp_path / "key", expires=PAST),
        quire.KeyRing.from_environment("QUIRE_TEST_KEY", expires=PAST),
        quire.KeyRing.from_command(["echo", KEY.hex()], expires=PAST),
        quire.KeyRing.from_hook(lambda _: KEY, current="a", expires=PAST),
    ]
    for ring in made:
        with pytest.raises(EncryptionError, match="the key has expired"):
            quire.open(tmp_path / "q", key=ring)
    with pytest.raises(ValueError, match="a time without a time zone"):
        quire.KeyRing({"a": KEY}, current="a", expires=PAST.replace(tzinfo=None))


@pytest.mark.parametrize("way", ["raw", "hex", "base64", "newline"])
def test_keys_from_files_the_environment_and_commands(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, vault = tmp_path / "key", tmp_path / "q"
    written = {
        "raw": KEY,
        "hex": KEY.hex().encode(),
        "base64": base64.b64encode(KEY),
        "newline": KEY.hex().upper().encode() + b"\r\n",
    }[way]
    file.write_bytes(written)
    fill(vault, 1, quire.KeyRing.from_file(file))
    monkeypatch.setenv("THE_KEY", base64.b64encode(KEY).decode())
    command = [sys.executable, "-c", f"print({KEY.hex()!r})"]
    for ring in (
        quire.KeyRing.from_environment("THE_KEY"),
        quire.KeyRing.from_command(command),
        KEY,
    ):
        assert texts(vault, key=ring) == ["attack at dawn 0"]
    for bad in (b"", b"x" * 31, b"x" * 33, KEY.hex().encode() + b"00", b"x" * 10_000):
        file.write_bytes(bad)
        with pytest.raises(EncryptionError, match="not a key of 32 bytes"):
            quire.KeyRing.from_file(file)
    with pytest.raises(EncryptionError, match="the environment has no key"):
        quire.KeyRing.from_environment("NO_KEY_HERE")
    with pytest.raises(EncryptionError, match="no key from a command"):
        quire.KeyRing.from_command([sys.executable, "-c", "raise SystemExit(1)"])


def test_keys_from_a_hook(tmp_path: Path) -> None:
    vault, asked = tmp_path / "q", list[str]()
    service = {"2026": KEY, "2027": OTHER}

    def fetch(name: str) -> bytes:
        asked.append(name)
        return service[name]

    fill(vault, 2, quire.KeyRing.from_hook(fetch, current="2026"))
    ring = quire.KeyRing.from_hook(fetch, current="2027")
    fill(vault, 2, ring)  # a data key more
    assert asked == ["2026", "2027", "2026"]
    assert len(texts(vault, key=ring)) == 4
    assert asked == ["2026", "2027", "2026"]
    assert "2026" in repr(ring)
    del service["2026"]
    assert rewrap(vault, key=ring, new_key=KEY) == 2
    assert len(texts(vault, key=KEY)) == 4
    with pytest.raises(LookupError):
        quire.KeyRing.from_hook(fetch, current="2028")
    with pytest.raises(ValueError, match="a key has 32 bytes"):
        quire.KeyRing.from_hook(lambda _: b"short", current="a")


def test_keys_are_neither_shown_nor_pickled(tmp_path: Path) -> None:
    ring = quire.KeyRing({"2026": KEY}, current="2026")
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(ring)
    with quire.open(tmp_path / "q", key=ring) as queue, queue.appender() as appender:
        appender.write_text("attack at dawn")
        options = queue._options  # pyright: ignore[reportPrivateUsage]
        for shown in (repr(ring), str(ring), repr(queue), repr(vars(queue)), repr(options)):
            assert KEY.hex() not in shown
            assert repr(KEY)[2:-1] not in shown
        pickled = pickle.dumps(queue)
        assert KEY not in pickled
        with pytest.raises(EncryptionError, match="the queue is encrypted"):
            pickle.loads(pickled)
    for wrong in ({"": KEY}, {"a": b"short"}, {}):
        with pytest.raises(ValueError, match=r"key|name"):
            quire.KeyRing(wrong, current="a")


@pytest.mark.parametrize("damage", ["wrap", "json", "empty", "queue", "version", "link", "gone"])
def test_damaged_wrapped_keys(tmp_path: Path, damage: str) -> None:
    vault = tmp_path / "q"
    fill(vault)
    file = vault / KEYS
    found = json.loads(file.read_bytes())
    if damage == "wrap":
        wrapped = bytearray.fromhex(found["keys"][0]["wrapped"])
        wrapped[20] ^= 1
        found["keys"][0]["wrapped"] = wrapped.hex()
    elif damage == "queue":
        found["queue"] = "00" * 16
    elif damage == "version":
        found["version"] = 2
    file.write_text(json.dumps(found))
    if damage == "json":
        file.write_bytes(b"[" * 100_000)
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage in {"link", "gone"}:
        file.rename(tmp_path / "elsewhere")
        if damage == "link":
            file.symlink_to(tmp_path / "elsewhere")
    content = {it.name: it.read_bytes() for it in vault.glob("*.cq4")}
    with pytest.raises(EncryptionError):
        quire.open(vault, key=KEY)
    assert content == {it.name: it.read_bytes() for it in vault.glob("*.cq4")}


def test_a_message_in_another_place_or_queue_does_not_open(tmp_path: Path) -> None:
    vault, other = tmp_path / "q", tmp_path / "other"
    indexes = fill(vault, 4)
    fill(other, 4)  # by the same key
    file, others = next(vault.glob("*.cq4")), next(other.glob("*.cq4"))
    with quire.open(vault, key=KEY, read_only=True) as queue:
        places = [queue._position_of(it) for it in indexes]
    first, second, third = (it or 0 for it in places[:3])
    content = bytearray(file.read_bytes())
    content[first:second], content[second:third] = content[second:third], content[first:second]
    file.write_bytes(content)
    with quire.open(vault, key=KEY) as queue, queue.tailer() as tailer:
        with pytest.raises(ForgedMessageError, match="not the one that was written here"):
            tailer.read_text()
        assert tailer.move_to_index(indexes[2])
        assert tailer.read_text() == "attack at dawn 2"
    assert len(others.read_bytes()[first:second]) == second - first
    content[first:second] = others.read_bytes()[first:second]
    file.write_bytes(content)
    with pytest.raises(ForgedMessageError):
        texts(vault, key=KEY)


@pytest.mark.parametrize("bit", some(range(0, 8, 3), keep=[1]))
@pytest.mark.parametrize("at", [4, 12, 18, 22, 30, 40, 60])
def test_a_changed_bit_is_noticed_on_reading(tmp_path: Path, at: int, bit: int) -> None:
    vault = tmp_path / "q"
    (index,) = fill(vault, 1)
    file = next(vault.glob("*.cq4"))
    with quire.open(vault, key=KEY, read_only=True) as queue:
        position = queue._position_of(index)
    assert position is not None
    content = bytearray(file.read_bytes())
    content[position + at] ^= 1 << bit
    file.write_bytes(content)
    with pytest.raises(EncryptionError):
        texts(vault, key=KEY)


def test_plain_messages_are_known(tmp_path: Path) -> None:
    vault = tmp_path / "q"
    fill(vault, 1)
    hidden = (vault / KEYS).rename(tmp_path / KEYS)
    with quire.open(vault) as queue, queue.appender() as appender:  # as Java would
        appender.write_text("plain")
    shutil.move(hidden, vault / KEYS)
    with pytest.raises(PlainMessageError, match="allow_plain=True"):
        texts(vault, key=KEY)
    assert texts(vault, key=KEY, allow_plain=True) == ["attack at dawn 0", "plain"]
    before = tmp_path / "before"
    with quire.open(before) as queue, queue.appender() as appender:
        appender.write_text("plain")
    with pytest.raises(EncryptionError, match="holds messages that are not encrypted"):
        quire.open(before, key=KEY)
    fill(before, 1, allow_plain=True)
    assert texts(before, key=KEY, allow_plain=True) == ["plain", "attack at dawn 0"]


def test_nonces_never_repeat(tmp_path: Path) -> None:
    """Also where an index comes twice: on two copies of a queue, and after a cut."""
    vault, copied = tmp_path / "q", tmp_path / "copy"
    fill(vault, 50)
    quire.copy_queue(vault, copied)
    nonces = set[bytes]()
    count = 0
    for path in (vault, copied):
        fill(path, 50)
        stored = [payload for _, payload in read_queue(path)][50 if path == copied else 0 :]
        assert all(map(is_encrypted, stored))
        nonces |= {it[20:32] for it in stored}
        count += len(stored)
    assert len(nonces) == count == 150


def test_what_is_refused(tmp_path: Path) -> None:
    vault, other = tmp_path / "q", tmp_path / "v"
    with pytest.raises(UnsupportedError, match="the ring would hold unencrypted"):
        quire.open(vault, key=KEY, buffer_mode="async")
    with pytest.raises(UnsupportedError):
        open_any(other, key=KEY, format="vanilla")
    with quire.open(other):
        pass
    with pytest.raises(EncryptionError, match="is not encrypted"):
        quire.open(other, key=KEY, read_only=True)
    with pytest.raises((EncryptionError, ReadOnlyError, OSError)):
        quire.open(tmp_path / "nothing", key=KEY, read_only=True)


def test_topics_and_methods(tmp_path: Path) -> None:
    vault = tmp_path / "q"
    heard = list[str]()

    class Listener:
        def buyTheDip(self, text: str) -> None:  # noqa: N802
            heard.append(text)

    with quire.open(vault, key=KEY) as queue, queue.appender() as appender:
        appender.method_writer(Said).buyTheDip("attack at dawn")
        with queue.tailer() as tailer:
            reader = tailer.method_reader(Listener())
            assert reader.read_one()
    assert heard == ["attack at dawn"]
    assert plain_words(vault) == []


def test_consumer_groups(tmp_path: Path) -> None:
    vault = tmp_path / "q"
    with (
        quire.open(vault, key=KEY) as queue,
        queue.appender() as appender,
        queue.group("workers").consumer() as consumer,
    ):
        appender.write_text("attack at dawn")
        message = next(iter(consumer))
        assert b"attack at dawn" in bytes(message.data)
        message.ack()
    assert plain_words(vault) == []


_WRITES_FOR_EVER: Final = """
import sys, quire
with quire.open(sys.argv[1], key=bytes(range(32))) as queue, queue.appender() as appender:
    print(flush=True)
    while True:
        appender.write_text("attack at dawn")
"""


@pytest.mark.slow
def test_kills_while_writing_lose_nothing(tmp_path: Path) -> None:
    vault = tmp_path / "q"
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", _WRITES_FOR_EVER, str(vault)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
    assert {*texts(vault, key=KEY)} <= {"attack at dawn"}
    assert plain_words(vault) == []


def run(*arguments: object, stdin: str = "") -> tuple[int, str]:
    command = [str(Path(sys.executable).parent / "quire"), *map(str, arguments)]
    ran = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, env=os.environ
    )
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    "verb", [("write", "--format", "text"), ("record", "--stdin")], ids=lambda verb: verb[0]
)
def test_verbs_that_are_given_a_key_write_no_plain_message(
    tmp_path: Path, verb: tuple[str, ...]
) -> None:
    new, plain, file = tmp_path / "new", tmp_path / "plain", tmp_path / "key"
    file.write_bytes(KEY)
    name, *options = verb
    given = "attack at dawn\n"
    code, out = run(name, new, "--create", *options, "--key-file", file, stdin=given)
    assert code == 0, out
    assert plain_words(new) == []
    code, out = run("read", new, "--format", "text", "--key-file", file)
    assert (code, out.count("attack at dawn")) == (0, 1)

    fill(plain, 1, key=None)
    code, out = run(name, plain, *options, "--key-file", file, stdin=given)
    assert (code, "the queue holds messages that are not encrypted" in out) == (1, True)
    assert len(texts(plain)) == 1


def test_the_command_line(tmp_path: Path) -> None:
    vault, file, new = tmp_path / "q", tmp_path / "key", tmp_path / "new"
    fill(vault, 3)
    file.write_bytes(KEY)
    new.write_text(OTHER.hex())
    code, out = run("read", vault)
    assert (code, "the queue is encrypted" in out) == (1, True)
    code, out = run("read", vault, "--key-file", file)
    assert (code, out.count("attack at dawn")) == (0, 3)
    code, out = run("stat", vault)
    assert (code, "attack" in out) == (0, False)
    assert run("verify", vault)[0] == 0
    code, out = run("rewrap", vault, "--key-file", file, "--new-key-file", new)
    assert (code, "1 data key" in out) == (0, True)
    code, out = run("read", vault, "--key-file", file)
    assert (code, "none of the keys" in out) == (1, True)
    code, out = run("read", vault, "--key-file", new)
    assert (code, out.count("attack at dawn")) == (0, 3)


@pytest.mark.check
@pytest.mark.parametrize(
    "verb",
    [
        ("split", "--by", "cycle"),
        ("merge", "--by", "orderNumber"),
        ("salvage",),
        ("convert", "--into", "vanilla"),
        ("replay", "--to-queue"),
    ],
    ids=lambda it: it[0],
)
def test_verbs_say_what_they_write_plain(
    cli: Cli, tmp_path: Path, caplog: pytest.LogCaptureFixture, verb: tuple[str, ...]
) -> None:
    vault, file, out = tmp_path / "q", tmp_path / "key", tmp_path / "out"
    with quire.open(vault, key=KEY) as queue, queue.appender() as appender:
        appender.write_map({"orderNumber": 1})
    file.write_bytes(KEY)
    name, *options = verb
    assert "the queue is encrypted" in cli(name, vault, *options, out).err
    assert not out.exists() or not [it for it in out.rglob("*") if it.suffix == ".cq4"]
    caplog.clear()
    cli.ok(name, vault, *options, out, "--key-file", file)
    assert "holds the messages as they are, not encrypted" in caplog.text
    assert plain_words(vault) == []
