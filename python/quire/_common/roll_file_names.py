"""The names of roll files that were compressed, and of the files beside a roll file."""

from __future__ import annotations

from typing import Final

COMPRESSED: Final = ".zst"
"""The suffix that compressed roll files have after their names."""
TIMES: Final = ".times.quire"
"""The suffix of files of append times, in place of the roll file's; Java ignores them."""
SEAL: Final = ".seal.quire"
"""The suffix of files of checksums, in place of the roll file's; Java ignores them."""
CHECKSUMS: Final = ".checksums.quire"
"""The suffix of appenders' checksum files, in place of the roll file's; Java ignores them."""
ROLL_FILE_ENDINGS: Final = (".cq4", f".cq4{COMPRESSED}", TIMES, SEAL, CHECKSUMS)
"""The endings of the names of roll files, compressed or not, and of the files beside them."""


def uncompressed(name: str) -> str:
    """Return the name, or path, of the roll file that a compressed one stands for."""
    return name.removesuffix(COMPRESSED) if name.endswith(f".cq4{COMPRESSED}") else name


def times_file(name: str) -> str:
    """Return the name, or path, of the append times of a roll file, compressed or not."""
    return uncompressed(name).removesuffix(".cq4") + TIMES


def seal_file(name: str) -> str:
    """Return the name, or path, of the checksums of a roll file, compressed or not."""
    return uncompressed(name).removesuffix(".cq4") + SEAL


def checksums_file(name: str) -> str:
    """Return the name, or path, of what appenders left beside a roll file, compressed or not."""
    return uncompressed(name).removesuffix(".cq4") + CHECKSUMS


def side_files(name: str) -> tuple[str, ...]:
    """Return the names, or paths, of all that may lie beside a roll file."""
    return times_file(name), seal_file(name), checksums_file(name)


def is_compressed(name: str) -> bool:
    """Return whether a file is a compressed roll file."""
    return uncompressed(name) != name
