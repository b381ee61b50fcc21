"""Java's Vanilla Chronicle: the mains of interop/vanilla, and what they print.

java = vanilla_java(tid_bits=24)
java.run("write", dir=path, count=3, **JAVA_BLOCKS)
with quire.open(path, **QUIRE_BLOCKS, tid_bits=24) as queue: ...
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import quire
from java_peer import VANILLA, VANILLA_VERSION, JavaPeer, Option

# The same small files, as both sides name them.
INDEX_BLOCK = 8192
DATA_BLOCK = 65536
JAVA_BLOCKS: dict[str, Option] = {"index_block": INDEX_BLOCK, "data_block": DATA_BLOCK}
TID_BITS = 22
QUIRE_BLOCKS: Any = {
    "tid_bits": TID_BITS,
    "index_block_bytes": INDEX_BLOCK,
    "data_block_bytes": DATA_BLOCK,
}


def vanilla_java(*, tid_bits: int = TID_BITS, version: str = VANILLA_VERSION) -> JavaPeer:
    """The Java peer that gives a thread id that many bits of an index entry."""
    return JavaPeer(version, mains=VANILLA, jvm=[f"-Dos.max.pid.bits={tid_bits}"])


def vanilla_queue(path: Path, **options: Any) -> quire.vanilla.VanillaQueue:  # noqa: ANN401
    """The queue as Quire opens it, of files like Java's."""
    return quire.vanilla.VanillaQueue(path, **(QUIRE_BLOCKS | options))


def java_messages(
    java: JavaPeer,
    path: Path,
    **options: Option,
) -> list[tuple[int, bytes]]:
    """Indexes and payloads that Java's reader delivers."""
    lines = java.run("list", dir=path, **JAVA_BLOCKS, **options)
    rows = [line.split(" ") for line in lines if not line.startswith("last ")]
    return [(int(index, 16), bytes.fromhex(payload)) for index, _, payload in rows]
