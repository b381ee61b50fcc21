"""The YAML of every probe is that of Java's dump."""

from __future__ import annotations

import pytest

import quire
from probes import ROWS

WRITTEN = [name for name, row in ROWS.items() if row.get("bytes")]
HEXADECIMAL = [name for name in WRITTEN if ROWS[name]["yaml"].startswith("00000000  ")]
# Of these, what Quire shows as YAML: Java's copy of a UUID throws.
SHOWN = [
    *(name for name in HEXADECIMAL if "uuid" in name.lower()),
    *("object list of dates", "message times", "message times, declared"),
]
REFUSED = {*HEXADECIMAL, "raw bytes"} - {*SHOWN}
# A dump shows this string as it is, as Java does; `to_yaml` has to be read back.
BARE_QUOTES = "text '\"it's\"'"
# Java's key swallows its value.
KEYS = {
    "object map of other keys": ("BUY, 4:", "BUY: 4"),
    "object map of enum keys": ("BUY, 1:", "BUY: 1"),
    "object map of leaf keys": ("}, x:", "}: x"),
}
# A history of 5.26 as bytes: what follows is left out.
SERVICE = "  ],\n  serviceName: 0\n}"


@pytest.mark.parametrize("name", [name for name in WRITTEN if name not in {*SHOWN, *REFUSED}])
def test_yaml_is_that_of_javas_dump(name: str) -> None:
    expected = ROWS[name]["yaml"]
    if name == BARE_QUOTES:
        expected = expected.replace('"it\'s"', '"\\"it\'s\\""')
    if name in KEYS:
        assert KEYS[name][0] in expected
        expected = expected.replace(*KEYS[name])
    if name.startswith("history as bytes") and name.endswith(" of 5.26ea7"):
        assert SERVICE in expected
        expected = expected.replace(SERVICE, "  ]\n}")
    assert quire.types.to_yaml(bytes.fromhex(ROWS[name]["bytes"])) == expected


@pytest.mark.parametrize("name", SHOWN)
def test_yaml_where_java_has_hexadecimal(name: str) -> None:
    assert "!UUID " in quire.types.to_yaml(bytes.fromhex(ROWS[name]["bytes"]))


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_neither_can_show_it(name: str) -> None:
    with pytest.raises(quire.errors.WireError):
        quire.types.to_yaml(bytes.fromhex(ROWS[name]["bytes"]))
