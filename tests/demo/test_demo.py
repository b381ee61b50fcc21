import io
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import date
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest
from demo.__main__ import main
from demo.analyse import analyse, figures_from_journal
from demo.checks import checks_of
from demo.events import timeline
from demo.figures import (
    ALL,
    Departure,
    Figures,
    Group,
    band_of,
    differences,
    figures_from_csv,
    figures_of,
    percentile,
)
from demo.flights import data_folder, number, read_flights, read_zones
from demo.folder import MARKER, make_anew
from demo.follow import TAILER
from demo.journal import Journal
from demo.record import Recording, record
from pyspark.sql import SparkSession

import quire
from paths import ROOT
from quire.cli import main as cli
from quire.formats.detection import format_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of a run in plain Python over the first day, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    with redirect_stdout(io.StringIO()) as printed:
        assert main(["--no-spark", "--limit", "842", "--dir", str(folder)]) == 0
    return folder, " ".join(printed.getvalue().split())


def test_the_demo_in_plain_python_checks_itself(run: tuple[Path, str]) -> None:
    folder, printed = run

    assert "checked all equal" in printed
    assert f"page {folder / 'flights.html'}" in printed


def test_the_journal_holds_every_event_and_the_tailers_place(run: tuple[Path, str]) -> None:
    folder, _ = run

    with quire.open(folder / "flights", create=False) as queue:
        assert queue.tailer().read_map() == {
            "event": "departed",
            "carrier": "UA",
            "flight": 1545,
            "tailnum": "N14228",
            "origin": "EWR",
            "dest": "IAH",
            "sched": 1_357_035_300_000,
            "actual": 1_357_035_420_000,
            "delay": 2,
            "hour": 5,
        }
        assert queue.tailer(TAILER).read_map() is None


@pytest.fixture(scope="module", params=["vanilla", "quick-queue"])
def older(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Return the recording of a few flights in an older format."""
    data, path = data_folder(), tmp_path_factory.mktemp("older") / "flights"
    events = timeline(read_flights(data, 300), read_zones(data))
    return record(Journal(path, request.param), events, lambda _day, _count, _totals: None)


def test_the_older_formats_hold_the_same_events(older: Recording) -> None:
    analysis = figures_from_journal(older.journal)
    checks = checks_of(older, analysis, figures_from_csv(data_folder(), 300))

    assert [check.verdict for check in checks] == ["equal"] * 3
    assert format_of(str(older.journal.path)) == older.journal.kind


@pytest.mark.spark
def test_spark_computes_the_same_from_the_older_formats(
    older: Recording, spark: SparkSession
) -> None:
    expected = figures_from_journal(older.journal)

    found = analyse(spark, older.journal)

    assert differences(found.groups, expected.groups) == []
    assert found.messages == expected.messages


@pytest.mark.spark
def test_the_demo_on_spark_checks_itself_again_and_again(tmp_path: Path) -> None:
    """In a process of its own: a demo starts and stops Spark."""
    command = [sys.executable, "-m", "demo", "--limit", "3000", "--dir", str(tmp_path)]
    for more in ([], ["--queue-format", "vanilla"]):
        ran = subprocess.run(
            [*command, *more], capture_output=True, text=True, check=False, cwd=ROOT
        )

        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "all equal" in ran.stdout
        assert ran.stderr == ""
        (cold,) = [line for line in ran.stdout.splitlines() if "analysed" in line]
        (warm,) = [line for line in ran.stdout.splitlines() if "again" in line]
        assert "the first query, cold" in cold
        assert "events/s" not in cold
        assert re.search(r"with Spark, warm, .*: [\d,]+ events/s", warm)


def shown_by(option: str, folder: Path) -> str:
    """Run the demo in another way, with figures that are equal to those without Spark."""
    ran = subprocess.run(
        [sys.executable, "-m", "demo", option, "--limit", "3000", "--dir", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""
    assert "all equal" in ran.stdout
    return ran.stdout


@pytest.mark.spark
def test_the_figures_are_those_of_the_whole_recording_when_a_node_is_killed(
    tmp_path: Path,
) -> None:
    shown = shown_by("--replicated", tmp_path)
    promoted = re.search(r"which had ([\d,]+); ([\d,]+) more were recorded there", shown)
    assert promoted is not None
    kept, more = (int(it.replace(",", "")) for it in promoted.groups())
    assert more >= 3_000 // 4
    assert "A node died" in (tmp_path / "flights.html").read_text("utf-8")
    assert (tmp_path / "nodes.log").read_text("utf-8").count("the copy was promoted") == 1
    with quire.open(tmp_path / "flights") as queue:
        assert queue.entry_count == kept + more
        queue.appender().write_map({"event": "the second node takes appends"})


@pytest.mark.spark
def test_the_figures_are_the_same_through_a_server(tmp_path: Path) -> None:
    shown = shown_by("--served", tmp_path)
    assert "serving  quire://127.0.0.1:" in shown
    with quire.open(tmp_path / "served" / "flights", read_only=True) as queue:
        recorded = re.search(r"recorded  ([\d,]+) events", shown)
        assert recorded is not None
        assert queue.entry_count == int(recorded[1].replace(",", ""))


def test_a_served_demo_takes_one_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--served", "--replicated"]) == 2
    assert "--served goes with neither --replicated nor" in capsys.readouterr().err


def test_two_nodes_take_one_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--replicated", "--queue-format", "vanilla"]) == 2
    assert "--replicated goes with the queue format chronicle alone" in capsys.readouterr().err


def test_only_a_former_demo_is_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "precious").touch()

    assert main(["--no-spark", "--dir", str(tmp_path)]) == 1
    assert f"not the directory of a former demo, left alone: path={tmp_path}" in (
        capsys.readouterr().err
    )
    assert (tmp_path / "precious").exists()


def test_a_link_to_a_former_demo_is_left_alone(tmp_path: Path) -> None:
    make_anew(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")

    with pytest.raises(FileExistsError):
        make_anew(tmp_path / "link")


def test_a_former_demo_is_deleted_or_moved_aside(tmp_path: Path) -> None:
    for keep, count in [(False, 1), (False, 1), (True, 2)]:
        made = make_anew(tmp_path / "run", keep=keep)

        assert [file.name for file in made.path.iterdir()] == [MARKER]
        assert len(list(tmp_path.iterdir())) == count


def test_missing_extras_are_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without_spark(name: str) -> ModuleSpec | None:
        return None if name == "pyspark" else find_spec(name)

    monkeypatch.setattr("demo.__main__.find_spec", without_spark)

    assert main([]) == 1
    assert capsys.readouterr().err == "quire: the demo needs pyspark: run make .venv/stamps/demo\n"


@pytest.mark.parametrize(
    ("command", "arguments", "problem"),
    [
        (cli, ["no-such-verb"], "quire: No such command 'no-such-verb'. (see: quire --help)\n"),
        (main, ["--limit", "0"], "'--limit'"),
        (cli, [], "Usage: quire"),
    ],
)
def test_wrong_use_is_reported_on_stderr(
    command: Callable[[list[str]], int],
    arguments: list[str],
    problem: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command(arguments) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--version", "--help", "-h"])
def test_the_command_tells_about_itself(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli([argument]) == 0
    assert "quire" in capsys.readouterr().out


def test_percentiles_are_exact_and_linear_between_neighbours() -> None:
    assert percentile([1, 2, 3, 4, 5], 0.95) == pytest.approx(4.8)
    assert percentile([7], 0.95) == 7


DAY = date(2013, 5, 6)


def test_cancelled_flights_count_but_have_no_delay() -> None:
    departures = [("UA", 5, 10), ("UA", 5, None), ("DL", 6, None), ("DL", 6, 61), ("DL", 7, 15)]

    figures = figures_of(Departure(carrier, hour, DAY, it) for carrier, hour, it in departures)

    assert figures[Group("UA", 5)] == Figures(2, 1, 1, 0, 10.0, 10.0)
    assert figures[Group("DL")] == Figures(3, 2, 0, 1, 38.0, 15 + 0.95 * 46)
    assert figures[Group(hour=7)].late == 1
    assert figures[ALL].cancelled == 2
    assert figures[ALL] == figures[Group(day=DAY)] == figures[Group(month=5)]
    bands = {group.band: it.flights for group, it in figures.items() if group.band is not None}
    assert bands == {10: 1, 15: 1, 60: 1}


@pytest.mark.parametrize(
    ("delay", "band"), [(-43, -30), (-30, -30), (-1, -5), (0, 0), (4, 0), (5, 5), (1301, 180)]
)
def test_delays_fall_into_bands(delay: int, band: int) -> None:
    assert band_of(delay) == band


def test_a_difference_names_its_group() -> None:
    group = Group("UA", 5)
    expected = {group: Figures(2, 2, 1, 1, 1.0, 2.0)}

    assert differences({group: Figures(2, 2, 1, 1, 1.0 + 1e-12, 2.0)}, expected) == []
    for wrong in (
        Figures(2, 2, 1, 1, 1.1, 2.0),
        Figures(2, 2, 1, 0, 1.0, 2.0),
        Figures(2, 2, 1, 1, 1.0, None),
    ):
        (difference,) = differences({group: wrong}, expected)
        assert difference.startswith("Group(carrier='UA', hour=5, ")
    assert len(differences({}, expected)) == 1


def test_without_a_java_the_demo_says_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from quire.spark.sessions import java

    monkeypatch.setattr(java, "_programs", lambda: iter([("PATH", None)]))

    assert main(["--dir", str(tmp_path / "run")]) == 1
    assert "PATH=none; install one, or: pip install 'quire[java]'; or use --no-spark" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_wrong_result_fails_the_demo_and_is_on_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def misread(text: str) -> int | None:
        return 15 if text == "14" else number(text)

    monkeypatch.setattr("demo.figures.number", misread)

    assert main(["--no-spark", "--limit", "500", "--dir", str(tmp_path / "run")]) == 1
    assert "results are wrong; the first: " in capsys.readouterr().err
    assert " differ: Group(" in (tmp_path / "run" / "flights.html").read_text("utf-8")


def test_the_page_shows_what_was_found(run: tuple[Path, str]) -> None:
    """The expected numbers were counted in the file: its first 842 rows are those of 1 January."""
    folder, _ = run

    page = (folder / "flights.html").read_text("utf-8")
    assert "842 flights from Newark, JFK and LaGuardia, from 1 January to 1 January" in page
    assert "On 1 January 4 of 842 flights never left" in page
    assert page.count("<svg") == page.count("<figcaption>") == 11
    assert page.count(">equal</td>") == 6
    assert "838 departures, 837 arrivals and 4 cancellations" in page
    assert "nan" not in page.lower()


def test_the_page_shows_a_group_a_retention_run_and_metrics(run: tuple[Path, str]) -> None:
    folder, printed = run

    page = (folder / "flights.html").read_text("utf-8")
    assert "shared 1,679 events by 2 processes of the consumer group" in printed
    assert "1,000 events were delivered again, none was lost, and 0 wait" in page
    assert "The rule keeps 1 of 2 daily files" in page
    assert "audit has read up to 2 January" in page
    assert "0 files stay for it; 1 went in" in page
    assert "1,679 messages of" in page
    assert "1,679 read, 2 files made" in page
    with quire.open(folder / "flights-pruned", read_only=True) as queue:
        assert len(queue.cycles) == 1
    with quire.open(folder / "flights", read_only=True) as queue:
        assert queue.group("desks").lag == 0
        assert queue.metrics().append_latency.count == 1679


@pytest.mark.parametrize("name", ["flights", "services"])
def test_what_the_examples_record_replaces_nothing_else(tmp_path: Path, name: str) -> None:
    examples = ROOT / "examples" / "pipelines"
    record = runpy.run_path(str(examples / name / "record.py"))["record"]
    (tmp_path / "thesis.txt").write_text("mine")

    with pytest.raises(FileExistsError, match="left alone: path="):
        record(tmp_path, 1)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
