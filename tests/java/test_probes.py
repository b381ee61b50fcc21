"""Documents of every scalar and shape between the two languages, as Java itself writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer
from probes import DOCUMENTS, FIELDS, ROWS

pytestmark = pytest.mark.java

WRITTEN = {
    name: bytes.fromhex(row["bytes"])
    for name, row in ROWS.items()
    if "bytes" in row and not name.endswith(" of 5.26ea7")
}


def accepted(documents: Mapping[str, bytes]) -> dict[str, dict[str, object]]:
    """What Java says of each document: does it know its own bytes, and read the same from them?"""
    lines = "".join(f"{payload.hex() or '-'} {name}\n" for name, payload in documents.items())
    answers = [json.loads(line) for line in JavaPeer().run_with_input("accept", lines)]
    return {answer.pop("name"): answer for answer in answers}


def test_java_accepts_what_it_wrote() -> None:
    answers = accepted(WRITTEN)
    assert list(answers) == list(WRITTEN)
    assert [name for name, answer in answers.items() if False in answer.values()] == []


def test_java_tells_what_differs() -> None:
    wide = bytes.fromhex("c166a600010000")
    (answer,) = accepted({"int64 256": wide}).values()
    assert answer == {
        "bytes": False,
        "ours": WRITTEN["int64 256"].hex(),
        "theirs": wide.hex(),
        "object": False,
        "object_ours": "{String:f=Short:256}",
        "object_theirs": "{String:f=Integer:256}",
        "declared": True,
    }


def test_java_reads_from_quire_what_it_reads_from_itself(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        for name in [*FIELDS, *DOCUMENTS]:
            with appender.writing_document() as document:
                if name in FIELDS:
                    document.wire.write("f", FIELDS[name].value, FIELDS[name].type)
                else:
                    DOCUMENTS[name](document)
        with queue.tailer() as tailer:
            payloads = tailer.read_many(len(FIELDS) + len(DOCUMENTS))
    answers = accepted(dict(zip([*FIELDS, *DOCUMENTS], payloads, strict=True)))
    others = [name for name, answer in answers.items() if False in answer.values()]
    # Java itself writes the integer 0 for these, and so reads 0.0.
    assert sorted(others) == ["float32 -0.0", "float64 -0.0"]
