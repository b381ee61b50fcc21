"""What is not encrypted in and beside an encrypted queue: it is refused, told or counted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import quire
from cli_runs import Cli
from queues import START_MS
from quire.errors import EncryptionError, PlainMessageError, UnsupportedError
from quire.groups import dead_letters
from quire.sealed.key_file import KEYS

KEY: Final = bytes(range(32))
WORD: Final = b"attack at dawn"
DAY_MS: Final = 86_400_000
open_any: Any = quire.open


class Notes:
    """Hears metadata."""

    def __init__(self, heard: list[str]) -> None:
        self._heard = heard

    def noted(self, text: str) -> None:
        self._heard.append(text)

    def forged(self, text: str) -> None:
        self._heard.append(text)


def append_without_a_key(path: Path, append: Callable[[quire.JournalAppender], object]) -> None:
    """Append as Java would, or somebody who may write to the directory."""
    hidden = (path / KEYS).rename(path.parent / "hidden")
    with quire.open(path) as queue, queue.appender() as appender:
        append(appender)
    shutil.move(hidden, path / KEYS)


def append_metadata(appender: quire.JournalAppender) -> None:
    with appender.writing_document(metadata=True) as document:
        document.write("forged", "evil")


def documents(path: Path, **options: Any) -> list[bytes]:  # noqa: ANN401
    """The metadata of a queue that its users wrote."""
    found = list[bytes]()
    with open_any(path, key=KEY, read_only=True, **options) as queue, queue.tailer() as tailer:
        while True:
            with tailer.reading_document(include_metadata=True) as document:
                if not document.is_present:
                    return found
                if b"orged" in bytes(document.bytes) or b"noted" in bytes(document.bytes):
                    found.append(bytes(document.bytes))


def shows_plain(path: Path) -> bool:
    return any(WORD in it.read_bytes() for it in path.rglob("*") if it.is_file())


def test_forged_metadata_is_refused(tmp_path: Path) -> None:
    vault = tmp_path / "q"
    with quire.open(vault, key=KEY) as queue, queue.appender() as appender:
        with appender.writing_document(metadata=True) as document:
            document.write("noted", "by who has the key")
        appender.write_text("one")
    assert len(documents(vault)) == 1
    append_without_a_key(vault, append_metadata)
    with pytest.raises(PlainMessageError, match="allow_plain=True"):
        documents(vault)
    assert len(documents(vault, allow_plain=True)) == 2
    heard = list[str]()
    with quire.open(vault, key=KEY) as queue, queue.tailer() as tailer:
        reader = tailer.method_reader(metadata_handler=Notes(heard))
        with pytest.raises(PlainMessageError):
            reader.read_many(10)
        assert heard == ["by who has the key"]
    with quire.open(vault, key=KEY) as queue, queue.tailer() as tailer:
        assert [tailer.read_text(), tailer.read_text()] == ["one", None]  # skips metadata


def test_metadata_of_the_file_needs_no_key(tmp_path: Path) -> None:
    """The header, and arrays of the index, also those after the first ones."""
    vault = tmp_path / "q"
    with quire.open(vault, key=KEY, roll_cycle="TEST4_SECONDLY") as queue:
        with queue.appender() as appender:
            appender.write_many([b"one"] * 2000)
        with queue.tailer() as tailer:
            messages = arrays = 0
            while True:
                with tailer.reading_document(include_metadata=True) as document:
                    if not document.is_present:
                        break
                    arrays += document.is_metadata
                    messages += not document.is_metadata
    assert messages == 2000
    assert arrays > 10


def give_up(queue: quire.JournalQueue, letters: quire.JournalQueue) -> None:
    group = queue.group("billing", dead_letter=letters, max_deliveries=1)
    with group.consumer() as consumer:
        message = consumer.read()
        assert message is not None
        message.nack()
        assert consumer.read() is None


def test_dead_letters_are_not_plain_without_a_word(tmp_path: Path) -> None:
    vault, letters = tmp_path / "q", tmp_path / "letters"
    with quire.open(vault, key=KEY) as queue, queue.appender() as appender:
        appender.write_bytes(b"\x01" + WORD)
        with pytest.raises(EncryptionError, match="dead letters would not be encrypted"):
            queue.group("billing", dead_letter=letters)
        with (
            pytest.raises(EncryptionError, match=r"give an open queue: quire\.open"),
            queue.tailer() as tailer,
        ):
            tailer.method_reader(Notes([]), on_error="dead_letter", dead_letter=letters)
        assert not letters.exists()
        with quire.open(letters, key=KEY) as opened:
            give_up(queue, opened)
            (letter,) = dead_letters(opened)
    assert (letter.data, letter.reason) == (b"\x01" + WORD, "refused")
    assert not shows_plain(vault)
    assert not shows_plain(letters)


def test_dead_letters_of_a_plain_queue_are_not_added_to_an_encrypted_one(tmp_path: Path) -> None:
    letters = tmp_path / "letters"
    quire.open(letters, key=KEY).close()
    with quire.open(tmp_path / "q") as queue:
        with pytest.raises(EncryptionError, match="dead letters would not be encrypted"):
            queue.group("billing", dead_letter=letters)
        with pytest.raises(EncryptionError), queue.tailer() as tailer:
            tailer.method_reader(Notes([]), on_error="dead_letter", dead_letter=letters)


def test_verify_counts_what_is_not_encrypted(tmp_path: Path) -> None:
    vault, plain = tmp_path / "q", tmp_path / "plain"
    with quire.open(vault, key=KEY) as queue, queue.appender() as appender:
        with appender.writing_document(metadata=True) as document:
            document.write("noted", "by who has the key")
        appender.write_many([WORD] * 600)
    assert quire.verify(vault).findings == ()
    indexes = list[int]()
    append_without_a_key(vault, lambda it: indexes.append(it.write_bytes(b"one")))
    append_without_a_key(vault, append_metadata)
    append_without_a_key(vault, lambda it: it.write_bytes(b"\0"))
    for path in (vault, next(vault.glob("*.cq4"))):
        report = quire.verify(path)
        (finding,) = report.findings
        assert (report.ok, finding.kind, finding.severity) == (True, "plain-messages", "note")
        assert finding.found == f"messages=2 metadata=1 first={indexes[0]:#x}"
    quire.open(plain).appender().write_text("one")
    assert quire.verify(plain).findings == ()


def test_verify_counts_them_in_compressed_cycles_and_copies(tmp_path: Path, cli: Cli) -> None:
    vault, copied = tmp_path / "q", tmp_path / "copy"
    clock = quire.ManualClock(START_MS)
    with quire.open(vault, key=KEY, clock=clock) as queue, queue.appender() as appender:
        appender.write_text("one")
    hidden = (vault / KEYS).rename(tmp_path / "hidden")
    for day in range(3):
        clock.now_ms = START_MS + day * DAY_MS
        with quire.open(vault, clock=clock) as queue, queue.appender() as appender:
            appender.write_text("plain")
    hidden.rename(vault / KEYS)
    quire.prune(vault, max_cycles=1, action="compress")
    assert [*vault.glob("*.zst")]
    quire.copy_queue(vault, copied)
    for path in (vault, copied):
        found = [it.found.split()[:2] for it in quire.verify(path).findings]
        assert found == [["messages=1", "metadata=0"]] * 3
        shown = cli.ok("verify", path, "--format", "jsonl").out
        assert shown.count("plain-messages") == 3


def test_an_archive_says_that_it_is_plain_and_a_dump_is_not(
    tmp_path: Path, cli: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    vault, key, archived = tmp_path / "q", tmp_path / "key", tmp_path / "archived"
    key.write_bytes(KEY)
    clock = quire.ManualClock(START_MS)
    with quire.open(vault, key=KEY, clock=clock) as queue, queue.appender() as appender:
        for _ in range(2):
            appender.write_bytes(b"\x01" + WORD)
            clock.advance(DAY_MS)
    assert "the queue is encrypted" in cli("archive", vault, archived).err
    assert not [*archived.rglob("*.parquet")]
    caplog.clear()
    cli.ok("archive", vault, archived, "--key-file", key)
    assert "the archive holds the messages as they are, not encrypted" in caplog.text
    assert len([*archived.rglob("*.parquet")]) == 1
    for options in ((), ("--key-file", key)):
        assert WORD.decode() not in cli.ok("dump", vault, *options).out


def test_an_archive_by_retention_is_asked_for_with_the_key(
    tmp_path: Path, cli: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    vault, key, archived = tmp_path / "q", tmp_path / "key", tmp_path / "archived"
    key.write_bytes(KEY)
    rule = quire.Retention(max_cycles=1, action="archive", dest=archived)
    with pytest.raises(UnsupportedError, match="a rule that archives has no key"):
        quire.open(vault, key=KEY, retention=rule)
    assert not vault.exists()
    clock = quire.ManualClock(START_MS)
    with quire.open(vault, key=KEY, clock=clock) as queue, queue.appender() as appender:
        for _ in range(2):
            appender.write_bytes(b"\x01" + WORD)
            clock.advance(DAY_MS)
    pruned = ("prune", vault, "--max-cycles", 1, "--archive", archived)
    assert "the queue is encrypted" in cli(*pruned).err
    assert len([*vault.glob("*.cq4")]) == 2
    cli.ok(*pruned, "--key-file", key)
    assert "the archive holds the messages as they are, not encrypted" in caplog.text
    assert (len([*vault.glob("*.cq4")]), len([*archived.rglob("*.parquet")])) == (1, 1)


def test_verbs_and_functions_read_plain_messages_where_that_is_allowed(
    tmp_path: Path, cli: Cli
) -> None:
    path, key = tmp_path / "vault", tmp_path / "key"
    key.write_bytes(KEY)
    with quire.open(path, key=KEY) as queue:
        queue.appender().write_text("own")
    append_without_a_key(path, lambda appender: appender.write_text("of Java"))

    given = ("--key-file", key)
    refused = cli("read", path, *given)
    assert refused.code == 1
    assert "the message is not encrypted" in refused.err
    assert "of Java" in cli.ok("read", path, *given, "--allow-plain").out
    cli.ok("split", path, tmp_path / "parts", "--by", "cycle", *given, "--allow-plain")
    assert [quire.verify(it).messages for it in (tmp_path / "parts").iterdir()] == [2]
    misused = cli("read", path, "--allow-plain")
    assert (misused.code, "give --key-file, too" in misused.err) == (2, True)

    ring = quire.KeyRing.from_file(key)
    with ring.as_default(), pytest.raises(PlainMessageError):
        quire.convert(path, tmp_path / "refused", into="chronicle")
    with ring.as_default(allow_plain=True):
        quire.convert(path, tmp_path / "plain", into="chronicle")
    assert quire.verify(tmp_path / "plain").messages == 2
