import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest
from matplotlib.image import imread

import quire
from quire.cli import main
from quire.demo.analyse import Figures, Group, differences, figures_of, percentile
from quire.demo.folder import MARKER, make_anew
from quire.demo.follow import TAILER


def test_the_demo_in_plain_python_checks_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--no-spark", "--limit", "2000", "--dir", str(tmp_path / "run")]) == 0

    told = " ".join(capsys.readouterr().out.split())
    assert "checked all equal" in told
    assert f"picture {tmp_path / 'run' / 'delays.png'}" in told
    assert imread(tmp_path / "run" / "delays.png").shape[1] > 1_000


def test_the_journal_holds_every_event_and_the_tailers_place(tmp_path: Path) -> None:
    assert main(["demo", "--no-spark", "--limit", "500", "--dir", str(tmp_path / "run")]) == 0

    with quire.open(tmp_path / "run" / "flights", create=False) as queue:
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


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_demo_on_spark_checks_itself_again_and_again(tmp_path: Path) -> None:
    """In a process of its own: a demo starts and stops Spark."""
    program = "import sys; from quire.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "demo", "--limit", "3000", "--dir", str(tmp_path)]
    for _ in range(2):
        ran = subprocess.run(command, capture_output=True, text=True, check=False)

        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "all equal" in ran.stdout
        assert ran.stderr == ""


def test_only_a_former_demo_is_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "precious").touch()

    assert main(["demo", "--no-spark", "--dir", str(tmp_path)]) == 1
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

    monkeypatch.setattr("quire.cli.demo.find_spec", without_spark)

    assert main(["demo"]) == 1
    assert capsys.readouterr().err == "quire: the demo needs pyspark: pip install 'quire[demo]'\n"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["no-such-verb"], 2, "quire: No such command 'no-such-verb'. (see: quire --help)\n"),
        (["demo", "--limit", "0"], 2, "'--limit'"),
        ([], 2, "Usage: quire"),
    ],
)
def test_wrong_use_is_told_on_stderr(
    arguments: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--version", "--help", "-h"])
def test_the_command_tells_about_itself(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([argument]) == 0
    assert "quire" in capsys.readouterr().out


def test_percentiles_are_exact_and_linear_between_neighbours() -> None:
    assert percentile([1, 2, 3, 4, 5], 0.95) == pytest.approx(4.8)
    assert percentile([7], 0.95) == 7


def test_cancelled_flights_count_but_have_no_delay() -> None:
    figures = figures_of([("UA", 5, 10), ("UA", 5, None), ("DL", 6, None)])

    assert figures["UA", 5] == Figures(2, 1, 10.0, 10.0)
    assert figures["DL", None] == Figures(1, 0, None, None)
    assert figures[None, None] == Figures(3, 1, 10.0, 10.0)


def test_a_difference_names_its_group() -> None:
    expected: dict[Group, Figures] = {("UA", 5): Figures(2, 2, 1.0, 2.0)}

    assert differences({("UA", 5): Figures(2, 2, 1.0 + 1e-12, 2.0)}, expected) == []
    assert differences({("UA", 5): Figures(2, 2, 1.1, 2.0)}, expected)[0].startswith(
        "carrier=UA hour=5: "
    )
    assert len(differences({}, expected)) == 1


def test_without_a_java_the_demo_says_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from quire.spark import java

    monkeypatch.setattr(java, "_programs", lambda: iter([("PATH", None)]))

    assert main(["demo", "--dir", str(tmp_path / "run")]) == 1
    assert "PATH=none; install one, or: pip install 'quire[java]'; or use --no-spark" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not (tmp_path / "run").exists()
