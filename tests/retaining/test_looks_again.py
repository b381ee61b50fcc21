"""What a run of retention decided is looked at again right before each cycle goes."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
import quire.vanilla
from pause_points import Party
from queues import DAY_MS, START_MS, payloads
from quire._common.file_identity import Identity
from quire.errors import TableLostError
from quire.maintenance.files import FileUser, users_of
from quire.retaining.pruning import Run
from quire.retaining.retention import Retention
from quire.vanilla import VanillaQueue

DAYS = 5


def write_days(path: Path, days: int = DAYS) -> None:
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock, block_bytes=2**16) as queue,
        queue.appender() as appender,
    ):
        for day in range(days):
            appender.write_bytes(b"%d" % day)
            clock.advance(DAY_MS)


@pytest.fixture
def orders(path: Path) -> Path:
    """Five days, which a named tailer and a group have read."""
    write_days(path)
    with quire.open(path) as queue:
        with queue.tailer("old") as tailer:
            assert len(tailer.read_many(DAYS)) == DAYS
        with queue.group("done").consumer() as consumer:
            consumer.ack_many(consumer.read_many(DAYS))
    return path


PRUNE = """
arm()
path, action, dest = sys.argv[1:]
given = {"dest": dest} if action in ("move", "archive") else {}
report = quire.prune(path, max_cycles=1, action=action, **given)
say([len(report.removed), [it.reason.split(":")[0] for it in report.kept], report.overtaken])
"""
ARCHIVE = """
import quire.archive
arm()
report = quire.archive.archive(sys.argv[1], sys.argv[3], delete=True)
say([report.deleted, [it.reason.split(":")[0] for it in report.kept], []])
"""
RUNS = {
    "delete": PRUNE,
    "move": PRUNE,
    "compress": PRUNE,
    "archive": PRUNE,
    "archive --delete": ARCHIVE,
}
TAILER, GROUP = "kept for a named tailer", "kept for a consumer group"


def make_a_tailer(queue: quire.JournalQueue) -> None:
    with queue.tailer("audit") as tailer:
        assert tailer.read_bytes() == b"0"


def make_a_consumer(queue: quire.JournalQueue) -> None:
    with queue.group("billing").consumer() as consumer:
        message = consumer.read()
        assert message is not None
        assert bytes(message.data) == b"0"


def reset_the_group(queue: quire.JournalQueue) -> None:
    queue.group("done").reset()


def reset_the_tailer(queue: quire.JournalQueue) -> None:
    with queue.tailer("old") as tailer:
        tailer.to_start()
        assert tailer.read_bytes() == b"0"


@pytest.mark.parametrize("action", RUNS)
@pytest.mark.parametrize(
    ("newcomer", "reason"),
    [
        (make_a_tailer, TAILER),
        (make_a_consumer, GROUP),
        (reset_the_group, GROUP),
        (reset_the_tailer, TAILER),
    ],
)
def test_a_reader_that_comes_after_the_decision_loses_nothing(
    orders: Path,
    tmp_path: Path,
    action: str,
    newcomer: Callable[[quire.JournalQueue], None],
    reason: str,
) -> None:
    """The run stands at its first look at other processes, its plan being made."""
    arguments = (orders, action.split(maxsplit=1)[0], tmp_path / "dest")
    with Party(RUNS[action], *arguments, point="audit:os.listdir:/proc") as run:
        run.wait_until_stopped()
        with quire.open(orders) as queue:
            newcomer(queue)
        run.go_on()
        ((removed, kept, overtaken),) = run.result()
    assert (removed, kept[0], overtaken) == (0, reason, [])
    with quire.open(orders, read_only=True) as queue:
        assert [bytes(it) for it in payloads(queue)] == [b"%d" % day for day in range(DAYS)]
    assert not [*orders.glob("*.zst"), *(tmp_path / "dest").glob("*.cq4")]


@pytest.mark.parametrize("action", RUNS)
def test_a_process_that_opens_a_cycle_after_the_decision_keeps_it(
    orders: Path, tmp_path: Path, action: str
) -> None:
    arguments = (orders, action.split(maxsplit=1)[0], tmp_path / "dest")
    with Party(RUNS[action], *arguments, point="audit:os.listdir:/proc") as run:
        run.wait_until_stopped()
        with quire.open(orders, read_only=True) as queue, queue.tailer() as tailer:
            assert tailer.read_bytes() == b"0"
            run.go_on()
            ((removed, kept, _),) = run.result()
            assert (removed, kept[0]) == (0, "kept as a process has it open")
            assert [bytes(it) for it in tailer.payloads()] == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("action", ["delete", "move", "archive"])
def test_a_named_tailer_that_comes_after_the_last_look_is_reported(
    orders: Path, tmp_path: Path, action: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The run stands between its last look and the removal."""
    arguments = (orders, action, tmp_path / "dest")
    step = "os.rename" if action == "move" else "os.remove"
    with Party(RUNS[action], *arguments, point=f"audit:{step}:20240115F.cq4") as run:
        run.wait_until_stopped()
        with quire.open(orders) as queue:
            make_a_tailer(queue)
            make_a_consumer(queue)
        run.go_on()
        ((removed, kept, _),) = run.result()
    assert (removed, kept[0]) == (1, TAILER)
    with quire.open(orders) as queue, pytest.raises(quire.errors.DataLossError):
        queue.tailer("audit", on_missing="raise")
    caplog.set_level(logging.WARNING, logger="quire")
    with quire.open(orders) as queue, queue.tailer("audit") as tailer:
        assert tailer.read_bytes() == b"1"
    assert "audit" in caplog.text


def test_a_file_that_was_put_in_the_place_of_a_judged_one_stays(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = orders / "20240115F.cq4"
    looks: list[int] = []

    def look(files: set[Identity]) -> tuple[dict[Identity, list[FileUser]], int]:
        looks.append(1)
        if len(looks) == 2:  # the look before the first removal
            shutil.copy(first, tmp_path / "copy")
            (tmp_path / "copy").replace(first)
        return users_of(files)

    monkeypatch.setattr("quire.retaining.pruning.users_of", look)
    report = quire.prune(orders, max_cycles=1)
    assert report.removed == []
    # The file that went is gone for good: its inode number may already be that of an open file.
    reasons = ("kept as another file took its place meanwhile", "kept as a process has it open")
    assert report.kept[0].reason.startswith(reasons)
    assert len(quire.prune(orders, max_cycles=1).removed) == DAYS - 1


@pytest.mark.parametrize("action", ["delete", "move", "compress"])
def test_a_run_never_removes_from_a_queue_that_took_the_path(
    orders: Path, tmp_path: Path, action: str
) -> None:
    script = """
arm()
path, action, dest = sys.argv[1:]
given = {"dest": dest} if action == "move" else {}
try:
    quire.prune(path, max_cycles=1, action=action, **given)
except quire.errors.TableLostError as error:
    say(str(error).split(":")[0])
"""
    with Party(script, orders, action, tmp_path / "dest", point="audit:os.listdir:/proc") as run:
        run.wait_until_stopped()
        orders.rename(tmp_path / "elsewhere")
        write_days(orders)
        run.go_on()
        (said,) = run.result()
    assert said == "the queue's table was replaced while the queue was open"
    for path in (orders, tmp_path / "elsewhere"):
        assert len([*path.glob("*.cq4")]) == DAYS
        assert not [*path.glob("*.zst")]
    assert not [*(tmp_path / "dest").glob("*.cq4")]


class Applied(logging.Handler):
    """Knows of the failure of a retention thread."""

    def __init__(self) -> None:
        super().__init__()
        self.failed = threading.Event()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        if "retention failed" in record.getMessage() and record.exc_info:
            self.text = str(record.exc_info[1])
            self.failed.set()


ROLL = """
with quire.open(sys.argv[1], clock=quire.ManualClock(int(sys.argv[2]))) as queue:
    queue.appender().write_bytes(b"y")
"""


def test_the_thread_never_prunes_another_queue_that_took_the_path(path: Path) -> None:
    """Row 1 of the meetings: the rule is bound to the queue it was opened with."""
    seen = Applied()
    logging.getLogger("quire").addHandler(seen)
    clock = quire.ManualClock(START_MS)
    runs: list[int] = []
    real = Run.apply
    try:
        with pytest.MonkeyPatch.context() as patched:
            started = threading.Event()

            def apply(run: Run, *, dry_run: bool = False) -> quire.retaining.PruneReport:
                runs.append(1)
                started.set()
                return real(run, dry_run=dry_run)

            patched.setattr(Run, "apply", apply)
            with quire.open(path, clock=clock, retention=Retention(max_cycles=1)) as queue:
                assert started.wait(120)
                queue.appender().write_bytes(b"x")
                old = path.rename(path.with_name("old"))
                write_days(path)
                clock.advance(DAY_MS)
                with Party(ROLL, old, clock.now_ms) as other:  # the thread applies the rule then
                    assert other.result() == []
                assert seen.failed.wait(120)
    finally:
        logging.getLogger("quire").removeHandler(seen)
    # The folder or the table is looked at first, as the thread happens to come.
    refusals = ("another queue took the place of this one", "the queue's table was replaced")
    assert seen.text.startswith(refusals)
    assert len([*path.glob("*.cq4")]) == DAYS
    assert len([*old.glob("*.cq4")]) == 2


def test_what_stayed_for_a_reader_is_tried_again_without_a_roll(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk there is no next roll."""
    monkeypatch.setattr("quire.retaining.retention._AGAIN_S", 0.0)
    monkeypatch.setattr("quire.retaining.retention._LOOK_S", 0.01)
    removed = threading.Event()
    later = quire.ManualClock(START_MS + DAYS * DAY_MS)
    with quire.open(orders, read_only=True) as reader, reader.tailer() as tailer:
        assert tailer.read_bytes() == b"0"
        rule = Retention(max_cycles=1, on_removed=lambda _: removed.set())
        with quire.open(orders, clock=later, retention=rule):
            assert not removed.wait(0.1)
            tailer.release_resources()
            tailer.close()
            assert removed.wait(120)


def test_cycles_that_are_young_beside_the_newest_one_do_not_go_without_a_word(
    orders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Row 23 of the meetings: the clock jumps a year ahead."""
    caplog.set_level(logging.WARNING, logger="quire")
    ahead = quire.ManualClock(START_MS + 365 * DAY_MS)
    report = quire.prune(orders, keep="7d", clock=ahead, dry_run=True)
    assert len(report.removed) == DAYS - 1
    assert "the clock is 361.4 days past it" in caplog.text
    caplog.clear()
    right = quire.ManualClock(START_MS + (DAYS - 1) * DAY_MS)
    assert len(quire.prune(orders, keep="2d", clock=right, dry_run=True).removed) == 2
    assert caplog.text == ""


def fill_three_days(queue: quire.JournalQueue | VanillaQueue, clock: quire.ManualClock) -> None:
    with queue.appender() as appender:
        for _ in range(3):
            appender.write_bytes(b"kept")
            clock.advance(DAY_MS)


def test_an_open_queue_is_pruned_and_not_one_that_took_its_place(tmp_path: Path) -> None:
    path, clock = tmp_path / "queue", quire.ManualClock(START_MS)

    def filled() -> quire.JournalQueue:
        queue = quire.open(path, roll_cycle="FAST_DAILY", clock=clock, block_bytes=2**16)
        fill_three_days(queue, clock)
        return queue

    with filled() as queue:
        path.rename(tmp_path / "elsewhere")
        with filled() as other:
            files = sorted(path.glob("*.cq4"))
            for dry_run in (True, False):
                with pytest.raises(TableLostError):
                    quire.prune(queue, max_cycles=1, clock=clock, dry_run=dry_run)
            assert sorted(path.glob("*.cq4")) == files
            for dry_run in (True, False):
                report = quire.prune(other, max_cycles=1, clock=clock, dry_run=dry_run)
                assert len(report.removed) == 2


def test_an_open_vanilla_chronicle_is_pruned_and_not_one_that_took_its_place(
    tmp_path: Path,
) -> None:
    path, clock = tmp_path / "queue", quire.ManualClock(START_MS)

    def filled() -> VanillaQueue:
        queue = quire.vanilla.open(path, clock=clock)
        fill_three_days(queue, clock)
        return queue

    with filled() as queue:
        path.rename(tmp_path / "elsewhere")
        with filled() as other:
            cycles = other.cycles
            for dry_run in (True, False):
                with pytest.raises(TableLostError, match="was renamed, removed or replaced"):
                    quire.prune(queue, max_cycles=1, clock=clock, dry_run=dry_run)
            assert other.cycles == cycles
            for dry_run in (True, False):
                report = quire.prune(other, max_cycles=1, clock=clock, dry_run=dry_run)
                assert len(report.removed) == 2
