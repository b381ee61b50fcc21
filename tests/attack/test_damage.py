"""
Files cut short or changed: what is read is right or an error, and nothing crashes.

The loops over every bit and every length are Rust (`crates/fuzz/src/damage.rs`) and are run from
here; what follows them goes through Python, with samples of the same damages and of larger ones.
"""

from __future__ import annotations

import mmap
import os
import random
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pytest

import quire
from golden_sets import MAIN, name_of
from paths import GOLDEN, ROOT
from queues import START_MS, UNLOCKED, WRITE_LOCK, copy_of, exit_code, fork
from reference import Store, read_queue
from tally import TORTURE, Tally

SMALL = [
    MAIN / "f_rc_test4_daily",
    MAIN / "g_index_test4_secondly",
    MAIN / "h_named_tailers",
    MAIN / "l_crash_pos",
    GOLDEN / "java-2026.4" / "bytes",
    GOLDEN / "java-5.22.28" / "metadata",
]
FILES = [(golden, "*.cq4") for golden in SMALL] + [(golden, "*.cq4t") for golden in SMALL[2:3]]
LIMIT_S = 300
PARTS = 4  # some cases wait
APPENDED = b"appended to what was left"
SEED = 20_240_115
Read: TypeAlias = "list[tuple[int, bytes]]"
Damage: TypeAlias = "tuple[str, str, bytes]"  # what was done, to which file, and what it holds then


def case_of(value: Path | str) -> str:
    return value if isinstance(value, str) else name_of(value)


def survive(copies: Iterator[tuple[str, Path]], use: Callable[[Path], None]) -> None:
    """Use each copy in a child, so that a crash or a hang is a failure that names its case."""
    label = mmap.mmap(-1, 256)

    def child() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT_S)
        for name, path in copies:
            label[:] = name.encode().ljust(256)
            use(path)

    code = exit_code(fork(child))
    case = label[:].strip(b" \0").decode()
    assert code == 0, f"{case}: exit code {code}"


def open_damaged(path: Path, *, read_only: bool) -> quire.JournalQueue:
    return quire.open(
        path,
        read_only=read_only,
        clock=quire.ManualClock(START_MS),
        block_bytes=1,
        timeout_s=0.01,
        force_unlock="always",
        wait=quire.WaitOptions(eof_grace_s=0.0),
    )


def excerpts(tailer: quire.JournalTailer, most: int) -> Iterator[tuple[int, bytes]]:
    """Read until nothing comes, or an error does; more than there ever was is a loop."""
    for count, excerpt in enumerate(tailer):
        assert count <= most, "messages without end"
        yield excerpt.index, excerpt.data


def read_in_every_way(queue: quire.JournalQueue, whole: Read) -> Iterator[tuple[int, bytes]]:
    """Yield whatever can be read, each way until it ends in an error."""
    with suppress(quire.QuireError):
        yield from excerpts(queue.tailer(), len(whole))
    with suppress(quire.QuireError), queue.tailer() as tailer:
        tailer.direction = "backward"
        tailer.to_end()
        yield from excerpts(tailer, len(whole))
    for index, _ in whole[:: 1 + len(whole) // 20]:
        with suppress(quire.QuireError), queue.tailer() as tailer:
            if tailer.move_to_index(index):
                found = tailer.read()
                assert found
                assert found.index == index
                yield index, found.data
    with suppress(quire.QuireError):
        assert queue.entry_count >= 0
        queue.dump()


def damaged(golden: Path, path: Path, damages: Iterator[Damage]) -> Iterator[tuple[str, Path]]:
    """Yield copies of a queue, each with one damage."""
    for number, (what, name, data) in enumerate(damages):
        copy = copy_of(golden, path / str(number))
        (copy / name).write_bytes(data)
        yield f"{what} of {name}", copy
        shutil.rmtree(copy)


def cuts(golden: Path, pattern: str) -> Iterator[Damage]:
    """Cut each file at every place of interest and some others."""
    chosen = random.Random(SEED)  # noqa: S311 - the same in every run
    for file in sorted(golden.glob(pattern)):
        data = file.read_bytes()
        store = Store(data)
        edges = [edge for document in store.documents for edge in (document.position, document.end)]
        near = {edge + off for edge in edges[:4] + edges[-12:] for off in (-1, 0, 1, 2, 4, 5)}
        near |= {0, 1, 3, 4, 8, 63, 64, 72, 200, 1000, 4095, 4096, 4097, len(data) - 1, store.tail}
        near |= set(chosen.sample(range(store.tail + 8), 12))
        for length in sorted(near):
            if 0 <= length < len(data):
                yield f"cut to {length}", file.name, data[:length]


def flips(golden: Path, pattern: str, count: int) -> Iterator[Damage]:
    """Change a byte, here and there in what is not zero and the words behind it."""
    chosen = random.Random(SEED)  # noqa: S311 - the same in every run
    for file in sorted(golden.glob(pattern)):
        data = file.read_bytes()
        content = Store(data).tail + 16
        for _ in range(count):
            position, change = chosen.randrange(min(content, len(data))), chosen.randrange(1, 256)
            changed = bytearray(data)
            changed[position] ^= change
            yield f"{change:#x} at {position}", file.name, bytes(changed)


def run_damages(test: str, tmp_path: Path) -> int:
    """Run a test of the loops in Rust, in several processes; return how many cases it tried."""
    build = ["cargo", "test", "--quiet", "--locked", "--profile", "fuzz", "-p", "quire-fuzz"]
    build += ["--test", "damage"]
    subprocess.run([*build, "--no-run"], check=True, cwd=ROOT)
    with ThreadPoolExecutor(PARTS) as pool:
        parts = [pool.submit(run_part, build, test, part, tmp_path) for part in range(PARTS)]
        return sum(part.result() for part in parts)


def run_part(build: list[str], test: str, part: int, tmp_path: Path) -> int:
    last = tmp_path / f"case-{part}"
    environment = {
        **os.environ,
        "QUIRE_DAMAGE_CASE": str(last),
        "QUIRE_DAMAGE_PART": f"{part}/{PARTS}",
    }
    ran = subprocess.run(
        [*build, "--", "--ignored", "--nocapture", "--exact", test],
        check=False,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    case = last.read_text("utf-8").strip() if last.exists() else "none"
    assert ran.returncode == 0, f"last case: {case}\n{ran.stdout}\n{ran.stderr}"
    found = re.search(r"^(\d+) cases", ran.stdout, re.MULTILINE)
    assert found, ran.stdout
    return int(found[1])


@pytest.mark.slow
@pytest.mark.timeout(24 * 3600 if TORTURE else 900)
def test_one_changed_bit_changes_no_other_message(tmp_path: Path, tally: Tally) -> None:
    count = run_damages("one_changed_bit_changes_no_other_message", tmp_path)
    assert count > 2_500
    tally(
        "A flipped bit changes only the payload that contains it, or is refused; in a header, what "
        "is read is what the headers say",
        count,
        "bits of golden queues changed",
    )


@pytest.mark.slow
@pytest.mark.timeout(24 * 3600 if TORTURE else 900)
def test_a_file_cut_at_any_length_reads_as_what_was_written(tmp_path: Path, tally: Tally) -> None:
    count = run_damages("what_is_read_from_a_file_cut_short_was_written", tmp_path)
    assert count > 5_000
    tally(
        "A truncated file contains what was written before the cut, and nothing invented",
        count,
        "golden files cut short",
    )


@pytest.mark.parametrize(("golden", "pattern"), FILES, ids=case_of)
def test_what_is_read_from_a_file_cut_short_was_written(
    golden: Path, pattern: str, tmp_path: Path
) -> None:
    whole = read_queue(golden)

    def read(path: Path) -> None:
        with suppress(quire.QuireError), open_damaged(path, read_only=True) as queue:
            assert set(read_in_every_way(queue, whole)) <= set(whole)

    survive(damaged(golden, tmp_path, cuts(golden, pattern)), read)


@pytest.mark.parametrize(("golden", "pattern"), FILES, ids=case_of)
def test_writers_make_nothing_up_in_a_file_cut_short(
    golden: Path, pattern: str, tmp_path: Path
) -> None:
    whole = read_queue(golden)

    def write(path: Path) -> None:
        with suppress(quire.QuireError), open_damaged(path, read_only=False) as queue:
            with suppress(quire.QuireError):
                queue.appender().write_bytes(APPENDED)
            found = dict(read_in_every_way(queue, [*whole, (0, APPENDED)]))
            assert {data for index, data in found.items() if (index, data) not in whole} <= {
                APPENDED
            }
            assert queue.table_value(WRITE_LOCK) in (UNLOCKED, None)

    survive(damaged(golden, tmp_path, cuts(golden, pattern)), write)


@pytest.mark.parametrize(("golden", "pattern"), FILES, ids=case_of)
@pytest.mark.parametrize("read_only", [True, False], ids=["read-only", "writable"])
def test_no_changed_byte_crashes_or_stops_a_reader_or_writer(
    golden: Path, pattern: str, tmp_path: Path, *, read_only: bool
) -> None:
    whole = read_queue(golden)
    most = [*whole] * 100  # a length that was changed may show bytes of a payload as messages

    def use(path: Path) -> None:
        with suppress(quire.QuireError), open_damaged(path, read_only=read_only) as queue:
            for _ in read_in_every_way(queue, most):
                pass
            if not read_only:
                with suppress(quire.QuireError):
                    queue.appender().write_bytes(APPENDED)

    survive(damaged(golden, tmp_path, flips(golden, pattern, 60)), use)
