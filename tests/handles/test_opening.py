"""Where a queue is opened: paths, URLs, directories that are none, and those of others."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, payloads

URLS = ["s3://bucket/orders", "file:///tmp/orders", "hdfs+x://a.b:1/c"]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another directory; this process is in the one of the queue."""
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "elsewhere"
    other.mkdir()
    return other


def test_a_relative_path_is_that_of_the_opening(
    tmp_path: Path, elsewhere: Path, clock: quire.ManualClock
) -> None:
    with quire.open("queue", roll_cycle="TEST4_DAILY", clock=clock) as queue:
        appender, tailer = queue.appender(), queue.tailer()
        appender.write_bytes(b"one")
        os.chdir(elsewhere)
        assert Path(queue.path) == tmp_path / "queue"
        clock.advance(DAY_MS)
        appender.write_bytes(b"two")
        assert list(tailer.payloads()) == [b"one", b"two"]
        appender.sync()
        queue.refresh()
        assert len(queue.cycles) == 2
    assert [*elsewhere.iterdir()] == []


def test_a_queue_pickles_by_its_absolute_path(elsewhere: Path) -> None:
    with quire.open("queue") as queue:
        queue.appender().write_bytes(b"one")
        pickled = pickle.dumps(queue)
    os.chdir(elsewhere)
    with pickle.loads(pickled) as again:
        assert payloads(again) == [b"one"]
    assert [*elsewhere.iterdir()] == []


@pytest.mark.parametrize("options", [{}, {"read_only": True}], ids=["", "read_only"])
@pytest.mark.parametrize("name", [None, "notes.txt", "orders.cq4.bak", "directory-listing.cq4t"])
def test_without_create_nothing_is_made_of_another_directory(
    name: str | None,
    options: dict[str, bool],
    tmp_path: Path,
) -> None:
    if name is not None:
        (tmp_path / name).write_bytes(b"?")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(quire.errors.NotAQueueError, match=r"metadata\.cq4t and no \*\.cq4 file"):
        quire.open(tmp_path, create=False, **options)  # type: ignore[call-overload]
    assert sorted(tmp_path.iterdir()) == before


def test_without_create_a_queue_is_opened_with_and_without_its_table(path: Path) -> None:
    with quire.open(path) as queue:
        queue.appender().write_bytes(b"one")
    for _ in range(2):
        with quire.open(path, create=False) as queue:
            assert payloads(queue) == [b"one"]
        (path / "metadata.cq4t").unlink()


@pytest.mark.parametrize("options", [{}, {"read_only": True}], ids=["", "read_only"])
@pytest.mark.parametrize("form", [str, Path])
@pytest.mark.parametrize("url", URLS)
def test_a_url_is_refused_and_makes_no_directory(
    url: str,
    form: type,
    options: dict[str, bool],
    elsewhere: Path,
) -> None:
    os.chdir(elsewhere)
    with pytest.raises(quire.errors.UnsupportedError, match="reaches a server"):
        quire.open(form(url), **options)  # type: ignore[call-overload]
    assert [*elsewhere.iterdir()] == []


@pytest.mark.parametrize("name", ["a:b", "orders:", "x/y:/z", "12:30/a", "C:/orders"])
def test_a_colon_alone_is_part_of_a_name(name: str, elsewhere: Path) -> None:
    os.chdir(elsewhere)
    with quire.open(name) as queue:
        queue.appender().write_bytes(b"one")
    assert (elsewhere / name / "metadata.cq4t").exists()


def test_a_directory_whose_name_ends_in_a_colon_is_found(elsewhere: Path) -> None:
    os.chdir(elsewhere)
    Path("orders:").mkdir()
    quire.open(Path("orders:/today")).close()
    assert (elsewhere / "orders:/today/metadata.cq4t").exists()


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "quire"]


@pytest.mark.parametrize("name", ["", "metadata.cq4t"])
def test_what_everybody_may_write_to_is_warned_of_once(
    name: str, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    quire.open(path).close()
    assert warnings_of(caplog) == []
    (path / name).chmod(0o777)
    for _ in range(3):
        quire.open(path).close()
    (warning,) = warnings_of(caplog)
    assert "chmod o-w" in warning
    assert f"path={path / name} mode=0777" in warning


def test_what_is_shared_with_everybody_on_purpose_is_not_warned_of(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        quire.open(path, file_mode=0o666).close()
    assert warnings_of(caplog) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_the_queue_of_another_user_is_warned_of_unless_it_is_shared(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    quire.open(path).close()
    for file in (path, path / "metadata.cq4t"):
        os.chown(file, 12345, -1)
    quire.open(path, read_only=True).close()
    quire.open(path, file_mode=0o660).close()
    assert warnings_of(caplog) == []
    for _ in range(2):
        quire.open(path).close()
    warnings = warnings_of(caplog)
    assert len(warnings) == 2  # the directory, and the table
    assert all("belongs to another user" in line and "owner=12345" in line for line in warnings)
