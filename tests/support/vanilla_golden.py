"""Vanilla Chronicles that Java wrote, with a listing of each."""

from __future__ import annotations

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import IO, Any

from paths import GOLDEN

ORIGINAL = GOLDEN / "vanilla/files.tar.xz"
MADE = GOLDEN / "vanilla/made.tar.xz"  # by vanilla_java_golden.py
# Those of the original archive with files; of others it has the listing alone.
ORIGINALS = ["daily_default", "daily_small_mt", "hourly_gap", "queue_claimed"]
NAMES = [*ORIGINALS, "minutes", "nested", "pid22", "pid24"]
WEEKLY = ["weeks"]  # nothing says that their cycles are weeks
CHUNK = 1 << 16


def archive_of(name: str) -> Path:
    return ORIGINAL if name in ORIGINALS else MADE


@cache
def listing(name: str) -> dict[str, Any]:
    return read_listing(archive_of(name), name)


def original_listing(name: str) -> dict[str, Any]:
    """Return a listing of the original archive, whose files may be lost."""
    return read_listing(ORIGINAL, name)


def read_listing(path: Path, name: str) -> dict[str, Any]:
    with tarfile.open(path) as archive:
        found = archive.extractfile(f"{name}.json")
        assert found is not None
        listed: dict[str, Any] = json.load(found)
        return listed


def unpack(name: str, into: Path) -> Path:
    """Unpack the files of a set at the length that Java gave them; the archive has their start."""
    geometry = listing(name)["geometry"]
    with tarfile.open(archive_of(name)) as archive:
        for member in archive:
            packed = archive.extractfile(member) if member.name.startswith(f"{name}/") else None
            if packed is not None:
                (into / member.name).parent.mkdir(parents=True, exist_ok=True)
                with (into / member.name).open("wb") as file:
                    kind = "index_block" if "/index-" in member.name else "data_block"
                    file.write(packed.read())
                    file.truncate(geometry[kind])
    return into / name


def built(name: str, into: Path) -> Path:
    """Make the files of a set from its listing alone: no code of quire is asked."""
    listed = listing(name)
    geometry, files = listed["geometry"], {file: bytearray() for file in listed["files"]}
    folders = dict(zip(*cycles(listed), strict=True))
    per_file = geometry["index_block"] // 8
    for excerpt in listed["excerpts"]:
        folder, payload = folders[excerpt["cycle"]], bytes.fromhex(excerpt["hex"])
        data = files[f"{folder}/data-{excerpt['tid']}-{excerpt['data_file']}"]
        put(data, excerpt["pos"] - 4, (~len(payload) & 0xFFFFFFFF).to_bytes(4, "little") + payload)
        offset = excerpt["data_file"] * geometry["data_block"] + excerpt["pos"]
        entry = (excerpt["tid"] << (64 - geometry["tid_bits"])) + offset
        number, slot = divmod(excerpt["seq"], per_file)
        put(files[f"{folder}/index-{number}"], 8 * slot, entry.to_bytes(8, "little"))
    for file, content in files.items():
        kind = "index_block" if "/index-" in file else "data_block"
        (into / name / file).parent.mkdir(parents=True, exist_ok=True)
        with (into / name / file).open("wb") as out:
            out.write(content)
            out.truncate(geometry[kind])
    return into / name


def cycles(listed: dict[str, Any]) -> tuple[list[int], list[str]]:
    numbers = sorted({excerpt["cycle"] for excerpt in listed["excerpts"]})
    return numbers, sorted({file.rpartition("/")[0] for file in listed["files"]})


def put(content: bytearray, position: int, piece: bytes) -> None:
    content.extend(bytes(max(0, position + len(piece) - len(content))))
    content[position : position + len(piece)] = piece


def options_of(listed: dict[str, Any]) -> dict[str, Any]:
    """Return the options to open a queue of a listing with."""
    geometry = listed["geometry"]
    return {
        "cycle_format": geometry["fmt"],
        "cycle_length_ms": geometry["length"],
        "entries_per_cycle": 1 << geometry["ebits"],
        "tid_bits": geometry["tid_bits"],
        "index_block_bytes": geometry["index_block"],
        "data_block_bytes": geometry["data_block"],
    }


def files_of(path: Path) -> dict[str, bytes]:
    """Return the content of each file without the zeros at its end, and its length."""
    found: dict[str, bytes] = {}
    for file in sorted(path.rglob("*")):
        if file.is_file():
            with file.open("rb") as opened:
                used = used_part(opened, file.stat().st_size)
            found[str(file.relative_to(path))] = used + file.stat().st_size.to_bytes(8, "little")
    return found


def used_part(file: IO[bytes], size: int) -> bytes:
    content, end = bytearray(), 0
    for position in range(0, min(size, 1 << 21), CHUNK):
        file.seek(position)
        chunk = file.read(CHUNK)
        content += chunk
        end = len(content.rstrip(b"\0"))
    return bytes(content[:end])
