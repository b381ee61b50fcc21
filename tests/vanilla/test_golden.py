"""What Java Chronicle 3.6.4 wrote is read as its listings say, and written again byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quire
from any_format import open_vanilla
from vanilla_golden import NAMES, WEEKLY, built, files_of, listing, options_of, unpack

TYPED = [name for name in NAMES if name != "queue_claimed"]


def opened(name: str, path: Path) -> quire.JournalQueue | quire.vanilla.VanillaQueue:
    if name in WEEKLY:
        return open_vanilla(path, read_only=True, **options_of(listing(name)))
    return quire.open(path, read_only=True)


def expected(listed: dict[str, Any]) -> list[tuple[int, bytes]]:
    return [(it["index"], bytes.fromhex(it["hex"])) for it in listed["excerpts"]]


@pytest.mark.parametrize("name", [*NAMES, *WEEKLY])
def test_every_set_is_read_as_its_listing_says(name: str, tmp_path: Path) -> None:
    listed = listing(name)
    path = unpack(name, tmp_path)
    before = files_of(path)
    with opened(name, path) as queue:
        assert isinstance(queue, quire.vanilla.VanillaQueue)
        assert queue.cycle_format == listed["geometry"]["fmt"]
        assert queue.cycle_length_ms == listed["geometry"]["length"]
        found = [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]
        assert found == expected(listed)
        assert queue.entry_count == listed["count"]
        assert (queue.first_index, queue.last_index) == (found[0][0], found[-1][0])
    assert files_of(path) == before


def test_directories_with_week_numbers_are_read_once_they_are_renamed(tmp_path: Path) -> None:
    listed = listing("weeks_numbered")
    path = unpack("weeks_numbered", tmp_path)
    with pytest.raises(ValueError, match=r"week numbers.*roll_cycle='WEEKS'"):
        open_vanilla(path, read_only=True, **options_of(listed))
    for number, day in (("200902", "20090108"), ("200903", "20090115"), ("200905", "20090129")):
        (path / number).rename(path / day)
    options: dict[str, Any] = {"roll_cycle": "WEEKS", "tid_bits": 22}
    options |= {"data_block_bytes": 4096, "index_block_bytes": 1024}
    with open_vanilla(path, read_only=True, **options) as queue:
        assert [(it.index, it.data) for it in queue.tailer()] == expected(listed)


@pytest.mark.parametrize("name", [*NAMES, *WEEKLY])
def test_the_listings_hold_all_that_the_files_hold(name: str, tmp_path: Path) -> None:
    assert files_of(built(name, tmp_path / "built")) == files_of(unpack(name, tmp_path))


@pytest.mark.parametrize("name", [*NAMES, *WEEKLY])
def test_the_same_inputs_and_clock_make_the_same_bytes(name: str, tmp_path: Path) -> None:
    listed = listing(name)
    clock = quire.ManualClock()
    capacity = 128 if listed["geometry"]["data_block"] <= 1 << 20 else 1 << 17
    path = tmp_path / "written"
    with open_vanilla(path, clock=clock, **options_of(listed)) as queue:
        appenders: dict[tuple[int, int], quire.vanilla.VanillaAppender] = {}
        for excerpt in listed["excerpts"]:
            clock.now_ms = excerpt["cycle"] * listed["geometry"]["length"]
            key = (excerpt["cycle"], excerpt["tid"])
            if key not in appenders:
                appenders[key] = queue.appender(thread_id=excerpt["tid"])
            with appenders[key].writing_excerpt(capacity=capacity) as writer:
                writer.write_bytes(bytes.fromhex(excerpt["hex"]))
            assert writer.index == excerpt["index"]
    written = files_of(path)
    written.pop(".cycle-length", None)  # Java has no such file
    assert written == files_of(built(name, tmp_path))


def write_value(writer: quire.ExcerptWriter, value: dict[str, Any]) -> None:
    """Write a typed record as the Java program did."""
    writer.write_int8(value["kind"])
    match value["kind"]:
        case 0:
            writer.write_int64(value["long"])
            writer.write_int32(value["int"])
        case 1:
            writer.write_utf(value["utf_stopbit"])
            writer.write_int64(value["long"])
        case 2:
            writer.append(value["parseLong"])
            writer.append(" ")
            writer.append(value["parseDouble"])
            writer.append(" ")
        case 3:
            writer.write_utf16_length(value["utf"])
            writer.write_int32(value["int"])
        case 4:
            for name in ("stop1", "stop2", "stop3"):
                writer.write_stop_bit(value[name])
            writer.write_compact_int(value["compactInt"])
            writer.write_compact_long(value["compactLong"])
            writer.write_compact_double(value["compactDouble"])
            writer.write_compact_double(value["compactDouble2"])
        case 5:
            writer.write_boolean(value["bool"])
            writer.write_int16(value["short"])
            writer.write_char(chr(value["char"]))
            writer.write_int24(value["int24"])
            writer.write_int48(value["int48"])
            writer.write_float32(value["float"])
            writer.write_float64(value["double"])
            writer.write_enum(value["enum"])
        case 7:
            writer.write_bytes(value["ascii"].encode())
        case kind:
            pytest.fail(f"no such kind: {kind}")


def read_value(excerpt: quire.vanilla.VanillaExcerpt) -> dict[str, Any]:  # noqa: PLR0911 - one a kind
    """Read a typed record field by field."""
    kind = excerpt.read_int8()
    match kind:
        case 0:
            return {"kind": kind, "long": excerpt.read_int64(), "int": excerpt.read_int32()}
        case 1:
            return {"kind": kind, "utf_stopbit": excerpt.read_utf(), "long": excerpt.read_int64()}
        case 2:
            whole, number = excerpt.parse_int(), excerpt.parse_float()
            return {"kind": kind, "parseLong": whole, "parseDouble": number}
        case 3:
            text, number = excerpt.read_utf16_length(), excerpt.read_int32()
            return {"kind": kind, "utf": text, "int": number}
        case 4:
            return {
                "kind": kind,
                "stop1": excerpt.read_stop_bit(),
                "stop2": excerpt.read_stop_bit(),
                "stop3": excerpt.read_stop_bit(),
                "compactInt": excerpt.read_compact_int(),
                "compactLong": excerpt.read_compact_long(),
                "compactDouble": excerpt.read_compact_double(),
                "compactDouble2": excerpt.read_compact_double(),
            }
        case 5:
            return {
                "kind": kind,
                "bool": excerpt.read_boolean(),
                "short": excerpt.read_int16(),
                "char": ord(excerpt.read_char()),
                "int24": excerpt.read_int24(),
                "int48": excerpt.read_int48(),
                "float": excerpt.read_float32(),
                "double": excerpt.read_float64(),
                "enum": excerpt.read_enum(),
            }
        case _:
            return {"kind": kind, "ascii": excerpt.read_bytes(len(excerpt.view) - 1).decode()}


@pytest.mark.parametrize("name", TYPED)
def test_typed_fields_are_those_of_java_both_ways(name: str, tmp_path: Path) -> None:
    listed = listing(name)
    excerpts = [it for it in listed["excerpts"] if it["len"]]
    with quire.open(built(name, tmp_path), format="vanilla", read_only=True) as queue:
        found = [excerpt for excerpt in queue.tailer() if excerpt.data]
        for excerpt, known in zip(found, excerpts, strict=True):
            value = {key: it for key, it in known["value"].items() if key != "rest"}
            assert read_value(excerpt) == value
    with quire.open(tmp_path / "again", format="vanilla") as queue, queue.appender() as appender:
        for known in excerpts:
            with appender.writing_excerpt() as writer:
                write_value(writer, known["value"])
        payloads = [*queue.tailer().payloads()]
    for payload, known in zip(payloads, excerpts, strict=True):
        start = bytes.fromhex(known["hex"])
        # The text after the numbers of kind 2 is not in the listing as it was written.
        assert payload == (start[: len(payload)] if known["value"]["kind"] == 2 else start)
