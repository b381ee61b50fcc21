"""The history of calls, in both its forms, as each release of Java reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer
from talk import Say

pytestmark = pytest.mark.java


# A release that does not know a form passes over the call behind it.
FORMS = {
    "5.20.123": ["fields"],
    "5.22.28": ["packed", "fields"],
    "5.26ea7": ["packed", "fields"],
    "2026.4": ["packed", "fields"],
}


@pytest.mark.parametrize("version", FORMS)
def test_every_release_reads_the_history_in_front_of_a_call(tmp_path: Path, version: str) -> None:
    with quire.open(tmp_path / "q", source_id=3, block_bytes=2**16) as queue:
        appender = queue.appender()
        appender.method_writer(Say, record_history=False).say("without")
        appender.method_writer(Say, history_form="packed").say("packed")
        appender.method_writer(Say, history_form="fields").say("fields")
        indexes = [excerpt.index for excerpt in queue.tailer()]

    # Older releases go by their own setting, not by what the queue says of its source id.
    lines = JavaPeer(version).run("method-read", dir=tmp_path / "q", block_size=65536, source_id=3)
    read = {it["calls"][0]: it for it in map(json.loads, lines) if it["calls"]}

    assert list(read) == [f"say(String:{form})" for form in ["without", *FORMS[version]]]
    for number, form in enumerate(["without", "packed", "fields"]):
        if found := read.get(f"say(String:{form})"):
            assert found["sources"] == [[3, f"{indexes[number]:x}"]]
            assert len(found["timings"]) == 2 - (form == "without")
            assert found["timings"] == sorted(found["timings"]), "one clock for both"
