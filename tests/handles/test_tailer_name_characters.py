"""Names of tailers that could not be shown or typed are refused, unless they are stored already."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from queues import store_as

REFUSED = ["", "\0", "tab\t", "line\n", "\x1b[31m", "\x7f", "t\x9b2J", "\x80", "\u202e", "\ud800"]


@pytest.mark.parametrize("prefix", ["", "replicated:"])
@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_a_new_name_is_printable(queue: quire.JournalQueue, prefix: str, name: str) -> None:
    if prefix and not name:
        return
    before = queue.table_entries()
    with pytest.raises(ValueError, match=r"name|surrogate"):
        queue.tailer(prefix + name)
    assert queue.table_entries() == before


@pytest.mark.parametrize("stored", [b"ta\tb", b"a\x1b[c", b"t\x9b2J", b"a\x7fbc"])
def test_a_stored_name_is_listed_and_gone_on_with(
    queue: quire.JournalQueue, path: Path, stored: bytes
) -> None:
    queue.appender().write_many([b"one", b"two", b"three"])
    with queue.tailer("t##J") as tailer:
        assert tailer.read_bytes() == b"one"
    queue.close()
    store_as(path, "t##J", stored)
    name = stored.decode("latin-1")

    with quire.open(path, read_only=True) as found:
        assert [*dict(found.named_tailers())] == [name]
    with quire.open(path) as found:
        with found.tailer(name) as tailer:
            assert tailer.read_bytes() == b"two"
        with pytest.raises(ValueError, match="printable"):
            found.tailer(f"{name}x")
    with quire.open(path) as found, found.tailer(name) as tailer:
        assert tailer.read_bytes() == b"three"
