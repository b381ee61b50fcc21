"""What Java's Vanilla Chronicle writes Quire reads, and the reverse."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import quire
from any_format import open_vanilla
from java_peer import WEEKLY_VERSION, JavaPeer, Option
from vanilla_java import JAVA_BLOCKS, QUIRE_BLOCKS, java_messages, vanilla_java, vanilla_queue

pytestmark = pytest.mark.java

INT32, INT64 = 1 << 31, 1 << 63
# Fields of every type, a message for each type.
FIELDS: dict[str, list[Any]] = {
    "int8": [0, 1, -128, 127],
    "int16": [0, -1, -(1 << 15), (1 << 15) - 1],
    "int24": [0, -1, -(1 << 23), (1 << 23) - 1],
    "int32": [0, -1, -INT32, INT32 - 1],
    "int48": [0, -1, -(1 << 47), (1 << 47) - 1],
    "int64": [0, -1, -INT64, INT64 - 1],
    "float32": [0.0, -1.5, 2.0**127, math.inf],
    "float64": [0.0, -1.1, 1e300, -math.inf],
    "boolean": [True, False],
    "char": ["A", "é", "\uffff"],
    "stop_bit": [0, 1, 127, 128, 300, -1, -2, -128, -129, INT64 - 1, -INT64],
    "compact_int": [0, -32766, -32767, -32768, 32767, 32768, INT32 - 1, -INT32],
    "compact_long": [0, 2 - INT32, 1 - INT32, -INT32, INT32, INT64 - 1, -INT64],
    "compact_double": [0.0, 1.5, 1.1, -1e300],
    "utf": ["", "EURUSD", "é€", "😀", "\0"],
    "utf16_length": ["", "EURUSD", "é€😀"],
    "enum": ["BUY", "SELL"],
    "append_int": [0, -12, INT64 - 1, -INT64],
    "append_float": [0.0, -0.0, 1.5, -0.1, 1e10, 1e-7, 123456.789, 0.1 + 0.2, 0.551232, 2.0**60],
    "append_bool": [True, False],
    "append_text": ["EURUSD", "", "é€😀"],
}


@pytest.fixture(scope="module")
def java() -> JavaPeer:
    return vanilla_java()


def write_field(excerpt: quire.ExcerptWriter, kind: str, value: Any) -> None:  # noqa: ANN401
    if kind.startswith("append_"):
        excerpt.append(value)
        excerpt.append("," if kind == "append_text" else " ")
    else:
        getattr(excerpt, f"write_{kind}")(value)


def read_field(excerpt: quire.vanilla.VanillaExcerpt, kind: str) -> object:
    if kind == "append_bool":
        return excerpt.parse_boolean(" ")
    if kind == "append_text":
        return excerpt.parse_text(",")
    method = kind.replace("append_", "parse_") if "append_" in kind else f"read_{kind}"
    return getattr(excerpt, method)()


def as_text(kind: str, value: Any) -> str:  # noqa: ANN401 - a field
    """A value as the options of the Java peer spell it."""
    if kind == "char":
        return str(ord(value))
    return (
        str(value).lower()
        if kind in {"boolean", "append_bool"}
        else str(value).replace("inf", "Infinity")
    )


def as_json(kind: str, value: Any) -> Any:  # noqa: ANN401 - a field
    """A value as the Java peer prints it."""
    return ord(value) if kind == "char" else value


@pytest.mark.parametrize("kind", FIELDS)
def test_fields_of_quire_are_those_of_java(java: JavaPeer, tmp_path: Path, kind: str) -> None:
    with vanilla_queue(tmp_path / "quire") as queue, queue.appender() as appender:
        for value in FIELDS[kind]:
            with appender.writing_excerpt() as excerpt:
                write_field(excerpt, kind, value)
                excerpt.write_int8(1)
        own = [*queue.tailer().payloads()]
    request = f"{kind} int8\n" * len(own)
    found = java.run_with_input("read-fields", request, dir=tmp_path / "quire", **JAVA_BLOCKS)
    assert [*map(json.loads, found)] == [
        {"values": [as_json(kind, value), 1], "left": 0} for value in FIELDS[kind]
    ]
    lines = "".join(f"{kind}={as_text(kind, value)} int8=1\n" for value in FIELDS[kind])
    java.run_with_input("write-fields", lines, dir=tmp_path / "java", **JAVA_BLOCKS)
    with vanilla_queue(tmp_path / "java") as queue:
        assert [*queue.tailer().payloads()] == own
        values = [read_field(excerpt, kind) for excerpt in queue.tailer()]
    assert values == FIELDS[kind]


# Objects, and how the Java peer spells and prints them.
OBJECTS: dict[str, tuple[Any, str, Any]] = {
    "none": (None, "", None),
    "bool": (True, "true", True),
    "int": (-7, "-7", -7),
    "long": (1 << 40, f"{1 << 40}", 1 << 40),
    "big_int": (-(1 << 80), f"{-(1 << 80)}", f"{-(1 << 80)}"),
    "float": (-1.1, "-1.1", -1.1),
    "decimal": (Decimal("1.50"), "1.50", "1.50"),
    "str": ("é€", "é€", "é€"),
    "date": (datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), "-1", -1),
}


class Side(Enum):
    """As in the Java peer."""

    BUY = 1
    SELL = 2


def test_objects_of_quire_are_those_of_java(java: JavaPeer, tmp_path: Path) -> None:
    with vanilla_queue(tmp_path / "quire") as queue, queue.appender() as appender:
        with appender.writing_excerpt() as excerpt:
            for value, _, _ in OBJECTS.values():
                excerpt.write_object(value)
        [own] = queue.tailer().payloads()
    request = " ".join(f"object_{kind}" for kind in OBJECTS)
    found = java.run_with_input(
        "read-fields", request + "\n", dir=tmp_path / "quire", **JAVA_BLOCKS
    )
    shown = [shown for _, _, shown in OBJECTS.values()]
    assert [*map(json.loads, found)] == [{"values": shown, "left": 0}]
    line = " ".join(f"object_{kind}={text}" for kind, (_, text, _) in OBJECTS.items())
    lines = f"{line}\nobject_enum=SELL int8=1\nobject_list=1\n"
    java.run_with_input("write-fields", lines, dir=tmp_path / "java", **JAVA_BLOCKS)
    with vanilla_queue(tmp_path / "java") as queue:
        message, of_enum, of_list = queue.tailer()
    assert message.data == own
    assert [message.read_object() for _ in OBJECTS] == [value for value, _, _ in OBJECTS.values()]
    with pytest.raises(
        quire.errors.UnsupportedError, match=r"class=.quire\.interop\.vanilla\.Fields\$Side"
    ):
        of_enum.read_object()
    assert (of_enum.read_object(Side), of_enum.read_int8()) == (Side.SELL, 1)
    with pytest.raises(quire.errors.UnsupportedError, match="an object that Java serialised"):
        of_list.read_object()


def test_floats_as_objects_have_the_bytes_of_java(java: JavaPeer, tmp_path: Path) -> None:
    values = [1e300, -1e-5, 1e7, 9_999_999.0, 0.001, 0.1 + 0.2, -0.0, math.inf]
    with vanilla_queue(tmp_path / "quire") as queue, queue.appender() as appender:
        for value in values:
            with appender.writing_excerpt() as excerpt:
                excerpt.write_object(value)
        own = [*queue.tailer().payloads()]
    assert own[0] == b"\x04\x071.0E300"
    spelled = [repr(value).replace("inf", "Infinity") for value in values]
    assert own == of_java(java, tmp_path / "java", "object_float", spelled)
    with vanilla_queue(tmp_path / "java", read_only=True) as queue:
        assert [excerpt.read_object() for excerpt in queue.tailer()] == values


def of_java(java: JavaPeer, path: Path, kind: str, values: Sequence[str]) -> list[bytes]:
    """What Java appends for each value."""
    lines = "".join(f"{kind}={value}\n" for value in values)
    java.run_with_input("write-fields", lines, dir=path, **JAVA_BLOCKS)
    with vanilla_queue(path, read_only=True) as queue:
        return [*queue.tailer().payloads()]


def of_quire(path: Path, values: Sequence[tuple[Any, dict[str, Any]]]) -> list[bytes]:
    with vanilla_queue(path) as queue, queue.appender() as appender:
        for value, options in values:
            with appender.writing_excerpt() as excerpt:
                excerpt.append(value, **options)
                excerpt.append(" ")
        return [*queue.tailer().payloads()]


def test_floats_as_text_are_exact_and_of_java(java: JavaPeer, tmp_path: Path) -> None:
    """Bytes are Java's near 1 and up to 2^63; either reads there what the other wrote, exactly."""
    rng = random.Random(7)  # noqa: S311 - values for a test
    values = [rng.random() * 10.0 ** rng.randint(-2, 18) for _ in range(1500)]
    values += [rng.randint(-(10**9), 10**9) / 10 ** rng.randint(0, 6) for _ in range(1500)]
    own = of_quire(tmp_path / "quire", [(value, {}) for value in values])
    assert own == of_java(java, tmp_path / "java", "append_float", [*map(repr, values)])
    request = "append_float\n" * len(values)
    found = java.run_with_input("read-fields", request, dir=tmp_path / "quire", **JAVA_BLOCKS)
    assert [json.loads(line)["values"] for line in found] == [[value] for value in values]
    with vanilla_queue(tmp_path / "java", read_only=True) as queue:
        assert [excerpt.parse_float() for excerpt in queue.tailer()] == values


def test_floats_are_rounded_as_java_rounds(java: JavaPeer, tmp_path: Path) -> None:
    rng = random.Random(7)  # noqa: S311 - values for a test
    rounded = [
        (rng.uniform(-1, 1) * 10.0 ** rng.randint(-4, 12), rng.randint(0, 18)) for _ in range(1000)
    ]
    rounded += [(1.005, 2), (-0.004, 2), (2.5, 0), (0.05, 1), (-0.0, 1), (math.inf, 3)]
    own = of_quire(tmp_path / "quire", [(value, {"precision": to}) for value, to in rounded])
    spelled = [f"{value!r}/{to}".replace("inf", "Infinity") for value, to in rounded]
    assert own == of_java(java, tmp_path / "java", "append_rounded", spelled)


def test_dates_and_times_are_those_of_java(java: JavaPeer, tmp_path: Path) -> None:
    times_ms = [0, 1_700_000_000_123, 86_399_999, 4_102_444_800_000]
    times = [datetime.fromtimestamp(ms / 1000, UTC) for ms in times_ms]
    for kind, values, given_ms in (
        ("datetime", times, times_ms),
        ("date", [it.date() for it in times], times_ms),
        ("time", [it.time() for it in times], [ms % 86_400_000 for ms in times_ms]),
    ):
        own = of_quire(tmp_path / kind, [(value, {}) for value in values])
        spelled = [*map(str, given_ms)]
        assert own == of_java(java, tmp_path / f"{kind}-java", f"append_{kind}", spelled)
        with vanilla_queue(tmp_path / f"{kind}-java", read_only=True) as queue:
            read = [getattr(it, f"parse_{kind}")() for it in queue.tailer()]
        assert read == values


def most_thread_ids() -> int:
    return int(Path("/proc/sys/kernel/pid_max").read_text())


@pytest.mark.parametrize("tid_bits", [16, 22, 24])
def test_thread_ids_of_any_width(tid_bits: int, tmp_path: Path) -> None:
    """Quire detects the width from what Java wrote, and appends with it."""
    if most_thread_ids() > 1 << tid_bits:
        pytest.skip(
            "Java's thread ids here need more bits: it would write entries that name others"
        )
    java = vanilla_java(tid_bits=tid_bits)
    java.run("write", dir=tmp_path, count=40, threads=3, **JAVA_BLOCKS)
    with quire.open(tmp_path, format="vanilla") as queue:
        assert queue.entry_count == 40
        queue.appender().write_many([b"quire"] * 40)
        read = [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]
    assert java_messages(java, tmp_path) == read
    assert len(read) == 80
    vanilla_queue(tmp_path / "other", tid_bits=tid_bits).appender().write_bytes(b"first")
    java.run("write", dir=tmp_path / "other", count=1, **JAVA_BLOCKS)
    with quire.open(tmp_path / "other", read_only=True) as other:
        assert [excerpt.data for excerpt in other.tailer()] == [b"first", b"message 0"]


@pytest.mark.parametrize(
    ("cycle", "cycle_format", "length_ms"),
    [
        ("SECONDS", "yyyyMMddHHmmss", 1000),
        ("MINUTES", "yyyyMMddHHmm", 60_000),
        ("HOURS", "yyyyMMddHH", 3_600_000),
        ("DAYS", "yyyyMMdd", 86_400_000),
        ("DAYS", "yyyy/MM/dd", 86_400_000),
    ],
)
def test_cycles_of_any_length(
    java: JavaPeer, tmp_path: Path, cycle: str, cycle_format: str, length_ms: int
) -> None:
    """Each of them takes turns to append in cycles, one of which is left out."""
    cycles: dict[str, Option] = {"cycle": cycle, "cycle_format": cycle_format}
    # Not long ago: Java's reader looks for every cycle since.
    start = (time.time_ns() // 1_000_000 // length_ms - 20) * length_ms
    clock = quire.ManualClock(start)
    options: dict[str, Any] = {"roll_cycle": cycle, "cycle_format": cycle_format, "clock": clock}
    written: list[tuple[int, bytes]] = []
    with vanilla_queue(tmp_path, **options) as queue, queue.appender() as appender:
        for number in (0, 1, 3):
            clock.now_ms = start + number * length_ms
            first = f"quire {number}".encode()
            written.append((appender.write_bytes(first), first))
            [index] = java.run(
                "write",
                dir=tmp_path,
                count=1,
                first=number,
                start=clock.now_ms,
                **cycles,
                **JAVA_BLOCKS,
            )
            written.append((int(index, 16), f"message {number}".encode()))
    assert java_messages(java, tmp_path, **cycles) == written
    with quire.open(tmp_path, read_only=True) as found:
        assert isinstance(found, quire.vanilla.VanillaQueue)
        assert (found.cycle_format, found.cycle_length_ms) == (cycle_format, length_ms)
        assert [(it.index, it.data) for it in found.tailer()] == written


def test_cycles_of_a_week_of_the_older_release(tmp_path: Path) -> None:
    java = vanilla_java(version=WEEKLY_VERSION)
    week_ms = 7 * 86_400_000
    weekly: dict[str, Option] = {"cycle": "WEEKS"}
    start = (time.time_ns() // 1_000_000 // week_ms - 5) * week_ms
    java.run("write", dir=tmp_path, count=3, start=start, step=week_ms, **weekly, **JAVA_BLOCKS)
    clock = quire.ManualClock(start + 2 * week_ms)
    with vanilla_queue(tmp_path, roll_cycle="WEEKS", clock=clock) as queue:
        queue.appender().write_bytes(b"quire")
        read = [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]
    assert [data for _, data in read] == [b"message 0", b"message 1", b"message 2", b"quire"]
    assert java_messages(java, tmp_path, **weekly) == read


def test_java_reads_on_after_an_index_was_rebuilt(java: JavaPeer, tmp_path: Path) -> None:
    count = 1500  # more than one index file holds
    with vanilla_queue(tmp_path) as queue, queue.appender() as appender:
        appender.write_many(f"quire {number}".encode() for number in range(count))
        [cycle] = queue.cycles
        folder = Path(queue.directory_for_cycle(cycle))
    java.run("write", dir=tmp_path, count=count, start=cycle * 86_400_000, threads=2, **JAVA_BLOCKS)
    before = java_messages(java, tmp_path)
    for file in folder.glob("index-*"):
        file.unlink()
    [rebuilt] = quire.vanilla.rebuild_index(
        tmp_path, files=quire.vanilla.FileOptions(**QUIRE_BLOCKS)
    )
    assert (rebuilt.messages, rebuilt.recovered) == (2 * count, 2 * count)
    after = java_messages(java, tmp_path)
    assert [index for index, _ in after] == [index for index, _ in before]
    assert sorted(data for _, data in after) == sorted(data for _, data in before)
    # Of each thread in its order; the order between threads is not in the files.
    quires = [data for _, data in after if data.startswith(b"quire")]
    assert quires == [f"quire {number}".encode() for number in range(count)]
    java.run("write", dir=tmp_path, count=1, first=count, start=cycle * 86_400_000, **JAVA_BLOCKS)
    with vanilla_queue(tmp_path, read_only=True) as queue:
        assert [*queue.tailer().payloads()][2 * count :] == [f"message {count}".encode()]


def test_files_of_the_default_sizes(java: JavaPeer, tmp_path: Path) -> None:
    with open_vanilla(tmp_path, tid_bits=22) as queue:
        queue.appender().write_many([b"", b"quire"])
    java.run("write", dir=tmp_path, count=2)
    with quire.open(tmp_path, format="vanilla") as queue:
        queue.appender().write_bytes(b"again")
        found = [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]
    assert [data for _, data in found] == [b"", b"quire", b"message 0", b"message 1", b"again"]
    lines = java.run("list", dir=tmp_path)
    assert lines[:-1] == [f"{index:x} {len(data)} {data.hex()}" for index, data in found]


def test_java_moves_to_the_indexes_that_quire_returned(java: JavaPeer, tmp_path: Path) -> None:
    """The last index, a seek, and a seek past the end."""
    with vanilla_queue(tmp_path) as queue:
        last = queue.appender().write_many(b"%d" % number for number in range(3000))
        assert last is not None
        assert last == queue.last_index
        tailer = queue.tailer()
        assert tailer.move_to_index(last - 1)
        assert not tailer.move_to_index(last + 1)
    lines = java.run("list", dir=tmp_path, **{"from": f"{last - 1:x}"}, **JAVA_BLOCKS)
    assert lines == [
        f"{last - 1:x} 4 {b'2998'.hex()}",
        f"{last:x} 4 {b'2999'.hex()}",
        f"last {last:x}",
    ]
    past = java.run("list", dir=tmp_path, **{"from": f"{last + 1:x}"}, **JAVA_BLOCKS)
    assert past == [f"last {last:x}"]
