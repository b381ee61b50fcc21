"""What lies beside an encrypted queue tells nobody whether a guess at a message is right."""

from __future__ import annotations

import os
import re
import struct
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import quire
from quire._native import tail_hash
from quire.errors import EncryptionError, ForgedMessageError
from quire.groups.keys import Keys, hashing_of, plain_hash
from quire.maintenance import build_time_index, rewrap

KEY: Final = bytes(range(32))
RING: Final = quire.KeyRing({"2026": KEY}, current="2026")
PIN: Final = 4711
DIGITS: Final = KEY.hex()
MARKER: Final = b"\xb6\x08quire.e1"
METADATA: Final = 0x40
open_any: Any = quire.open


def orders(path: Path, count: int = 5, **options: object) -> None:
    with open_any(path, **options) as queue, queue.appender() as appender:
        for number in range(count):
            appender.write_map({"pin": PIN, "number": number})


def stored(path: Path) -> bytes:
    return b"".join(it.read_bytes() for it in sorted(path.iterdir()) if it.is_file())


def taken(path: Path, count: int, by: str | None, **options: object) -> list[int]:
    with open_any(path, **options) as queue, queue.group("desk", key=by).consumer() as consumer:
        found = list[int]()
        while len(found) < count and (message := consumer.read()) is not None:
            found.append(message.to_dict()["number"])
            message.ack()
        return found


def hints(path: Path, **options: object) -> list[bytes]:
    """What lies in the files if they say something about a message, or its key."""
    with open_any(path, read_only=True, **options) as queue, queue.tailer() as tailer:
        hashes = [tail_hash(it.data) for it in tailer]
    hashes += [plain_hash(repr(("key", PIN)).encode())]
    content = stored(path)
    return [it for it in (struct.pack("<Q", it) for it in hashes) if it in content]


@pytest.mark.parametrize("key", [None, "pin"])
def test_a_group_leaves_no_hash_of_what_is_plain(tmp_path: Path, key: str | None) -> None:
    plain, vault = tmp_path / "plain", tmp_path / "vault"
    orders(plain)
    orders(vault, key=KEY)
    assert taken(plain, 3, key) == taken(vault, 3, key, key=KEY) == [0, 1, 2]
    assert hints(plain)  # the test would see them
    assert hints(vault, key=KEY) == []


def test_a_group_goes_on_by_what_it_left(tmp_path: Path) -> None:
    vault, new = tmp_path / "vault", quire.KeyRing({"2026": KEY, "2027": KEY[::-1]}, current="2027")
    orders(vault, key=RING)
    assert taken(vault, 3, None, key=RING) == [0, 1, 2]
    orders(vault, 2, key=new)
    assert taken(vault, 99, None, key=new) == [3, 4, 0, 1]
    rewrap(vault, key=new, new_key=quire.KeyRing({"2028": KEY}, current="2028"))
    orders(vault, 1, key=KEY)
    assert taken(vault, 99, None, key=KEY) == [0]


def test_a_group_finds_its_place_after_a_loss(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    orders(vault, 3, key=KEY)
    assert taken(vault, 3, None, key=KEY) == [0, 1, 2]
    group = (vault / "desk.qgroup").read_bytes()
    for file in vault.iterdir():
        if file.suffix != ".quire":  # its keys stay
            file.unlink()
    with quire.open(vault, key=KEY) as queue, queue.appender() as appender:
        for number in range(4):
            appender.write_map({"pin": PIN, "number": 10 + number})
    (vault / "desk.qgroup").write_bytes(group)
    assert taken(vault, 99, None, key=KEY) == [10, 11, 12, 13]


def test_keys_have_one_hash_in_every_process_and_after_a_rotation(tmp_path: Path) -> None:
    vault, new = tmp_path / "vault", quire.KeyRing({"2026": KEY, "2027": KEY[::-1]}, current="2027")
    orders(vault, 2, key=RING)
    found = set[int]()
    for ring in (RING, new, RING):
        with quire.open(vault, key=ring) as queue, queue.tailer() as tailer:
            excerpt = tailer.read()
            assert excerpt is not None
            found.add(Keys("pin", hashing_of(queue)).hash_of(excerpt))
    assert len(found) == 1
    other = tmp_path / "other"
    orders(other, 1, key=RING)
    with quire.open(other, key=RING) as queue:
        assert hashing_of(queue)(b"x") != plain_hash(b"x")
        assert hashing_of(queue)(repr(("key", PIN)).encode()) not in found


def notes(path: Path) -> list[object]:
    found = list[object]()
    with (
        quire.open(path, key=KEY, read_only=True) as queue,
        queue.tailer() as tailer,
    ):
        while True:
            with tailer.reading_document(include_metadata=True) as document:
                if not document.is_present:
                    return found
                if not document.is_metadata:
                    found.append(document.text())
                elif "note" in (note := document.map()):  # else it is the file's own
                    found.append(note)


@pytest.mark.parametrize("to", [0, 1])
def test_metadata_is_bound_to_the_message_after_it(tmp_path: Path, to: int) -> None:
    vault = tmp_path / "vault"
    with quire.open(vault, key=KEY) as queue, queue.appender() as appender:
        for number in range(3):
            with appender.writing_document(metadata=True) as document:
                document.write("note", number)
            appender.write_text(f"order {number}")
        with appender.writing_document(metadata=True) as document:
            document.write("note", 3)
    expected: list[object] = []
    for number in range(3):
        expected += [{"note": number}, f"order {number}"]
    assert notes(vault) == [*expected, {"note": 3}]
    [file] = vault.glob("*.cq4")
    content = bytearray(file.read_bytes())
    places = [found.start() for found in re.finditer(re.escape(MARKER), content)]
    marked = [at for at in places if content[at - 1] & METADATA]
    (word,) = struct.unpack_from("<I", content, marked[0] - 4)
    length = word & 0x3FFF_FFFF
    first, last = (bytes(content[at : at + length]) for at in (marked[0], marked[2]))
    content[marked[2] : marked[2] + length] = first
    if to:
        content[marked[0] : marked[0] + length] = last
    file.write_bytes(content)
    with pytest.raises(ForgedMessageError):
        notes(vault)


def test_times_of_a_field_stay_where_they_are(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    orders(vault, key=KEY)
    before = sorted(it.name for it in vault.iterdir())
    with RING.as_default(), pytest.raises(EncryptionError, match="plain in its time index: path="):
        build_time_index(vault, time_field="number")
    assert sorted(it.name for it in vault.iterdir()) == before


def from_text(text: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        file = folder / "ring.toml"
        file.touch(0o600)
        file.write_text(text)
        return quire.KeyRing.from_file(file)

    return read


SHOWN: Final[dict[str, Callable[[Path], object]]] = {
    "twice in a table": from_text(f"keys = {{{DIGITS} = 1, {DIGITS} = 2}}"),
    "a table twice": from_text(f"[{DIGITS}]\n[{DIGITS}]"),
    "most of one as a name": from_text(f"current = 'a'\n[keys]\n{DIGITS[:-1]} = 'b'"),
    "most of one as current": from_text(f"current = '{DIGITS[1:]}'\n[keys]\na = '{DIGITS}'"),
    "most of one as a field": from_text(f"{DIGITS[1:]} = 7\n[keys]\na = '{DIGITS}'"),
    "where the name belongs": lambda _: quire.KeyRing({KEY: "2027"}, current="2027"),  # type: ignore[dict-item]
    "as the current one": lambda _: quire.KeyRing({"2027": KEY}, current=DIGITS[:-1]),
}


@pytest.mark.parametrize("name", SHOWN)
def test_no_error_shows_most_of_a_key(tmp_path: Path, name: str) -> None:
    with pytest.raises((EncryptionError, ValueError, TypeError)) as raised:
        SHOWN[name](tmp_path)
    shown = "".join(traceback.format_exception_only(raised.value))
    assert not any(DIGITS[at : at + 16] in shown for at in range(len(DIGITS) - 16))
    assert repr(KEY)[2:-1][:40] not in shown


def test_a_raw_key_in_the_environment_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = bytes(range(200, 232))
    monkeypatch.setitem(os.environb, b"QUIRE_TEST_KEY", raw)
    assert quire.KeyRing.from_environment("QUIRE_TEST_KEY").current_key == raw
    monkeypatch.setitem(os.environb, b"QUIRE_TEST_KEY", raw[:-1])
    with pytest.raises(EncryptionError, match="not a key of 32 bytes"):
        quire.KeyRing.from_environment("QUIRE_TEST_KEY")


@pytest.mark.parametrize("name", ["../../etc/x\n\x1b]0;own\x07", "n" * 320, "", 7])
def test_names_in_wrapped_keys_are_names(tmp_path: Path, name: object) -> None:
    import json

    vault, asked = tmp_path / "vault", list[str]()
    orders(vault, key=RING)
    keys = json.loads((vault / "keys.quire").read_text())
    keys["keys"][0]["name"] = name
    (vault / "keys.quire").write_text(json.dumps(keys))

    def fetch(wanted: str) -> bytes:
        asked.append(wanted)
        return KEY

    ring = quire.KeyRing.from_hook(fetch, current="2026")
    with pytest.raises(EncryptionError, match="the wrapped keys are damaged: ") as raised:
        quire.open(vault, key=ring)
    assert "\x1b" not in str(raised.value)
    assert asked == ["2026"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, which gives files away")
def test_what_root_rewraps_and_seals_stays_the_services(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    orders(vault, key=KEY)
    for file in (vault, *vault.iterdir()):
        os.chown(file, 1234, 1234)
    rewrap(vault, key=RING, new_key=quire.KeyRing({"2027": KEY[::-1]}, current="2027"))
    quire.maintenance.seal(vault)
    owners = {it.name: it.stat().st_uid for it in vault.iterdir()}
    assert "keys.quire" in owners
    assert "seals.quire" in owners
    assert set(owners.values()) == {1234}
