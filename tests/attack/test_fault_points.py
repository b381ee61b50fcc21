"""A process dies at any named step of the kernel, and its heir at any step of the recovery.

The names stand in the kernel's `probe/fault.rs`, what each leaves behind in docs/protocol.md.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from fault_life import SECOND_MS
from fault_peer import (
    POINTS,
    SIGKILL,
    FaultBuild,
    Outcome,
    Record,
    check_messages,
    least,
    points,
    sample,
    survives,
)
from java_peer import JavaPeer
from paths import ROOT
from queues import START_MS
from reference import Store, open_queue
from tally import Tally, limit_s, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(limit_s(900, 7200))]

JAVA = "java"
# What Java says of a newest file without a first header when the clock is past it; opened again, it
# sets that file aside and goes on. Its own writers leave such files, too.
HEADLESS = "java.lang.NullPointerException: "
HALF_A_TABLE = ("table.first.cas", "table.body.store")  # Java cannot open: Quire goes first
ALL = 10**6
NOT_BEGUN = 2**31 - 1  # a repair
LAST_SECOND = 30  # after all that a life did
SYSTEM = re.compile(
    r"\b(?:std::fs::\w+|File::open|libc::[a-z]\w*|options\.open|builder\.create|dir\.sync_all)\("
    r"|\b(?:self\.)?file\.(?:set_len|sync_all|read_at|metadata)\(|\bpath\.(?:is_file|exists)\("
)
# They only say why another call failed, let go, or cannot fail.
TESTS = r"#\[cfg\((?:all\()?test\b"
NAMELESS = {"why_not_opened", "detach_descriptor", "drop", "die", "coarse_time_ms"} | {
    "monotonic_time_ns",
    "liveness_from_signal",
    "machine_started",
    "boot_id",
    "elsewhere",  # looks for a process: one that cannot be read is not the one
    "anonymous",
    "user",
    "here",  # the size of a page
    "answers",  # asks once whether the system can populate pages
    "without_name_in",  # a reader's own file, which has no name: nothing of the queue changes
    "made_without_name",  # the same
    "watch",  # the hooks of forks, once, as the module is loaded
    "leave_file",  # of a closed queue: where it fails, the file stays mapped
    "is_only_writer",  # a question about a file, whose failure is an answer
    "wake",  # and what sleeps: neither changes anything, and a sleep may end at any time
    "sleep_at",
    "sleep_at_any",
    "now",
    "is_first_thread",
    "block_signals",
    "wake_in_time",
}


@pytest.fixture(scope="module")
def build() -> Iterator[FaultBuild]:
    with FaultBuild() as build:
        yield build


@pytest.fixture(scope="module")
def hits(build: FaultBuild, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How often a life that nobody disturbs comes past each point."""
    directory = tmp_path_factory.mktemp("undisturbed")
    outcome = build.live(directory)
    assert (outcome.exit, outcome.error, outcome.held) == (0, None, [])
    assert survives(directory, second=LAST_SECOND, crashes=0) == 0
    return least(outcome, build.live(tmp_path_factory.mktemp("again")))


def came(outcome: Outcome, name: str, nth: int) -> bool:
    """Whether the crash happened: the last of the calls that depend on time may not be made."""
    if outcome.exit == SIGKILL:
        return True
    assert (outcome.exit, outcome.error) == (0, None), (name, nth, outcome)
    assert nth > 1, (name, nth, outcome)
    assert outcome.hits[name] < nth, (name, nth, outcome)
    return False


def moments(hits: dict[str, int], at_most: int) -> Iterator[tuple[str, int]]:
    """Some times of each point, the first and the last among them."""
    for name, count in hits.items():
        for nth in sample(name, count, at_most):
            yield name, nth


def test_every_point_is_hit_and_described(hits: dict[str, int]) -> None:
    page = (ROOT / "docs" / "protocol.md").read_text("utf-8")
    described = re.findall(r"(?m)^\| `([\w.-]+)`", page.split("### 12.1")[1].split("### 12.2")[0])
    assert sorted(described) == sorted(points())
    assert [name for name in points() if not hits[name]] == []


def test_every_system_call_of_the_kernel_has_a_point() -> None:
    nameless: list[str] = []
    files = [*POINTS.parents[1].rglob("*.rs")]
    kernel = "".join(file.read_text("utf-8") for file in files)
    for file in sorted(files):
        name = str(file.relative_to(POINTS.parents[1]))
        if name.startswith("probe/"):
            continue
        code = re.sub(r"//[^\n]*", "", re.split(TESTS, file.read_text("utf-8"))[0])
        for match in SYSTEM.finditer(code):
            before = code[: match.start()]
            around = re.findall(r"\bfn (\w+)", before)[-1]
            is_named = re.search(r"fault::call!\([^;]*$", before) or re.search(
                rf"fault::call!\([^;]*\b{around}\(", kernel
            )
            if not is_named and around not in NAMELESS:
                nameless.append(f"{name}: {match[0]} in {around}")
    assert not nameless, "\n".join(nameless)


def test_a_crash_at_any_point_loses_nothing(
    build: FaultBuild,
    hits: dict[str, int],
    tmp_path: Path,
    tally: Tally,
) -> None:
    wrong: list[str] = []
    told_of_nobody = kills = 0
    for number, (name, nth) in enumerate(moments(hits, scaled(3, ALL))):
        directory = tmp_path / "crashed"
        outcome = build.live(directory, f"{name}:{nth}:kill")
        if not came(outcome, name, nth):
            shutil.rmtree(directory)
            continue
        kills += 1
        try:
            second = LAST_SECOND * (number % 2)  # into the next file, or into the same
            told_of_nobody += survives(directory, second=second)
        except Exception as error:  # noqa: BLE001 - all of them are shown at the end
            wrong.append(f"{name}:{nth} {error!r}")
        shutil.rmtree(directory)
    assert not wrong, "\n".join(wrong)
    promise = "A crash at any store, CAS or system call loses, repeats and invents nothing"
    tally(promise, len(hits), "points")
    tally(promise, kills, "crashes")
    tally(promise, told_of_nobody, "messages that were there and not acknowledged")


def test_a_crash_in_the_recovery_from_a_crash_loses_nothing(
    build: FaultBuild,
    hits: dict[str, int],
    tmp_path: Path,
    tally: Tally,
) -> None:
    wrong: list[str] = []
    crashes = 0
    for name, nth in moments({name: min(count, scaled(1, 2)) for name, count in hits.items()}, ALL):
        first = tmp_path / "first"
        assert build.live(first, f"{name}:{nth}:kill").exit == SIGKILL
        rng = random.Random(f"{name}:{nth}")  # noqa: S311 - the same sample each time
        second = rng.choice((0, LAST_SECOND))
        undisturbed = copy_of(first, tmp_path / "undisturbed")
        outcome = build.live(undisturbed, life="recovery", second=second)
        assert (outcome.exit, outcome.error) == (0, None), (name, nth, outcome)
        met = [point for point, count in outcome.hits.items() if count]
        for point in rng.sample(met, min(len(met), scaled(2, len(met)))):
            again = copy_of(first, tmp_path / "again")
            outcome = build.live(again, f"{point}:1:kill", life="recovery", second=second)
            assert outcome.exit == SIGKILL, (name, nth, point, outcome)
            crashes += 1
            try:
                survives(again, second=second, crashes=2)
            except Exception as error:  # noqa: BLE001 - all of them are shown at the end
                wrong.append(f"{name}:{nth} then {point}: {error!r}")
            shutil.rmtree(again)
        shutil.rmtree(undisturbed)
        shutil.rmtree(first)
    assert not wrong, "\n".join(wrong)
    tally("A crash in the recovery from a crash loses nothing either", crashes, "pairs of crashes")


def copy_of(directory: Path, to: Path) -> Path:
    return Path(shutil.copytree(directory, to))


@pytest.mark.java
def test_java_takes_over_after_a_crash_at_any_point(
    hits: dict[str, int],
    tmp_path: Path,
    tally: Tally,
) -> None:
    """Java makes each queue go on, in the file the writer died in where that was not ended."""
    asked: dict[Path, int] = {}
    with FaultBuild() as build:  # its process is named in a lock, and must be dead for Java
        for name, nth in moments(hits, scaled(2, ALL)):
            directory = tmp_path / f"{name}-{nth}"
            if not came(build.live(directory, f"{name}:{nth}:kill"), name, nth):
                continue
            if not (directory / "queue" / "metadata.cq4t").exists():
                continue
            if name in HALF_A_TABLE or is_from_before_a_restart(directory / "queue"):
                survives(directory, second=0)
            asked[directory] = time_to_append(directory / "queue")
    headless = {path for path in asked if newest_is_headless(path / "queue")}
    answers = outlive(asked)
    failed = {path for path in headless if str(answers[path]["error"]).startswith(HEADLESS)}
    answers |= outlive({path: asked[path] for path in failed})
    wrong: list[str] = []
    for path, answer in answers.items():
        try:
            assert answer["error"] is None
            agree(path / "queue", answer)
        except Exception as error:  # noqa: BLE001 - all of them are shown at the end
            wrong.append(f"{answer} {error!r}")
    assert not wrong, "\n".join(wrong)
    tally("Java takes over from a Quire writer that crashed at any point", len(asked), "crashes")


def outlive(asked: dict[Path, int]) -> dict[Path, dict[str, object]]:
    """Have Java append at these times, and tell what it read."""
    lines = "".join(f"{time_ms} {path / 'queue'}\n" for path, time_ms in asked.items())
    peer = JavaPeer(run_timeout_s=limit_s(400, 4000))
    answers = map(json.loads, peer.run_with_input("outlive", lines, text=JAVA, timeout_ms=500))
    return {Path(answer["dir"]).parent: answer for answer in answers}


def newest_is_headless(queue: Path) -> bool:
    """Whether the newest file's maker died before its first header: Java may fail there once."""
    newest = max(queue.glob("*.cq4"), default=None)
    return newest is not None and not any(newest.read_bytes()[:4])


def is_from_before_a_restart(queue: Path) -> bool:
    """Whether a power cut's traces are there: Java knows no repair of them."""
    if any(file.stat().st_mtime < START_MS / SECOND_MS for file in queue.glob("*.cq4")):
        return True
    table = (queue / "metadata.cq4t").read_bytes()
    if int.from_bytes(table[:4], "little") >> 30 != 1:
        return False
    _, begun_from = Store(table).entries().get("quire.repairFrom", (0, NOT_BEGUN))
    return begun_from != NOT_BEGUN


def time_to_append(queue: Path) -> int:
    """A time in the newest cycle, or a later one if that has an end marker or no messages."""
    files = {file: file.read_bytes() for file in queue.glob("*.cq4")}
    ready = all(data and int.from_bytes(data[:4], "little") >> 30 == 1 for data in files.values())
    if files and ready:
        roll_cycle, stores = open_queue(queue)
        newest = max(stores)
        if not stores[newest].has_eof:
            return newest * roll_cycle.length_ms
    return START_MS + LAST_SECOND * SECOND_MS


def agree(queue: Path, answer: dict[str, object]) -> None:
    """Quire reads what Java read, and the journal agrees; then Quire goes on."""
    with quire.open(
        queue, read_only=True, wait=quire.WaitOptions(eof_grace_s=0), timeout_s=0
    ) as reader:
        found = [(excerpt.index, excerpt.data) for excerpt in reader.tailer()]
    digest = hashlib.sha256()
    for index, data in found:
        digest.update(f"{index:x} {len(data)} {data.hex()}".encode())
    assert answer["count"] == answer["entryCount"] == len(found)
    assert answer["sha256"] == digest.hexdigest()
    assert [data for _, data in found[-2:]] == [JAVA.encode(), JAVA.encode() * 20]
    check_messages(Record(queue.parent / "journal"), found[:-2], crashes=1)
    with quire.open(queue, clock=quire.ManualClock(START_MS)) as writer:
        assert writer.appender().write_bytes(b"after") > found[-1][0]
