"""Key rings in files, variables and commands: what they may do, and what is refused."""

from __future__ import annotations

import base64
import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import quire
from quire.errors import EncryptionError
from quire.sealed.key_source import KeySource
from quire.staged.batch_target import Target
from quire.staged.commits import commit
from quire.staged.staging import Part, PartWriter

OLD: Final = secrets.token_bytes(32)
NEW: Final = secrets.token_bytes(32)
BASE64: Final = base64.b64encode(NEW).decode()
KEYS: Final = f"[keys]\n2026 = '{OLD.hex()}'\n'the new' = '{BASE64}'\n"
RING: Final = f"# of the vault\ncurrent = 'the new'\n\n{KEYS}"
PAST: Final = "expires = 2026-01-01T00:00:00Z\n"
FUTURE: Final = "expires = 2199-01-01 00:00:00+01:00\n"
open_any: Any = quire.open


def ring_file(folder: Path, text: str | bytes = RING, name: str = "ring") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    file.chmod(0o600)
    return file


def fill(path: Path, key: object, count: int = 1) -> None:
    with open_any(path, key=key) as queue, queue.appender() as appender:
        for number in range(count):
            appender.write_text(f"attack at dawn {number}")


def count(path: Path, key: object) -> int:
    with open_any(path, read_only=True, key=key) as queue, queue.tailer() as tailer:
        return len([*iter(tailer.read_text, None)])


WAYS: Final[dict[str, Callable[[Path, str], quire.KeyRing]]] = {
    "file": lambda folder, text: quire.KeyRing.from_file(ring_file(folder, text)),
    "variable": lambda _, text: quire.KeyRing.from_environment(set_variable(text)),
    "command": lambda folder, text: quire.KeyRing.from_command(
        ["cat", str(ring_file(folder, text))]
    ),
}


def set_variable(text: str) -> str:
    os.environ["QUIRE_TEST_RING"] = text
    return "QUIRE_TEST_RING"


@pytest.fixture(autouse=True)
def _variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_TEST_RING", "")


@pytest.mark.parametrize("way", WAYS)
def test_a_key_ring_has_its_names_its_current_key_and_its_end(tmp_path: Path, way: str) -> None:
    ring = WAYS[way](tmp_path, FUTURE + RING)
    assert repr(ring) == "KeyRing(names=['2026', 'the new'], current='the new')"
    assert ring.expires == datetime(2198, 12, 31, 23, tzinfo=UTC)
    assert WAYS[way](tmp_path, RING).expires is None
    fill(tmp_path / "old", OLD)
    fill(tmp_path / "old", ring)
    assert count(tmp_path / "old", ring) == 2
    fill(tmp_path / "new", ring)
    assert count(tmp_path / "new", NEW) == 1
    with pytest.raises(EncryptionError, match="none of the keys opens the queue"):
        count(tmp_path / "new", OLD)
    with pytest.raises(EncryptionError, match="has expired: name=the new expired=2026-01-01"):
        quire.open(tmp_path / "other", key=WAYS[way](tmp_path, PAST + RING))
    assert not (tmp_path / "other").exists()


def test_a_given_end_counts_whatever_the_file_says(tmp_path: Path) -> None:
    file = ring_file(tmp_path, PAST + RING)
    end = datetime(2199, 1, 1, tzinfo=UTC)
    assert quire.KeyRing.from_file(file, expires=end).expires == end
    fill(tmp_path / "q", quire.KeyRing.from_file(file, expires=end))


def top(text: str) -> str:
    return f"{text}\n{RING}"


NO_RINGS: Final[dict[str, tuple[str | bytes, str]]] = {
    "no TOML": ("current = \n" + KEYS, "not a key ring: .*line 1"),
    "no quotes": (f"current = 'a'\n[keys]\na = {OLD.hex()}x", "not a key ring: .*line 3"),
    "a name twice": (RING + f"2026 = '{OLD.hex()}'\n", "not a key ring: .*at line 7"),
    "no UTF-8": (RING.encode() + b"# \xff", "it is not UTF-8"),
    "no keys": ("current = 'a'", r"no keys, expected a table \[keys\]"),
    "an empty table": ("current = 'a'\n[keys]\n", "no keys"),
    "keys that are a list": (f"current = 'a'\nkeys = ['{OLD.hex()}']", "no keys"),
    "no current": (KEYS, "current names none of its keys: current=NoneType"),
    "another current": (RING.replace("'the new'", "'new'", 1), "none of its keys: current='new'"),
    "a current that is a number": (RING.replace("'the new'", "7", 1), "current=int"),
    "a key as current": (RING.replace("the new", OLD.hex(), 1), "current=a key"),
    "a key as name": (RING + f"{OLD.hex()} = '2027'", "a key stands where its name belongs"),
    "a short key": (RING + f"more = '{OLD.hex()[:-2]}'", "not a key of 32 bytes .* name='more'"),
    "a long key": (RING + f"more = '{OLD.hex()}00'", "not a key of 32 bytes .* name='more'"),
    "a raw key": (RING + f"more = '{'x' * 32}'", "not a key of 32 bytes .* name='more'"),
    "an empty key": (RING + "more = ''", "not a key of 32 bytes .* name='more'"),
    "a key that is a number": (RING + "more = 7", "not a key of 32 bytes .* name='more'"),
    "a key that is a table": (RING + f"a.b = '{OLD.hex()}'", "not a key of 32 bytes .* name='a'"),
    "no name": (RING + f"'' = '{OLD.hex()}'", "not the name of a key: name=''"),
    "a long name": (RING + f"{'n' * 201} = '{OLD.hex()}'", "not the name of a key"),
    "a name that is not printed": (RING + f'"\\u001b" = "{OLD.hex()}"', "not the name of a key"),
    "current below": (f"{KEYS}current = '2026'", r"current stands below \[keys\]"),
    "an end below": (RING + PAST, r"expires stands below \[keys\]"),
    "an unknown field": (top("expire = 7"), "unknown: 'expire', expected: current, expires, keys"),
    "a key as a field": (top(f"{OLD.hex()} = 7"), "unknown: a key, expected"),
    "an end in quotes": (
        top("expires = '2027-01-01T00:00:00Z'"),
        "expires is not a time, .*unquoted",
    ),
    "an end that is a day": (top("expires = 2027-01-01"), "expires is not a time"),
    "an end without a zone": (top("expires = 2027-01-01T00:00:00"), "expires has no time zone"),
    "an end that is false": (top("expires = false"), "expires is not a time"),
    "deep": ("a = " + "[" * 5000, "not a key ring: "),
    "digits without end": ("a = " + "9" * 5000, "not a key ring: "),
    "too long": (RING + "#" * (64 << 10), "longer than a key or a key ring: .*limit=65536"),
    "too long for one key": (OLD.hex() * 2000, "longer than a key or a key ring"),
    "base64 of another length": (base64.b64encode(OLD[:-1]), "not a key of 32 bytes, raw"),
    "two keys": (f"{OLD.hex()}\n{NEW.hex()}\n", "not a key of 32 bytes, raw"),
    "empty": ("", "not a key of 32 bytes, raw"),
}


@pytest.mark.parametrize("kind", NO_RINGS)
def test_what_is_no_key_ring_is_refused_and_shows_no_key(tmp_path: Path, kind: str) -> None:
    content, expected = NO_RINGS[kind]
    file = ring_file(tmp_path, content)
    with pytest.raises(EncryptionError, match=expected) as raised:
        quire.KeyRing.from_file(file)
    assert f"file={file}" in str(raised.value)
    shown = str(raised.value) + repr(raised.value.__cause__)
    for key in (OLD, NEW):
        assert key.hex()[:16] not in shown
        assert base64.b64encode(key).decode()[:16] not in shown
    assert "\n" not in str(raised.value)
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o777])
def test_a_key_ring_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    file = ring_file(tmp_path)
    file.chmod(mode)
    with pytest.raises(EncryptionError, match=rf"others may use the key ring: .*mode={mode:o}"):
        quire.KeyRing.from_file(file)
    one = ring_file(tmp_path, NEW.hex(), "one")
    one.chmod(mode)
    assert quire.KeyRing.from_file(one).names == ["default"]  # as it always was
    file.chmod(0o400)
    (tmp_path / "link").symlink_to(file)
    assert quire.KeyRing.from_file(tmp_path / "link").names == ["2026", "the new"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_key_ring_of_another_user_is_refused(tmp_path: Path) -> None:
    file = ring_file(tmp_path)
    os.chown(file, 12345, -1)
    with pytest.raises(EncryptionError, match=r"others may use the key ring: .*user=12345"):
        quire.KeyRing.from_file(file)


def run(*arguments: object) -> tuple[int, str]:
    command = [str(Path(sys.executable).parent / "quire"), *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.check
def test_verbs_take_key_rings(tmp_path: Path) -> None:
    vault = tmp_path / "q"
    fill(vault, OLD)
    fill(vault, quire.KeyRing({"2026": OLD, "2027": NEW}, current="2027"))
    ring = ring_file(tmp_path)
    assert run("read", vault, "--key-file", ring)[1].count("attack at dawn") == 2
    (tmp_path / "lines").write_text("attack at noon\n")

    expired = ring_file(tmp_path, PAST + RING, "expired")
    code, out = run("read", vault, "--key-file", expired)
    assert (code, out.count("attack at dawn")) == (0, 2), out
    code, out = run("write", vault, tmp_path / "lines", "--key-file", expired)
    assert (code, "has expired: expired=2026-01-01T00:00:00Z" in out) == (1, True), out
    code, out = run("rewrap", vault, "--key-file", ring, "--new-key-file", expired)
    assert (code, "the key has expired: name=the new" in out) == (1, True), out
    code, out = run("rewrap", vault, "--key-file", expired, "--new-key-file", ring)
    assert (code, "2 data keys wrapped" in out) == (0, True), out
    assert count(vault, NEW) == 2
    code, out = run("write", vault, tmp_path / "lines", "--key-file", ring)
    assert (code, count(vault, NEW)) == (0, 3), out

    ring.chmod(0o644)
    code, out = run("read", vault, "--key-file", ring)
    assert (code, "others may use the key ring" in out) == (1, True), out
    assert "Traceback" not in out


def staged(target: Target, batch: int) -> list[Part]:
    with PartWriter(target.staging.batch("w", batch), 0, None, target.ring()) as writing:
        writing.write(pa.array([b"attack"], pa.large_binary()))
        part = writing.finish()
    assert part is not None
    return [part]


def test_a_write_of_spark_with_an_expired_key_is_refused_before_it_begins(tmp_path: Path) -> None:
    file, vault = ring_file(tmp_path), tmp_path / "q"
    target = Target(str(vault), {"block_bytes": 2**16}, key=KeySource(str(file)))
    assert commit(target, "w", 0, staged(target, 0))
    parts = staged(target, 1)
    ring_file(tmp_path, PAST + RING)
    with pytest.raises(EncryptionError, match="has expired: expired=2026-01-01"):
        commit(target, "w", 1, parts)
    with open_any(vault, read_only=True, key=NEW) as queue:
        assert queue.entry_count == 1
    ring_file(tmp_path, FUTURE + RING)
    assert commit(target, "w", 1, parts)
