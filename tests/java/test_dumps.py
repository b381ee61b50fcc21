"""Dumps of the same files, by Java's own tool and by Quire."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer
from wire_documents import Documents

pytestmark = pytest.mark.java

COUNT = 3000


def documents(dump: str) -> list[str]:
    """Return the documents of the roll file, in a dump or what Java printed."""
    roll_file = re.split(r"^## .*metadata\.cq4t$", dump, flags=re.MULTILINE)[0]
    return re.split(r"^(?=# position: )", roll_file, flags=re.MULTILINE)[1:]


def test_random_messages_are_dumped_as_java_dumps_them(tmp_path: Path) -> None:
    made = Documents(seed=1)
    messages = [made.message() for _ in range(COUNT)]
    read_back = 0
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        for message in messages:
            appender.write_bytes(message)
            try:
                shown = quire.types.to_yaml(message)
            except quire.errors.WireError:
                continue
            try:
                appender.write_yaml(shown)
                read_back += 1
            except quire.errors.WireError:
                continue
        ours = queue.dump()
    java = "\n".join(JavaPeer().run("dump", dir=tmp_path, files=True)) + "\n"

    assert len(documents(java)) > COUNT + read_back
    different = [
        f"Java: {theirs}\nQuire: {own}"
        for theirs, own in zip(documents(java), documents(ours), strict=True)
        if theirs != own
    ]
    assert not different, different[0]
    assert read_back > COUNT / 2
