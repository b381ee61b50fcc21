"""Files cut short or changed by a byte: what is read is right or an error, and nothing crashes."""

from __future__ import annotations

import mmap
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pytest

import quire
from queues import START_MS, UNLOCKED, WRITE_LOCK, copy_of, exit_code, fork
from reference import Store, read_queue
from test_reference import GOLDEN, MAIN, name_of

SMALL = [
    MAIN / "f_rc_test4_daily",
    MAIN / "g_index_test4_secondly",
    MAIN / "h_named_tailers",
    MAIN / "l_crash_pos",
    GOLDEN / "java-2026.4" / "bytes",
    GOLDEN / "java-5.22.28" / "metadata",
]
FILES = [(golden, "*.cq4") for golden in SMALL] + [(golden, "*.cq4t") for golden in SMALL[2:3]]
LIMIT_S = 50
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


def open_damaged(path: Path, *, read_only: bool) -> quire.Queue:
    return quire.open(
        path,
        read_only=read_only,
        clock=quire.ManualClock(START_MS),
        block_bytes=1,
        timeout_s=0.01,
        force_unlock="always",
        eof_grace_s=0.0,
    )


def excerpts(tailer: quire.Tailer, most: int) -> Iterator[tuple[int, bytes]]:
    """Read until nothing comes, or an error does; more than there ever was is a loop."""
    for count, excerpt in enumerate(tailer):
        assert count <= most, "messages without end"
        yield excerpt.index, excerpt.data


def read_in_every_way(queue: quire.Queue, whole: Read) -> Iterator[tuple[int, bytes]]:
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


def hints(golden: Path) -> Iterator[Damage]:
    """Change the words that only help to find messages: positions, counts, slots."""
    chosen = random.Random(SEED)  # noqa: S311 - the same in every run
    for file in sorted(golden.glob("*.cq4")):
        data = file.read_bytes()
        store = Store(data)
        words = [store.offsets[name] for name in ("writePosition", "index2Index", "lastIndex")]
        words.append(store.offsets["writePosition"] + 8)
        arrays = [d for d in store.documents[1:] if d.is_metadata and d.end - d.position > 60]
        for document in arrays:
            words += range(document.end - 8 * store.numbers["indexCount"] - 8, document.end, 8)
        for word in words[:4] + chosen.sample(words[4:], min(30, len(words) - 4)):
            for value in (0, 1, 4, store.tail, 2**63, 2**64 - 1, chosen.randrange(2**64)):
                changed = bytearray(data)
                changed[word : word + 8] = value.to_bytes(8, "little")
                yield f"{value:#x} at {word}", file.name, bytes(changed)


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


def sequences(golden: Path) -> Iterator[Damage]:
    """Change the sequence in the sequence word, and leave the position beside it."""
    for file in sorted(golden.glob("*.cq4")):
        data = file.read_bytes()
        word = Store(data).offsets["writePosition"] + 8
        for bit in (0, 1, 2, 5, 8, 20, 31):
            changed = bytearray(data)
            changed[word + bit // 8] ^= 1 << bit % 8
            yield f"bit {bit} at {word}", file.name, bytes(changed)


def answers(golden: Path, damages: Iterator[Damage], tmp_path: Path) -> None:
    """Expect the whole of a queue from each of its copies."""
    whole = read_queue(golden)

    def read(path: Path) -> None:
        with open_damaged(path, read_only=True) as queue, queue.tailer() as tailer:
            assert list(excerpts(tailer, len(whole))) == whole
            assert set(read_in_every_way(queue, whole)) == set(whole)
            assert (queue.first_index, queue.last_index) == (whole[0][0], whole[-1][0])
            assert queue.entry_count == len(whole)

    survive(damaged(golden, tmp_path, damages), read)


@pytest.mark.parametrize("golden", SMALL, ids=name_of)
def test_a_damaged_hint_does_not_damage_the_answer(golden: Path, tmp_path: Path) -> None:
    answers(golden, hints(golden), tmp_path)


@pytest.mark.parametrize("golden", SMALL, ids=name_of)
def test_a_sequence_word_of_another_sequence_does_not_damage_the_answer(
    golden: Path, tmp_path: Path
) -> None:
    answers(golden, sequences(golden), tmp_path)
