"""Messages and whole queues as text, against the dumps that Java made of the same files."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from queues import copy_of
from quire._native import Dump
from test_reference import JAVA, name_of

DUMPED = [golden for golden in JAVA if (golden / "dump.txt").exists()]

# The lines in which a dump differs from Java's: docs/compatibility.md says why.
DIFFERENT = {
    "b_scalars": [(r'"k\uFFE9y": 1', r'"k\xE9y": 1')],
}


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


@pytest.mark.parametrize("golden", DUMPED, ids=name_of)
def test_its_files_are_dumped_one_by_one(golden: Path) -> None:
    dumped = "".join(
        f"## {file.name}\n" + b"".join(Dump(file)).decode()
        for file in sorted(golden.glob("*.cq4*"))
    )
    assert dumped == java_dump(golden)


def test_what_is_read_from_text_is_shown_the_same() -> None:
    yaml = "to: a\nsay: {\n  n: 1,\n  list: [\n    x,\n    2.5\n  ]\n}\n"
    message = quire.parse_yaml(yaml)

    assert quire.to_yaml(message) == yaml
    assert quire.to_json(message) == '{"to":"a","say":{"n":1,"list":["x",2.5]}}'
    assert quire.parse_json(quire.to_json(message)) == message


def test_text_that_cannot_be_read_is_told_with_its_place() -> None:
    with pytest.raises(quire.WireError, match="a comma or ] found=the end line=2 column=1"):
        quire.parse_yaml("a: [1\n")
    with pytest.raises(quire.WireError, match="expected value at line 1 column 6"):
        quire.parse_json('{"a":}')
    with pytest.raises(quire.WireError, match="expected=a name found=0x72"):
        quire.to_yaml(b"raw bytes")
    with pytest.raises(quire.WireError, match="expected=a value found=0x8b"):
        quire.to_json(b"\x82\x02\x00\x00\x00\x8b\x8a")
