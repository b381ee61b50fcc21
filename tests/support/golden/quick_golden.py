"""The golden Quick-Queues, made by the Java original: unpacked, listed, written again."""

from __future__ import annotations

import json
import os
import tarfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import quire
from paths import ROOT

ARCHIVE = ROOT / "tests" / "golden" / "quick-queue" / "quick-queue.tar.xz"
WITH_FILES = ("single_4k", "single_1g", "multi_4k")
LISTED = (*WITH_FILES, "multi_1g", "multi_dead_producer")


@dataclass(frozen=True)
class Listing:
    """What a golden queue holds."""

    page_bytes: int
    messages: list[dict[str, Any]]

    def delivered(self) -> list[tuple[int, str | None, bytes]]:
        """Return what a reader gets: all but the entries that are pending."""
        whole = [it for it in self.messages if "pending" not in it]
        return [(it["offset"], it.get("producer"), bytes.fromhex(it["hex"])) for it in whole]


def unpack(target: Path) -> None:
    """Unpack all sets; the pages of a gibibyte get their length, sparse."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(target, filter="data")
    for page in (target / "single_1g").iterdir():
        os.truncate(page, 1 << 30)


def listing(root: Path, name: str) -> Listing:
    """Return what is listed for a set."""
    found = json.loads((root / f"{name}.json").read_text("utf-8"))
    return Listing(found["page_size"], found["messages"])


def pack(message: quire.MessagePacker, value: dict[str, Any], payload: bytes) -> None:
    """Pack the fields of a listed message as its maker did."""
    kind = value["kind"]
    message.pack_byte(kind)
    match kind:
        case 0:
            message.pack_int(value["int"])
        case 1:
            message.pack_long(value["long"])
        case 2:
            message.pack_byte(value["byte"]).pack_boolean(value["bool"])
        case 3:
            message.pack_double(value["double"]).pack_float(value["float"])
        case 4:
            message.pack_string(value["string"])
        case 5:
            message.pack_unicode(value["unicode"])
        case 6:
            message.pack_decimal(_decimal(value))
        case 7:
            message.pack_short(value["short"]).pack_char(chr(value["char"]))
        case 9:
            message.pack_bytes(payload[5:])
        case _:
            assert len(payload) == 1


def unpacked(message: quire.MessageUnpacker) -> dict[str, Any]:  # noqa: PLR0911 - one a kind
    """Return the fields of a listed message."""
    kind = message.unpack_byte()
    match kind:
        case 0:
            return {"kind": kind, "int": message.unpack_int()}
        case 1:
            return {"kind": kind, "long": message.unpack_long()}
        case 2:
            return {"kind": kind, "byte": message.unpack_byte(), "bool": message.unpack_boolean()}
        case 3:
            double = message.unpack_double()
            return {"kind": kind, "double": double, "float": message.unpack_float()}
        case 4:
            return {"kind": kind, "string": message.unpack_string()}
        case 5:
            return {"kind": kind, "unicode": message.unpack_unicode()}
        case 6:
            return {"kind": kind, "decimal": message.unpack_decimal()}
        case 7:
            return {"kind": kind, "short": message.unpack_short(), "char": message.unpack_char()}
        case 9:
            return {"kind": kind, "array_len": len(message.unpack_bytes())}
        case _:
            return {"kind": kind}


def expected(value: dict[str, Any]) -> dict[str, Any]:
    """Return the listed fields as :func:`unpacked` has them."""
    match value["kind"]:
        case 6:
            return {"kind": 6, "decimal": _decimal(value)}
        case 7:
            return value | {"char": chr(value["char"])}
        case _:
            return value


def _decimal(value: dict[str, Any]) -> Decimal:
    digits = Decimal(value["unscaled"]).as_tuple()
    return Decimal((digits.sign, digits.digits, -value["scale"]))
