"""`quire.verify`: every damage has a finding, and nothing else has one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import quire
from damages import break_message, fill, positions
from golden_sets import name_of
from journal_damages import DAMAGES, Damage
from paths import GOLDEN, ROOT
from queues import START_MS, snapshot
from quire import _native
from quire.maintenance.kinds import KINDS

DAYS, PER_DAY = 3, 40
GOLDEN_QUEUES = sorted({file.parent for file in GOLDEN.rglob("*.cq4")})
KILLED = {"l_crash_open", "l_crash_pos"}  # Java's writer died in these
WRITER = """
import sys, quire
with quire.open(sys.argv[1], roll_cycle="TEST4_DAILY", block_bytes=1) as queue:
    with queue.appender() as appender:
        print("ready", flush=True)
        while not sys.stdin.closed:
            appender.write_many([b"x" * 50] * 5)
            appender.write_bytes(b"y")
            if queue.last_index & 0xFFF > 3_900:
                break
print("done", flush=True)
"""


@pytest.fixture
def queue(path: Path) -> Path:
    fill(path, DAYS, PER_DAY)
    return path


def kinds(report: quire.maintenance.VerifyReport) -> list[str]:
    return [finding.kind for finding in report.findings]


def test_a_whole_queue_has_no_findings(queue: Path) -> None:
    before = snapshot(queue)
    report = quire.verify(queue)
    assert (report.ok, report.findings) == (True, ())
    assert (report.files, report.messages) == (DAYS + 1, DAYS * PER_DAY)
    assert snapshot(queue) == before


@pytest.mark.parametrize("golden", GOLDEN_QUEUES, ids=name_of)
def test_queues_of_java_have_no_findings(golden: Path) -> None:
    report = quire.verify(golden)
    assert report.ok is (golden.name not in KILLED)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_each_damage_has_its_finding_and_nothing_changes(queue: Path, damage: Damage) -> None:
    damage.do(queue)
    before = snapshot(queue)
    report = quire.verify(queue)
    assert damage.kind in kinds(report)
    assert not report.ok
    assert snapshot(queue) == before


def test_a_message_in_the_middle_is_a_gap_to_the_next_index_entry(queue: Path) -> None:
    file = min(queue.glob("*.cq4"))
    expected = positions(file)[12]
    position = break_message(file, 10)
    (finding,) = quire.verify(queue).findings
    assert (finding.kind, finding.position) == ("gap", position)
    assert f"0000000c, at which reading goes on, at {expected:#x}" in finding.expected
    assert (finding.severity, finding.remedy) == ("error", None)


def test_one_file_and_a_copied_day(queue: Path, tmp_path: Path) -> None:
    files = sorted(queue.glob("*.cq4"))
    assert quire.verify(files[0]).messages == PER_DAY
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(files[1], copy)
    report = quire.verify(copy)
    assert (kinds(report), report.messages) == (["no-table"], PER_DAY)


def test_a_directory_of_queues(tmp_path: Path) -> None:
    for name in ("a", "b/c"):
        fill(tmp_path / name, 1, 5)
    report = quire.verify(tmp_path)
    assert (report.files, report.messages) == (4, 10)


def test_a_name_of_no_cycle(queue: Path) -> None:
    (queue / "notes.cq4").write_bytes(b"")
    (finding,) = quire.verify(queue).findings
    assert (finding.kind, Path(finding.file).name) == ("wrong-name", "notes.cq4")


def test_what_is_no_queue(tmp_path: Path) -> None:
    with pytest.raises(quire.errors.NotAQueueError):
        quire.verify(tmp_path)
    with pytest.raises(quire.errors.NotAQueueError):
        quire.verify(tmp_path / "missing")
    with pytest.raises(quire.errors.UnsupportedError):
        quire.verify("s3://bucket/queue")


def test_a_queue_in_use_has_no_findings(path: Path) -> None:
    """Whatever the writer is about to do: it never stops for a check."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        checks = 0
        while writer.poll() is None or checks == 0:
            report = quire.verify(path)
            assert {finding.kind for finding in report.findings} <= {"lock-held"}
            checks += 1
    assert quire.verify(path).findings == ()


def test_an_open_document_is_left_out_with_a_note(queue: Path) -> None:
    clock = quire.ManualClock(START_MS + DAYS * 86_400_000)
    with (
        quire.open(queue, clock=clock) as writer,
        writer.appender() as appender,
        appender.writing_document(),
    ):
        report = quire.verify(queue)
        assert report.ok
        assert {finding.kind for finding in report.findings} <= {"lock-held", "missing-end-mark"}


def test_an_unreadable_file_hides_no_other(queue: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    files = sorted(queue.glob("*.cq4"))
    files[0].chmod(0)
    report = quire.verify(queue)
    assert (kinds(report), report.messages) == (["unreadable-file"], (DAYS - 1) * PER_DAY)


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("kind", ["a directory", "a symbolic link", "a FIFO"])
def test_what_is_no_file_in_place_of_one_is_a_finding(queue: Path, kind: str, number: int) -> None:
    file = sorted(queue.glob("*.cq4"))[number]
    file.rename(queue / "elsewhere")
    if kind == "a directory":
        file.mkdir()
    elif kind == "a FIFO":
        os.mkfifo(file)
    else:
        file.symlink_to(queue / "elsewhere")
    report = quire.verify(queue)
    (found,) = [it for it in report.findings if it.kind == "unreadable-file"]
    assert (found.file, kind in found.found, report.messages > 0) == (str(file), True, True)


def test_every_kind_is_described() -> None:
    assert [*KINDS] == [*_native.FINDING_KINDS]
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    rows = [
        f"| `{name}` | {it.severity} | {it.meaning} | {it.remedy or '-'} |"
        for name, it in KINDS.items()
    ]
    assert "\n" + "\n".join(rows) + "\n" in page
    severities = re.findall(r"(?m)^\| `[a-z-]+` \| (?:error|warning|note) \|", page)
    assert len(severities) == len(rows)
