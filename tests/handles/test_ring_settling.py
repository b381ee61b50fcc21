"""
A drainer died after it appended a run, and before it freed the ring of it.

The next one compares what is at the index that was noted, as a reader gets it: messages may be
stored in another way than they were put in.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import quire
from pause_points import Party
from queues import payloads
from quire.maintenance import compress_dictionary, ring_pending
from ring_left import leave_in_ring
from stored_queues import messages, stored

DRAINS = """
import json
arm()
quire.open(sys.argv[1], **json.loads(sys.argv[2]))
"""
COUNT = 5  # of which a new appender appends the first alone
LEFT = COUNT - 1
FORMS = ["as given", "zstd", "gzip", "dictionary", "DELTA_BINARY", "DEFAULT_ZERO_BINARY", "both"]
OPTIONS: dict[str, dict[str, str]] = {
    "as given": {},
    "zstd": {"compression": "zstd"},
    "gzip": {"compression": "gzip"},
    "dictionary": {"compression": "zstd"},
    "DELTA_BINARY": {"wire_type": "DELTA_BINARY"},
    "DEFAULT_ZERO_BINARY": {"wire_type": "DEFAULT_ZERO_BINARY"},
    "both": {"wire_type": "DELTA_BINARY", "compression": "lz4"},
}
open_any: Any = quire.open


def quote(number: int) -> dict[str, object]:
    return {"symbol": "EURUSD", "number": number, "text": "attack at dawn, " * 8, "size": 0}


def appended_but_not_freed(
    path: Path, put: list[bytes] | None = None, form: str = "as given"
) -> list[bytes]:
    """Have a drainer append a run and die before it frees it; return what the queue has to hold."""
    options = OPTIONS[form]
    with open_any(path, **options) as queue, queue.appender() as appender:
        for number in range(100 if form == "dictionary" else COUNT + 1):
            appender.write_map(quote(number))
    before = messages(path)
    run = put or before[-COUNT:]
    if form == "dictionary":
        compress_dictionary(path, size=512)
    with open_any(path, **options) as queue:
        leave_in_ring(path, queue, run)
    with Party(DRAINS, path, json.dumps(options), point="ring.noted.store", nth=3) as party:
        party.wait_until_stopped()
        party.kill()
    assert messages(path) == [*before, *run]
    assert ring_pending(path)[0] == LEFT
    return [*before, *run]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_stored_otherwise_is_not_appended_again(path: Path, form: str) -> None:
    expected = appended_but_not_freed(path, form=form)
    assert (stored(path)[-COUNT:] != expected[-COUNT:]) == (form != "as given")
    with quire.open(path) as queue:
        assert payloads(queue) == expected
    assert ring_pending(path)[0] == 0


def test_messages_that_look_like_compressed_ones_are_not_appended_again(path: Path) -> None:
    looks = [_own(b"\x00" + b"%d" % number) for number in range(COUNT)]
    expected = appended_but_not_freed(path, looks)
    assert not {*stored(path)} & {*looks}
    with quire.open(path, buffer_mode="async") as queue:
        assert payloads(queue) == expected


def _own(content: bytes) -> bytes:
    return b"\xb6\x03qz1\x80" + bytes([len(content) + 1]) + b"\x8a" + content


def test_without_their_dictionary_they_stay_in_the_ring(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = appended_but_not_freed(path, form="dictionary")
    files = {file: file.read_bytes() for file in path.glob("*dictionary.quire")}
    for file in files:
        file.unlink()
    quire.open(path).close()
    assert "messages stay in the ring" in caplog.text
    with quire.open(path, buffer_mode="async") as queue, queue.appender() as appender:
        appender.write_bytes(b"later")
        assert queue.ring is not None
        with pytest.raises(quire.errors.DictionaryError):
            queue.ring.flush()
    assert ring_pending(path)[0] == LEFT + 1
    for file, content in files.items():
        file.write_bytes(content)
    with quire.open(path) as queue:
        assert payloads(queue) == [*expected, b"later"]


def test_one_that_does_not_decompress_any_more_keeps_them_in_the_ring(path: Path) -> None:
    expected = appended_but_not_freed(path, form="zstd")
    [file] = path.glob("*.cq4")
    sound = file.read_bytes()
    message = stored(path)[-2]
    file.write_bytes(sound.replace(message, message[:12] + bytes(len(message) - 12)))
    with quire.open(path, buffer_mode="async") as queue:
        assert queue.ring is not None
        with pytest.raises(quire.errors.WireError, match=f"does not decompress.*{file}"):
            queue.ring.flush()
    assert ring_pending(path)[0] == 2
    assert len(stored(path)) == len(expected)
    file.write_bytes(sound)
    with quire.open(path) as queue:
        assert payloads(queue) == expected


def test_one_that_is_damaged_for_good_is_appended_again_on_demand(path: Path) -> None:
    expected = appended_but_not_freed(path, form="zstd")
    [file] = path.glob("*.cq4")
    message = stored(path)[-2]
    damaged = message[:12] + bytes(len(message) - 12)
    file.write_bytes(file.read_bytes().replace(message, damaged))
    assert drain(path, "--again")[0] == 2
    code, output = drain(path, "--once")
    assert code == 1
    assert "does not decompress" in output
    assert ring_pending(path)[0] == 2
    code, output = drain(path, "--once", "--again")
    assert code == 0
    assert "may have appended are appended again: messages=2" in output
    assert ring_pending(path)[0] == 0
    found = stored(path)
    assert found[len(expected) - 2] == damaged
    file.write_bytes(file.read_bytes().replace(damaged, message))
    assert messages(path) == [*expected, *expected[-2:]]


def drain(path: Path, *options: str) -> tuple[int, str]:
    command = [str(Path(sys.executable).parent / "quire"), "drain", str(path), *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def test_one_that_is_another_now_is_appended_again_with_those_after_it(path: Path) -> None:
    put = [b"message %d" % number for number in range(COUNT)]
    expected = appended_but_not_freed(path, put)
    [file] = path.glob("*.cq4")
    file.write_bytes(file.read_bytes().replace(put[3], b"damaged X"))
    with quire.open(path) as queue:
        assert payloads(queue) == [*expected[:-2], b"damaged X", put[4], put[3], put[4]]


def test_those_whose_file_was_removed_are_appended_again(path: Path) -> None:
    expected = appended_but_not_freed(path, form="zstd")
    [file] = path.glob("*.cq4")
    file.unlink()
    with quire.open(path) as queue:
        assert payloads(queue) == expected[-LEFT:]
