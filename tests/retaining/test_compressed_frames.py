"""Compressed files have frames, each decompressed by itself; older ones have a single one."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pyarrow as pa
import pytest

import quire
from queues import DAY_MS, START_MS, backward, copy_of, forward, payloads

COUNT = 20_000
FRAME = 256 << 10
FIRST = 19737 << 32
SEEK_TABLE = b"\x5e\x2a\x4d\x18"
MAGIC = b"\xb1\xea\x92\x8f"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Two days; the first one, which is finished, has several MiB that do not compress."""
    path, clock = tmp_path / "plain", quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="FAST_DAILY", block_bytes=1 << 20, clock=clock) as queue:
        appender, some = queue.appender(), random.Random(1)  # noqa: S311 - not secrets
        appender.write_many([b"%d " % number + some.randbytes(200) for number in range(COUNT)])
        clock.advance(DAY_MS)
        appender.write_bytes(b"newest")
    return path


@pytest.fixture
def packed(plain: Path, tmp_path: Path) -> Path:
    """The same, the first day compressed."""
    path = copy_of(plain, tmp_path / "packed")
    clock = quire.ManualClock(START_MS + DAY_MS)
    assert len(quire.prune(path, max_cycles=1, action="compress", clock=clock).removed) == 1
    return path


def file_of(path: Path) -> Path:
    (file,) = path.glob("*.cq4.zst")
    return file


def entries(data: bytes) -> list[tuple[int, int]]:
    """Return the length of each frame, and that of its content, as the seek table says."""
    count, descriptor, magic = struct.unpack("<IB4s", data[-9:])
    assert (descriptor, magic) == (0, MAGIC)
    table = data[-(9 + 8 * count + 8) :]
    assert table[:8] == SEEK_TABLE + struct.pack("<I", 8 * count + 9)
    return list(struct.iter_unpack("<II", table[8:-9]))


def with_entries(data: bytes, changed: list[tuple[int, int]]) -> bytes:
    body = data[: -(8 * len(entries(data)) + 17)]
    listed = b"".join(struct.pack("<II", *entry) for entry in changed)
    head = SEEK_TABLE + struct.pack("<I", len(listed) + 9)
    return body + head + listed + struct.pack("<IB", len(changed), 0) + MAGIC


def unpacked_here(path: Path) -> int:
    """Return how many bytes on disk the files without a name take that this process has open."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            target, status = str(link.readlink()), link.stat()
        except OSError:
            continue
        if target.startswith(str(path)) and target.endswith("(deleted)"):
            found += status.st_blocks * 512
    return found


def read_at(path: Path, number: int, count: int = 1) -> list[bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert tailer.move_to_index(FIRST + number)
        return [bytes(it) for it in tailer.read_many(count)]


def test_a_file_follows_the_seekable_format(plain: Path, packed: Path) -> None:
    data = file_of(packed).read_bytes()
    content = next(plain.glob("20240115F.cq4")).read_bytes()
    first, *frames = entries(data)
    assert first == (24, 0)  # the summary
    assert sum(length for _, length in frames) == len(content)
    assert {length for _, length in frames[:-1]} == {FRAME}
    at = start = 0
    for length, of_content in entries(data):
        if of_content:
            frame = pa.decompress(data[at : at + length], of_content, codec="zstd", asbytes=True)
            assert frame == content[start : start + of_content]
        at, start = at + length, start + of_content
    # What knows nothing of the table reads it, too.
    with pa.input_stream(pa.py_buffer(data), compression="zstd") as stream:
        assert stream.read() == content


def test_reading_a_message_unpacks_the_frames_of_its_range(plain: Path, packed: Path) -> None:
    whole = next(plain.glob("20240115F.cq4")).stat().st_blocks * 512
    with quire.open(packed, read_only=True) as queue, queue.tailer() as tailer:
        assert tailer.move_to_index(FIRST + COUNT // 2)
        assert tailer.read_bytes() == read_at(plain, COUNT // 2)[0]
        taken = unpacked_here(packed)
        assert 0 < taken <= 5 * FRAME < whole / 3  # at the start, at the end, and around it
        assert tailer.read_many(100) == read_at(plain, COUNT // 2 + 1, 100)
        assert unpacked_here(packed) <= taken + FRAME
        assert len(tailer.read_many(COUNT)) == COUNT // 2 - 101 + 1
    assert unpacked_here(packed) == 0


def test_counting_takes_no_frame(packed: Path) -> None:
    with quire.open(packed, read_only=True) as queue:
        assert queue.entry_count == COUNT + 1
        assert unpacked_here(packed) == 0


def test_all_is_read_both_ways(plain: Path, packed: Path) -> None:
    with quire.open(packed, read_only=True) as queue, quire.open(plain, read_only=True) as other:
        assert forward(queue) == forward(other)
        assert backward(queue) == backward(other)


@pytest.mark.parametrize("has_summary", [True, False])
def test_a_file_of_one_frame_is_read_as_before(
    plain: Path, packed: Path, *, has_summary: bool
) -> None:
    data, content = file_of(packed).read_bytes(), next(plain.glob("20240115F.cq4")).read_bytes()
    frame = pa.compress(content, codec="zstd", asbytes=True)
    file_of(packed).write_bytes(data[:24] * has_summary + frame)
    with quire.open(packed, read_only=True) as queue, quire.open(plain, read_only=True) as other:
        assert queue.entry_count == COUNT + 1
        assert forward(queue) == forward(other)
    assert not quire.verify(packed).findings


def test_a_damaged_frame_is_an_error_where_it_is_read(plain: Path, packed: Path) -> None:
    data = bytearray(file_of(packed).read_bytes())
    number = COUNT * 200 // FRAME // 2
    start = sum(length for length, _ in entries(bytes(data))[:number])
    data[start + 1000] ^= 1
    file_of(packed).write_bytes(bytes(data))
    error = rf"not a compressed roll file file=.*\.zst position={(number - 1) * FRAME:#x}"
    with quire.open(packed, read_only=True) as queue, queue.tailer() as tailer:
        before = [bytes(it) for it in tailer.read_many(COUNT)]
        assert 0 < len(before) < COUNT - 1000
        assert before == read_at(plain, 0, len(before))
        for _ in range(2):
            with pytest.raises(quire.errors.CorruptError, match=error):
                tailer.read_bytes()
        assert tailer.move_to_index(FIRST + COUNT - 1)
        assert tailer.read_bytes() == read_at(plain, COUNT - 1)[0]
    assert [it.kind for it in quire.verify(packed).findings] == ["unreadable-file"]


def test_a_table_that_cannot_be_is_refused_before_a_frame_is_read(packed: Path) -> None:
    data = file_of(packed).read_bytes()
    sound = entries(data)
    large = (16 << 20) + 1
    wrong = [
        sound[:-1],
        [*sound, (9, 0)],
        [*sound[:-1], (sound[-1][0], large)],
        [*sound[:-1], (sound[-1][0], 0xFFFFFFFF)],
        [(sound[0][0] + 1, 0), (sound[1][0] - 1, 1), *sound[2:]],
        [(0xFFFFFFFF, 0), *sound],
        [(24, 0), (0, FRAME), *sound[1:]],
        [*sound[:2], (1, FRAME), (sound[2][0] - 1, FRAME), *sound[3:]],
        [],
    ]
    for number, changed in enumerate(wrong):
        file_of(packed).write_bytes(with_entries(data, changed))
        with pytest.raises(quire.errors.CorruptError, match=r"\.zst") as caught:
            quire.open(file_of(packed), read_only=True)
        assert "not a compressed roll file" in str(caught.value), number


def test_content_of_another_length_than_the_table_says_is_refused(packed: Path) -> None:
    data = file_of(packed).read_bytes()
    for by in (-8, 8):
        changed = entries(data)
        changed[1] = (changed[1][0], changed[1][1] + by)
        file_of(packed).write_bytes(with_entries(data, changed))
        with pytest.raises(quire.errors.CorruptError, match="not a compressed roll file"):
            payloads(quire.open(packed, read_only=True))


def test_a_table_that_claims_much_content_is_refused(packed: Path) -> None:
    data = file_of(packed).read_bytes()
    sound = entries(data)
    zeros = pa.compress(bytes(16 << 20), codec="zstd", asbytes=True)
    body = data[: -(8 * len(sound) + 17)] + zeros * 300  # 4.7 GiB after the end
    data = with_entries(body + with_entries(data, [])[-17:], sound + [(len(zeros), 16 << 20)] * 300)
    file_of(packed).write_bytes(data)
    with pytest.raises(quire.errors.CorruptError, match=r"an end at .* in content of"):
        read_at(packed, 0)
    assert unpacked_here(packed) == 0
