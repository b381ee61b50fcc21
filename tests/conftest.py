"""
Fixtures of the tests of queues, and Hypothesis profiles.

`HYPOTHESIS_PROFILE=slow` searches for minutes; without it the search fits into every test run.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

import quire
import tally as counts
from cli_runs import Cli
from paths import TESTS
from queues import START_MS
from served import serving
from spark_session import ENVIRONMENT, SharedSession
from torture import Torture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Kinds of tests that `make test` leaves to `make check`, but for those marked `smoke`.
LEFT_TO_CHECK = {"java", "slow", "spark"}
TORTURE_PLUGIN = "quire-torture"
FOLDER_MARKERS = {"attack": "slow", "java": "java", "spark": "spark"}

# A shell that starts pytest in the background has it, and its children, ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.update(ENVIRONMENT)  # for every Spark that a test starts, in whichever process


# How full the machine's own disk is decides no test, in whichever process.
os.environ["QUIRE_LOW_SPACE_PERCENT"] = "0"

settings.register_profile(
    "fast",
    max_examples=120,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "slow",
    max_examples=5000,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def pytest_configure(config: pytest.Config) -> None:
    """Have `make torture` run what it is for."""
    if counts.TORTURE:
        config.pluginmanager.register(Torture(), TORTURE_PLUGIN)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist looks for the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Set what follows from where a test lies: its kind, its size and its worker."""
    for item in items:
        starts_spark = item.get_closest_marker("spark") or "spark" in item.fixturenames
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in FOLDER_MARKERS:
            item.add_marker(FOLDER_MARKERS[folder])
        kinds = {mark.name for mark in item.iter_markers()}
        if hasattr(item.module, "Party"):  # needs the build with fault points
            item.add_marker("check")
        if kinds & LEFT_TO_CHECK and "smoke" not in kinds:
            item.add_marker("check")
        if starts_spark:
            item.add_marker(pytest.mark.xdist_group("spark"))  # one worker runs Sparks
        elif not kinds & LEFT_TO_CHECK:  # many are shorter than what it takes to hand them out
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(TESTS))))
    # Those that take longest begin first, so that no worker is left alone with them.
    items.sort(key=lambda item: item.get_closest_marker("smoke") is None)


@pytest.fixture(scope="session")
def shared_session() -> Iterator[SharedSession]:
    """One Spark session for all tests of a process: starting it takes seconds."""
    shared = SharedSession()
    yield shared
    shared.stop()


@pytest.fixture
def spark(shared_session: SharedSession) -> SparkSession:
    """The session of all tests, which no earlier test has broken."""
    return shared_session.get()


@pytest.fixture
def clock() -> quire.ManualClock:
    """2024-01-15T10:30:00Z, until it is moved."""
    return quire.ManualClock(START_MS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The directory of the queue below."""
    return tmp_path / "queue"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have tests of a queue that are marked `remote` run on that of a server too."""
    marked = metafunc.definition.get_closest_marker
    if marked("remote") and not marked("local") and "queue_place" in metafunc.fixturenames:
        metafunc.parametrize("queue_place", ["home", "remote"], indirect=True)


@pytest.fixture
def queue_place(request: pytest.FixtureRequest) -> str:
    """Where the queue below is."""
    return getattr(request, "param", "home")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server for all tests of a process."""
    with serving(tmp_path_factory.mktemp("served") / "queues") as (port, _):
        yield f"quire://127.0.0.1:{port}"


@pytest.fixture
def queue(
    path: Path, queue_place: str, request: pytest.FixtureRequest
) -> Iterator[quire.JournalQueue]:
    """An empty queue that rolls daily, of small files."""
    options: dict[str, Any] = {"roll_cycle": "TEST4_DAILY", "block_bytes": 2**16}
    if queue_place == "home":
        where: str | Path = path
        options["clock"] = request.getfixturevalue("clock")
    else:
        where = f"{request.getfixturevalue('server')}/{uuid4().hex}"
    open_any: Any = quire.open
    with open_any(where, **options) as queue:
        yield queue


@pytest.fixture
def appender(queue: quire.JournalQueue) -> Iterator[quire.JournalAppender]:
    """An appender of the queue above."""
    with queue.appender() as appender:
        yield appender


@pytest.fixture
def tailer(queue: quire.JournalQueue) -> Iterator[quire.JournalTailer]:
    """A tailer of the queue above."""
    with queue.tailer() as tailer:
        yield tailer


@pytest.fixture
def cli(capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command, run in this process."""
    return Cli(capsysbinary)


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> counts.Tally:
    """Leave how often a promise was tried: `tally(promise, count, of_what)`."""
    torture = request.config.pluginmanager.get_plugin(TORTURE_PLUGIN)
    return torture.leave if isinstance(torture, Torture) else counts.leave
