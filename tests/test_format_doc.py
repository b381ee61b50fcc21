from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from paths import TESTS
from reference import ROLL_CYCLES, shift_of
from reference_writer import NEW_TABLE

DOCS = TESTS.parent / "docs"
NOW_MS = 1_700_000_000_000
FENCE = re.compile(r"^```hex file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"([0-9a-f]+): ((?:[0-9a-f]{2} )*[0-9a-f]{2})(?: .*)?")
CYCLE = re.compile(
    r"^\| ([A-Z0-9_]+) \| `\S+` \|(?: \d+ \|){3} (\d+) \| (\d+) \| (\d+) \| `(\S+)` \|$",
    re.MULTILINE,
)
NAME = re.compile(
    r"^\| ([A-Z_]+) \| (-?[\d ]*\d)(?: \(.*\))? \| (\d+) \| `(\S+)` \|$", re.MULTILINE
)
KEY = re.compile(r"^\| `([\w.]+)` \| (-?\d+) \|", re.MULTILINE)
STOP_BIT = re.compile(r"(?<=\| )(-?\d+) \| `([0-9a-f ]+)`")


def page() -> str:
    return (DOCS / "format.md").read_text(encoding="utf-8")


def hex_lines() -> Iterator[tuple[str, int, bytes, str]]:
    for file, body in FENCE.findall(page()):
        for line in body.splitlines():
            match = LINE.fullmatch(line)
            assert match, f"not a line of bytes: {line!r}"
            yield file, int(match[1], 16), bytes.fromhex(match[2]), line


def test_every_hex_block_of_the_page_is_in_the_file_it_names() -> None:
    lines = list(hex_lines())

    wrong: list[str] = []
    for file, offset, expected, line in lines:
        found = (TESTS / "golden" / file).read_bytes()[offset : offset + len(expected)]
        if found != expected:
            wrong.append(f"{file} {line!r} found {found.hex(' ')}")

    assert len(lines) > 150
    assert not wrong, "\n".join(wrong)


def test_every_hex_block_has_the_form_that_is_checked() -> None:
    assert len(re.findall("^```hex", page(), re.MULTILINE)) == len(FENCE.findall(page()))


@pytest.mark.parametrize("row", CYCLE.findall(page()), ids=lambda row: row[0])
def test_each_line_of_the_roll_cycle_table_agrees_with_the_arithmetic(row: tuple[str, ...]) -> None:
    name, most, shift, cycle, file = row
    weekly = 259_200_000 if name == "WEEKLY" else 0
    roll_cycle = ROLL_CYCLES[name]._replace(epoch_ms=weekly)
    slots = roll_cycle.index_count**2 * roll_cycle.index_spacing

    assert shift_of(roll_cycle.index_count, roll_cycle.index_spacing) == int(shift)
    assert min(slots, 2 ** int(shift) - 1) == int(most)
    assert roll_cycle.cycle_at(NOW_MS) == int(cycle)
    assert roll_cycle.file_name(int(cycle)) == file
    assert roll_cycle.cycle_of_file(file) == int(cycle)


def test_the_roll_cycle_table_is_complete() -> None:
    assert len(ROLL_CYCLES) == 28
    assert len(CYCLE.findall(page())) == 28
    assert len({cycle.pattern for cycle in ROLL_CYCLES.values()}) == 28


@pytest.mark.parametrize("row", NAME.findall(page()))
def test_each_line_of_the_epoch_table_agrees_with_the_arithmetic(row: tuple[str, ...]) -> None:
    name, epoch, cycle, file = row
    roll_cycle = ROLL_CYCLES[name]._replace(epoch_ms=int(epoch.replace(" ", "")))

    assert roll_cycle.cycle_at(NOW_MS) == int(cycle)
    assert roll_cycle.file_name(int(cycle)) == file
    assert roll_cycle.cycle_of_file(file) == int(cycle)


def test_every_week_has_a_name_of_its_own_and_reads_back() -> None:
    weekly = ROLL_CYCLES["WEEKLY"]._replace(epoch_ms=259_200_000)
    names = [weekly.file_name(cycle) for cycle in range(5000)]

    assert [weekly.cycle_of_file(name) for name in names] == list(range(5000))
    assert len(set(names)) == 5000


def test_the_keys_of_a_new_table_are_those_of_the_page() -> None:
    assert [(key, int(value)) for key, value in KEY.findall(page())] == list(NEW_TABLE.items())


def test_the_stop_bit_table_agrees_with_the_rule() -> None:
    rows = STOP_BIT.findall(page())

    assert len(rows) == 12
    for value, expected in rows:
        assert stop_bits(int(value)).hex(" ") == expected


def stop_bits(value: int) -> bytes:
    rest, groups = value ^ (value >> 63), list[int]()
    while rest or not groups:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*groups, 0]) if value < 0 else bytes([*groups[:-1], groups[-1] & 0x7F])
