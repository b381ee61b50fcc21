"""Messages and whole queues as text, against the dumps that Java made of the same files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quire
from golden_sets import JAVA, name_of
from paths import GOLDEN
from queues import copy_of
from quire._native import Dump
from wire_documents import Documents

DUMPED = [golden for golden in JAVA if (golden / "dump.txt").exists()]

# The lines in which a dump differs from Java's: docs/compatibility.md says why.
DIFFERENT = {
    "b_scalars": [(r'"k\uFFE9y": 1', r'"k\xE9y": 1')],
}

# What of the probes is shown otherwise, and how: the same reasons.
UNLIKE_JAVA: dict[str, Callable[[str], str]] = {
    "object map of other keys": lambda java: java.replace("BUY, 4:", "BUY: 4"),
    "object map of leaf keys": lambda java: java.replace(" }, x:", " }: x"),
    "object map of enum keys": lambda java: java.replace("BUY, 1:", "BUY: 1"),
    "history as bytes of one source of 5.26ea7": lambda java: java.replace(SERVICE, ""),
    "history as bytes of three sources of 5.26ea7": lambda java: java.replace(SERVICE, ""),
}
SERVICE = ",\n  serviceName: 0"


def java_dump(golden: Path) -> str:
    text = (golden / "dump.txt").read_text("utf-8")
    for java, ours in DIFFERENT.get(golden.name, []):
        assert text.count(f"\n{java}\n") == 1
        text = text.replace(f"\n{java}\n", f"\n{ours}\n")
    return text


@pytest.mark.parametrize("golden", DUMPED, ids=name_of)
def test_a_queue_is_dumped_as_java_dumps_it(golden: Path, tmp_path: Path) -> None:
    with quire.open(copy_of(golden, tmp_path / "queue"), read_only=True) as queue:
        assert queue.dump().splitlines() == java_dump(golden).splitlines()


def test_a_dump_is_written_piece_by_piece(tmp_path: Path) -> None:
    class Pieces(list[str]):
        def write(self, piece: str) -> None:
            self.append(piece)

    golden = next(golden for golden in DUMPED if golden.name == "m_block64k")
    pieces = Pieces()
    with quire.open(copy_of(golden, tmp_path / "queue"), read_only=True) as queue:
        queue.dump(pieces)
        assert "".join(pieces) == queue.dump()
    assert len(pieces) > 4


@pytest.mark.parametrize("golden", DUMPED, ids=name_of)
def test_its_files_are_dumped_one_by_one(golden: Path) -> None:
    dumped = "".join(
        f"## {file.name}\n" + b"".join(Dump(file)).decode()
        for file in sorted(golden.glob("*.cq4*"))
    )
    assert dumped == java_dump(golden)


def test_what_is_read_from_text_is_shown_the_same() -> None:
    yaml = "to: a\nsay: {\n  n: 1,\n  list: [\n    x,\n    2.5\n  ]\n}\n"
    message = quire.types.parse_yaml(yaml)

    assert quire.types.to_yaml(message) == yaml
    assert quire.types.to_json(message) == '{"to":"a","say":{"n":1,"list":["x",2.5]}}'
    assert quire.types.parse_json(quire.types.to_json(message)) == message


def test_text_that_cannot_be_read_is_reported_with_its_place() -> None:
    with pytest.raises(quire.errors.WireError, match="a comma or ] found=the end line=2 column=1"):
        quire.types.parse_yaml("a: [1\n")
    with pytest.raises(quire.errors.WireError, match="expected value at line 1 column 6"):
        quire.types.parse_json('{"a":}')
    with pytest.raises(quire.errors.WireError, match="expected=a name found=0x72"):
        quire.types.to_yaml(b"raw bytes")
    with pytest.raises(quire.errors.WireError, match="expected=a value found=0x8b"):
        quire.types.to_json(b"\x82\x02\x00\x00\x00\x8b\x8a")


def test_a_message_is_shown_where_it_is_read(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        index = appender.write_yaml("to: a\nsay: !Greeting\n  text: hello\n")
        appender.write_json('{"@Greeting":{"text":"hello"}}')
        appender.write_bytes(b"\xb9\x01a\x8b")

        with tailer.reading_document() as document:
            assert document.to_yaml() == "to: a\nsay: !Greeting {\n  text: hello\n}\n"
            assert document.to_json() == '{"to":"a","say":{"@Greeting":{"text":"hello"}}}'
            assert document.to_dict() == {
                "to": "a",
                "say": quire.Typed("Greeting", {"text": "hello"}),
            }
            shown = f"index={index:#x}, {document.to_json()}"
            assert repr(document) == f"ReadDocument({tmp_path}, {shown})"
        assert repr(document) == f"ReadDocument({tmp_path}, index={index:#x}, closed)"
        typed, damaged = tailer.read(), tailer.read()
        with tailer.reading_document() as document:
            shown = f"{tmp_path}, index={index + 3:#x}, not present"
            assert repr(document) == f"ReadDocument({shown})"
    assert typed
    assert typed.to_yaml() == "!Greeting {\n  text: hello\n}\n"
    assert typed.to_dict() == {"text": "hello"}
    assert repr(typed) == f'Excerpt(index={index + 1:#x}, {{"@Greeting":{{"text":"hello"}}}})'
    assert damaged
    assert repr(damaged) == f"Excerpt(index={index + 2:#x}, b9 01 61 8b)"
    assert damaged.to_json() == '{"@!binary":"uQFhiw=="}'
    with pytest.raises(quire.errors.WireError, match=f"found=0x8b .* index={index + 2:#x}"):
        damaged.to_dict()


PROBES = json.loads((GOLDEN / "wire" / "probes.json").read_text("utf-8"))
SHOWN = [probe for probe in PROBES if probe.get("bytes") and "yaml" in probe]


def shown_documents(dump: str) -> list[str]:
    """Return what a dump shows of each message, without the lines in front of it."""
    documents = re.split(r"^# position: \d+, header: \d+\n", dump, flags=re.MULTILINE)[1:]
    return [
        document.removeprefix("--- !!data #binary\n").split("\n...\n")[0].rstrip("\n") + "\n"
        for document in documents
    ]


def is_hexadecimal(shown: str) -> bool:
    return re.match(r"[0-9a-f]{8} ", shown) is not None


def test_what_java_wrote_is_shown_as_java_shows_it(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        for probe in SHOWN:
            appender.write_bytes(bytes.fromhex(probe["bytes"]))
        roll_file = queue.dump().split("## metadata.cq4t\n")[0]
    documents = shown_documents(roll_file)[-len(SHOWN) :]

    different = {
        probe["name"]: (probe["yaml"], shown)
        for probe, shown in zip(SHOWN, documents, strict=True)
        if shown != probe["yaml"] and not (is_hexadecimal(shown) and is_hexadecimal(probe["yaml"]))
    }

    assert sorted(different) == sorted(UNLIKE_JAVA)
    for name, (java, ours) in different.items():
        assert UNLIKE_JAVA[name](java) == ours


def test_what_is_shown_of_it_can_be_read_back() -> None:
    count = 0
    for probe in SHOWN:
        message = bytes.fromhex(probe["bytes"])
        try:
            shown = quire.types.to_yaml(message)
        except quire.errors.WireError:
            assert is_hexadecimal(probe["yaml"]) or probe["yaml"].startswith("--- !!data\n")
            continue
        count += 1
        without_comments = re.sub(r"(^ *# .*|# gzip|# lzw)\n", "", shown, flags=re.MULTILINE)
        again = quire.types.to_yaml(quire.types.parse_yaml(shown))
        if "# length: " in shown:  # room for more longs, which a list does not have
            assert again.split() == without_comments.replace(", 0", ",\n0").split()
        else:
            assert again == without_comments, probe["name"]
    assert count > 500


def shown_again(seed: int) -> bool:
    """Show random messages, read what was shown, and show it again; whether there were any."""
    made, count = Documents(seed), 0
    for message in [made.message() for _ in range(20)]:
        try:
            shown = quire.types.to_yaml(message)
        except quire.errors.WireError:  # a byte below 80 in front
            continue
        # Neither comments nor the place where history stood are kept.
        if "# " not in shown and "sources: " not in shown:
            assert quire.types.to_yaml(quire.types.parse_yaml(shown)) == shown
            count += 1
        json_shown = quire.types.to_json(message)
        json.loads(json_shown)
        assert quire.types.to_json(quire.types.parse_json(json_shown)) == json_shown
    return count > 0


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_random_messages_are_read_from_what_is_shown_of_them(seed: int) -> None:
    assert shown_again(seed)


LARGE = [2**63, -(2**63) - 1, 12345678901234567890, 10**40]
WRITERS = [
    ("write_json", '{"id": 1, "order": {"legs": [{"size": NUMBER}]}}', "order.legs.size"),
    ("write_json", '{"order": {"a": "1e30", "size":NUMBER}, "b": 1e30}', "order.size"),
    ("write_yaml", "id: 1\norder: {\n  legs: [ { size: NUMBER } ]\n}\n", "order.legs.size"),
    ("write_yaml", "id: 1\norder:\n  size: NUMBER\n", "order.size"),
]


@pytest.mark.parametrize("number", LARGE)
@pytest.mark.parametrize(("method", "text", "field"), WRITERS)
def test_integers_of_more_than_64_bits_are_refused_with_their_field(
    method: str, text: str, field: str, number: int, tmp_path: Path
) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        expected = f"an integer of more than 64 bits: field={field} value={number}"
        with pytest.raises(quire.errors.WireError, match=expected.replace("+", r"\+")):
            getattr(appender, method)(text.replace("NUMBER", str(number)))
        assert queue.last_index is None


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 0])
@pytest.mark.parametrize(("method", "text", "_field"), WRITERS)
def test_integers_of_64_bits_and_other_numbers_are_kept(
    method: str, text: str, _field: str, number: int, tmp_path: Path
) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        getattr(appender, method)(text.replace("NUMBER", str(number)))
        assert str(number) in quire.types.to_json(queue.tailer().read_bytes() or b"")
        for other in ("1e40", "123456789012345678901234567890.5", '"12345678901234567890"'):
            getattr(appender, method)(text.replace("NUMBER", other))
