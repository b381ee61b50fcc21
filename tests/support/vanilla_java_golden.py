"""
Makes tests/golden/vanilla/made.tar.xz by Java: `python tests/support/vanilla_java_golden.py`.

Sets of which only listings had come down to us, from the bytes of those; others that show a week,
24 bits of thread id, and the Indexed Chronicle. Each listing holds what Java's reader delivered,
and where a second reader, in plain Python, found it.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from java_peer import WEEKLY_VERSION, JavaPeer, Option
from vanilla_golden import MADE, original_listing, used_part
from vanilla_java import vanilla_java
from vanilla_reference import Geometry, entries, payload

DAY_MS = 86_400_000
# 2009-01-08: weeks begin on Thursdays, as 1970 did. That of 2009-12-31 has the number of the first
# week of 2009, so that Java delivers what it finds there twice.
THURSDAY_MS = 14_252 * DAY_MS
INDEX_BLOCK, DATA_BLOCK = 1024, 4096
INDEXED_DATA_BLOCK = 8192


class Made(NamedTuple):
    """A set: who writes it, how its cycles are, and its messages by cycle."""

    name: str
    note: str
    java: JavaPeer
    cycle: str
    length_ms: int
    sequence_bits: int
    format: str
    tid_bits: int
    messages: dict[int, list[dict[str, Any]]]
    threads: int = 1

    @property
    def options(self) -> dict[str, Option]:
        return {
            "cycle": self.cycle,
            "cycle_format": self.format,
            "index_block": INDEX_BLOCK,
            "data_block": DATA_BLOCK,
        }


def sets() -> list[Made]:
    """The Vanilla sets."""
    sixteen, weekly = vanilla_java(tid_bits=16), vanilla_java(version=WEEKLY_VERSION)
    week = 7 * DAY_MS
    first = THURSDAY_MS // week
    weeks = {first + number: texts(f"week {number}", 5) for number in (0, 1, 3)}
    pid22 = by_cycle("pid22")
    made = "made again from its listing"
    of_weeks = "cycles of 604800000 ms, by Chronicle 3.4.4"
    return [
        Made(
            "minutes", made, sixteen, "MINUTES", 60_000, 34, "yyyyMMddHHmm", 16, by_cycle("minutes")
        ),
        Made("nested", made, sixteen, "DAYS", DAY_MS, 40, "yyyy/MM/dd", 16, by_cycle("nested")),
        Made("pid22", made, vanilla_java(), "DAYS", DAY_MS, 40, "yyyyMMdd", 22, pid22, 2),
        Made(
            "pid24",
            "the messages of pid22, with 24 bits of thread id",
            vanilla_java(tid_bits=24),
            *("DAYS", DAY_MS, 40, "yyyyMMdd", 24, pid22, 3),
        ),
        Made("weeks", of_weeks, weekly, "WEEKS", week, 40, "yyyyMMdd", 22, weeks),
        Made("weeks_numbered", of_weeks, weekly, "WEEKS", week, 40, "yyyyww", 22, weeks),
    ]


def by_cycle(name: str) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for excerpt in original_listing(name)["excerpts"]:
        message = {key: excerpt[key] for key in ("hex", "value")}
        found.setdefault(excerpt["cycle"], []).append(message)
    return found


def texts(prefix: str, count: int) -> list[dict[str, Any]]:
    """Records of kind 7, as of the other sets: the kind, and text."""
    lines = [f"{prefix} message {number}" for number in range(count)]
    return [
        {"hex": (b"\7" + line.encode()).hex(), "value": {"kind": 7, "ascii": line}}
        for line in lines
    ]


def write(made: Made, path: Path) -> dict[str, Any]:
    """Have Java write a set; its listing."""
    for cycle, messages in made.messages.items():
        made.java.run_with_input(
            "write",
            "".join(f"{message['hex']}\n" for message in messages),
            dir=path,
            hex=True,
            start=cycle * made.length_ms,
            threads=made.threads,
            **made.options,
        )
    count = sum(map(len, made.messages.values()))
    # In search of another minute it would look for each since.
    limit = count if made.cycle == "MINUTES" else None
    *listed, _ = made.java.run("list", dir=path, limit=limit, **made.options)
    folders = sorted({file.parent for file in path.rglob("index-*")})
    found = [
        excerpt
        for (cycle, messages), folder in zip(made.messages.items(), folders, strict=True)
        for excerpt in excerpts(made, folder, cycle, messages)
    ]
    lines = [f"{it['index']:x} {it['len']} {it['hex']}".rstrip() for it in found]
    assert [*map(str.rstrip, listed)] == lines
    geometry = {
        "fmt": made.format,
        "length": made.length_ms,
        "ebits": made.sequence_bits,
        "index_block": INDEX_BLOCK,
        "data_block": DATA_BLOCK,
        "tid_bits": made.tid_bits,
    }
    files = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
    return {
        "note": f"{made.note}; Chronicle {made.java.version}",
        "geometry": geometry,
        "count": count,
        "files": files,
        "excerpts": found,
    }


def excerpts(
    made: Made, folder: Path, cycle: int, messages: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Where each message of a cycle lies."""
    geometry = Geometry(made.tid_bits, INDEX_BLOCK, DATA_BLOCK, made.sequence_bits)
    shift = 64 - made.tid_bits
    found: list[dict[str, Any]] = []
    for (sequence, entry), message in zip(entries(folder, geometry), messages, strict=True):
        data = payload(folder, entry, geometry)
        assert data.hex() == message["hex"]
        number, position = divmod(entry & ((1 << shift) - 1), DATA_BLOCK)
        found.append(
            {
                "index": (cycle << made.sequence_bits) + sequence,
                "cycle": cycle,
                "seq": sequence,
                "len": len(data),
                **message,
                "tid": entry >> shift,
                "data_file": number,
                "pos": position,
            }
        )
    return found


def write_indexed(folder: Path) -> dict[str, Any]:
    """400 messages of 1 to 90 bytes; its listing has their indexes, and those of the paddings."""
    java = vanilla_java()
    messages = [
        bytes((7 * number + place) % 251 for place in range(1 + 37 * number % 90)).hex()
        for number in range(400)
    ]
    where: dict[str, Option] = {"path": folder / "q", "data_block": INDEXED_DATA_BLOCK}
    java.run_with_input("indexed-write", "".join(f"{it}\n" for it in messages), **where)
    *listed, last = (line.split() for line in java.run("indexed-list", **where))
    rows = [
        {"index": int(index), "padding": True}
        if rest == ["padding"]
        else {"index": int(index), "hex": rest[1]}
        for index, *rest in listed
    ]
    assert [row["hex"] for row in rows if "hex" in row] == messages
    return {
        "note": f"PATH is indexed/q; Chronicle {java.version}",
        "index_block": 4096,
        "data_block": INDEXED_DATA_BLOCK,
        "last": int(last[1]),
        "excerpts": rows,
    }


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file as everybody would: no owner, no time."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def main() -> None:
    """Write the archive: of each file the part before the zeros at its end, as of the other."""
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(MADE, "w:xz", preset=9) as archive:
        base = Path(scratch)
        listings = {made.name: write(made, base / made.name) for made in sets()}
        listings["indexed"] = write_indexed(base / "indexed")
        for name, listed in listings.items():
            add(archive, f"{name}.json", json.dumps(listed).encode())
            for file in sorted((base / name).rglob("*")):
                if file.is_file():
                    with file.open("rb") as opened:
                        used = used_part(opened, file.stat().st_size)
                    add(archive, str(file.relative_to(base)), used)


if __name__ == "__main__":
    main()
