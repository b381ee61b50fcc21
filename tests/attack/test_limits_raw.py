"""The two older formats on a full disk, and on read-only media."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import quire
from raw_victims import FORMS, Form, open_queue
from small_disk import KIB, fill, is_no_space, make_read_only, make_room, on_small_disk
from tally import Tally

OPTIONS: dict[Form, dict[str, Any]] = {
    "vanilla": {"index_block_bytes": 4096, "data_block_bytes": 65_536, "roll_cycle": "DAYS"},
    "single": {"page_bytes": 65_536},
    "named": {"page_bytes": 65_536},
}


def appender_of(queue: Any, form: Form) -> Any:  # noqa: ANN401
    return queue.appender("AA0") if form == "named" else queue.appender()


def write_until_full(appender: Any, written: list[bytes]) -> None:  # noqa: ANN401
    while len(written) < 100_000:
        message = b"%d " % len(written) * 100
        appender.write_bytes(message)
        written.append(message)


def fill_and_go_on(disk: Path, path: Path, form: Form, leave: int) -> None:
    with open_queue(form, path, OPTIONS[form]) as queue:
        appender = appender_of(queue, form)
        written = [b"first"]
        appender.write_bytes(b"first")
        fill(disk, leave)
        with pytest.raises(OSError, match="make room") as caught:
            write_until_full(appender, written)
        assert is_no_space(caught.value, ""), caught.value
        assert list(queue.tailer().payloads()) == written
        make_room(disk)
        appender.write_bytes(b"after")
    with open_queue(form, path, OPTIONS[form]) as queue:
        appender_of(queue, form).write_bytes(b"again")
        assert list(queue.tailer().payloads()) == [*written, b"after", b"again"]
    subprocess.run(["/bin/rm", "-r", str(path)], check=True)


@pytest.mark.parametrize("form", FORMS)
def test_a_full_disk_is_an_error_and_writing_goes_on_when_space_returns(
    form: Form, tmp_path: Path, tally: Tally
) -> None:
    def work(disk: Path) -> int:
        for leave in range(0, 40, 5):
            fill_and_go_on(disk, disk / f"queue{leave}", form, leave)
        return 8

    count = on_small_disk(tmp_path / "disk", 2048 * KIB, work)
    tally("A full disk is an error before anything is published", count, f"disks filled ({form})")


@pytest.mark.parametrize("form", FORMS)
def test_read_only_media_can_be_read_and_nothing_else(form: Form, tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        path, written = disk / "queue", [b"%d" % number for number in range(1000)]
        with open_queue(form, path, OPTIONS[form]) as queue:
            appender_of(queue, form).write_many(written)
        make_read_only(disk)
        with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
            assert list(tailer.payloads()) == written
            assert tailer.read() is None
        with pytest.raises(OSError, match="Read-only file system"):
            appender_of(open_queue(form, path, OPTIONS[form]), form).write_bytes(b"one more")
        return 1

    assert on_small_disk(tmp_path / "disk", 2048 * KIB, work) == 1
