"""The names of tailers beyond ASCII, as they stand in the table: one byte a character."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from queues import poke

NAMES = ["café", "ÄÖÜ", "£", "¡hola!", "÷"]
EARLIER = "café"  # in UTF-8, as earlier versions wrote it
STAND_IN = "caf##"  # as many bytes


def store_in_utf8(path: Path, name: str = STAND_IN) -> None:
    """Have the key of a tailer as an earlier version spelled it."""
    table = path / "metadata.cq4t"
    content = table.read_bytes()
    assert content.count(name.encode()) == 1
    table.write_bytes(content.replace(name.encode(), EARLIER.encode()))


def resumed(path: Path, name: str) -> bytes | None:
    with quire.open(path) as queue, queue.tailer(name) as tailer:
        return tailer.read_bytes()


@pytest.fixture
def filled(queue: quire.JournalQueue, path: Path) -> Path:
    queue.appender().write_many([b"one", b"two", b"three"])
    return path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prefix", ["", "replicated:"])
def test_a_character_is_a_byte(
    prefix: str, name: str, queue: quire.JournalQueue, filled: Path
) -> None:
    with queue.tailer(prefix + name) as tailer:
        assert tailer.read_bytes() == b"one"
    stored = (filled / "metadata.cq4t").read_bytes()
    assert f"index.{prefix}{name}".encode("latin-1") in stored
    assert name.encode("utf-8") not in stored
    key = f"index.{prefix}{name}"
    assert queue.table_value(key) == queue.first_index + 1  # type: ignore[operator]
    assert key in dict(queue.table_entries())
    assert resumed(filled, prefix + name) == b"two"


def test_names_differ_by_more_than_case_beyond_ascii_too(
    queue: quire.JournalQueue, filled: Path
) -> None:
    with queue.tailer("CAFÉ") as tailer:
        assert tailer.read_bytes() == b"one"
    assert resumed(filled, "café") == b"two"
    keys = [key for key, _ in queue.table_entries() if key.startswith("index.")]
    assert keys == ["index.CAFÉ"]


def test_a_position_of_an_earlier_version_is_taken_over_once(
    queue: quire.JournalQueue, filled: Path
) -> None:
    """From then on the key in Latin-1, which is Java's too, is the one that counts and is shown."""
    with queue.tailer(STAND_IN) as tailer:
        assert tailer.read_bytes() == b"one"
    queue.close()
    store_in_utf8(filled)
    key = f"index.{EARLIER}"
    with quire.open(filled, read_only=True) as again:
        assert again.table_value(key) == again.first_index + 1  # type: ignore[operator]
        assert dict(again.table_entries())[key] == again.table_value(key)
    assert resumed(filled, EARLIER) == b"two"
    with quire.open(filled) as again:
        found = [value for name, value in again.table_entries() if name == key]
        assert found == [again.table_value(key)] == [again.last_index]
        again.tailer("other").close()
    assert resumed(filled, EARLIER) == b"three"


def test_of_two_spellings_the_one_of_java_counts(queue: quire.JournalQueue, filled: Path) -> None:
    first = queue.first_index
    assert first is not None
    queue.tailer(STAND_IN).close()
    queue.close()
    store_in_utf8(filled)
    poke(filled, f"index.{EARLIER}".encode().decode("latin-1"), first + 1)
    assert resumed(filled, EARLIER) == b"two"
    poke(filled, f"index.{EARLIER}".encode().decode("latin-1"), first)
    assert resumed(filled, EARLIER) == b"three"


def test_a_name_beyond_latin_1_is_refused_and_not_found(
    queue: quire.JournalQueue, filled: Path
) -> None:
    before = (filled / "metadata.cq4t").read_bytes()
    with pytest.raises(ValueError, match="Latin-1"):
        queue.tailer("Ω")
    assert queue.table_value("index.Ω") is None
    assert (filled / "metadata.cq4t").read_bytes() == before
