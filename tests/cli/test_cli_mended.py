"""What a user of the command meets: pipes, full devices, contradicting options, help in full."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

import quire
from cli_runs import COMMAND, ENVIRONMENT, Cli
from parameters import some

START_MS = 1_705_276_800_000  # 2024-01-15T00:00Z
HOUR_MS = 3_600_000
PUBLISH = ["publish", "--stdout", "--framing", "length", "--follow"]


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(capfdbinary)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three hours of three messages."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(tmp_path / "q", roll_cycle="FAST_HOURLY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        for number in range(9):
            if number and not number % 3:
                clock.advance(HOUR_MS)
            appender.write_map({"n": number, "time": clock()})
    return tmp_path / "q"


def shown(cli: Cli, path: Path, *options: str | int) -> list[int]:
    """The numbers of the messages that ``read`` shows."""
    lines = cli.ok("read", path, "--format", "jsonl", "--no-index", *options).lines
    return [int(line.split('"n":')[1].split(",")[0]) for line in lines]


def to_device(
    device: str, *arguments: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    with Path(device).open("wb") as out:
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            stdout=out,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT | environment,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.mark.parametrize("options", [["--json"], []])
def test_a_diff_that_nobody_reads_on_ends_quietly(path: Path, options: list[str]) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for number in range(5_000):
            appender.write_map({"n": number, "text": "x" * 100})
    other = path.with_name("other")
    with quire.open(other) as queue, queue.appender() as appender:
        appender.write_map({"n": 0})
    with subprocess.Popen(
        [*COMMAND, "diff", str(path), str(other), "--limit", "10000", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(300) == 1


def test_two_formats_do_not_go_together(cli: Cli, path: Path) -> None:
    ran = cli("write", path, "--text", "--hex")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "--text and --hex do not go together" in ran.err
    ran = cli("write", path, "--format", "yaml", "--text")
    assert "--format yaml and --text do not go together" in ran.err


def test_a_queue_is_not_replayed_into_itself(cli: Cli, path: Path, tmp_path: Path) -> None:
    ran = cli("replay", path, "--to-queue", path)
    assert (ran.code, ran.out) == (2, "")
    assert "cannot replay a queue into itself" in ran.err
    (tmp_path / "link").symlink_to(path)
    assert "into itself" in cli("replay", path, "--to-queue", tmp_path / "link").err
    with pytest.raises(ValueError, match="replay a queue into itself"):
        quire.replay(path, path)


def test_a_file_of_another_format_is_refused(cli: Cli, path: Path, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("symbol,size\nEURUSD,3\n")
    ran = cli("write", path, tmp_path / "orders.csv")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no format is known by this file's name: file=" in ran.err
    assert "--format" in ran.err
    assert cli("write", path, tmp_path / "orders.csv", "--format", "text").code == 0


@pytest.mark.parametrize("name", ["of.yaml", "of.YML", "without"])
def test_yaml_and_files_without_a_suffix_are_taken(
    cli: Cli, path: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("n: 10\n---\nn: 11\n")
    assert cli.ok("write", path, tmp_path / name).out.startswith("written=2")


def test_one_pair_of_options_selects_messages(cli: Cli, path: Path) -> None:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        indexes = [it.index for it in tailer]
    assert shown(cli, path, "--from", indexes[2], "--to", indexes[4]) == [2, 3]
    assert shown(cli, path, "--from", indexes[2], "--to", indexes[2]) == []
    assert shown(cli, path, "--to", f"{indexes[2]:#x}:") == [0, 1]
    assert shown(cli, path, "--from", indexes[2], "--to", indexes[4], "--reverse") == [3, 2]
    assert shown(cli, path, "--to", indexes[8] + 1, "--reverse") == [*range(8, -1, -1)]
    assert shown(cli, path, "--to", indexes[2] + 1, "--reverse") == [2, 1, 0]
    assert shown(cli, path, "--from", indexes[7], "--reverse") == [8, 7]


def test_points_are_times_too(cli: Cli, path: Path) -> None:
    assert shown(cli, path, "--from", "2024-01-15T01:00") == [*range(3, 9)]
    assert shown(cli, path, "--to", "2024-01-15T02:00Z") == [*range(6)]
    assert shown(cli, path, "--from", "2024-01-14", "--to", f"{START_MS + HOUR_MS}ms") == [0, 1, 2]
    assert shown(cli, path, "--from", "2024-01-16") == []
    assert shown(cli, path, "--to", "2024-01-14") == []
    assert shown(cli, path, "--to", "2024-01-15T01:00", "--reverse") == [2, 1, 0]
    within = ["--from", "2024-01-15T00:30", "--time-field", "time"]
    assert shown(cli, path, *within) == [*range(3, 9)]
    ran = cli("read", path, "--from", "2024-01-15T00:30")
    assert (ran.code, "cannot seek inside a cycle" in ran.err) == (2, True)


def test_read_replay_and_diff_select_the_same(cli: Cli, path: Path) -> None:
    stretch = ["--from", "2024-01-15T01:00", "--to", "2024-01-15T02:00"]
    read = cli.ok("read", path, *stretch)
    assert cli.ok("replay", path, *stretch).raw == read.raw
    assert read.out.count("n: ") == 3
    assert cli.ok("diff", path, path, *stretch).out == "alike=3 changed=0 left=0 right=0\n"


@pytest.mark.parametrize(
    ("options", "now"),
    [
        (["--start", "0x1"], "--start is --from now"),
        (["--end", "0x1"], "--end is --to now, which ends before it"),
        (["--reverse", "--start", "0x1"], "the newest first"),
    ],
)
def test_the_former_options_say_what_they_are_now(
    cli: Cli, path: Path, options: list[str], now: str
) -> None:
    ran = cli("read", path, *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert now in ran.err
    assert "--start " not in cli.ok("read", "--help").out


@pytest.mark.parametrize(
    "verb", some(["read", "dump", "stat", "replay", "diff", "--help", "--version"], keep=[0, 5])
)
def test_a_full_device_is_named(path: Path, verb: str) -> None:
    arguments = [verb] if verb.startswith("-") else [verb, path, *([path] * (verb == "diff"))]
    done = to_device("/dev/full", *arguments)
    assert done.stderr == "quire: cannot write to stdout: No space left on device\n"
    assert done.returncode == (2 if verb == "diff" else 1)
    unbuffered = to_device("/dev/full", *arguments, PYTHONUNBUFFERED="1")
    assert (unbuffered.stderr, unbuffered.returncode) == (done.stderr, done.returncode)


@pytest.mark.parametrize("group", [[], ["pipeline"]])
def test_summaries_are_shown_in_full(cli: Cli, group: list[str]) -> None:
    printed = cli.ok(*group, "--help").out
    assert "..." not in printed.partition("Commands:")[2]
    assert "Commands:" in printed


def test_a_roll_file_that_is_not_there_is_no_directory(cli: Cli, path: Path) -> None:
    ran = cli("read", path / "nofile.cq4")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert f"no such file path={path}/nofile.cq4" in ran.err
    assert "no such directory" in cli("read", path / "nothing").err


@pytest.mark.parametrize("command", some([["tail"], PUBLISH], keep=[0]))
def test_following_ends_once_nobody_reads_on(path: Path, command: list[str]) -> None:
    verb, *options = command
    with subprocess.Popen(
        [*COMMAND, verb, str(path), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()  # and no message comes any more
        assert process.wait(300) == 1
        assert b"Traceback" not in (said := process.stderr.read())
        assert b"cannot" not in said


def with_closed(redirection: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=ENVIRONMENT,
        text=True,
        timeout=300,
        check=False,
    )


def test_closed_streams_are_no_files_of_the_queue(path: Path) -> None:
    ran = with_closed(">&-", "read", path, "--named", "audit")
    assert (ran.returncode, ran.stderr) == (
        1,
        "quire: cannot write to stdout: Bad file descriptor\n",
    )
    ran = with_closed("<&-", "write", path, "--text")
    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1)
    lines = path.with_name("lines")
    lines.write_text("x\n")
    assert with_closed("<&- >&- 2>&-", "write", path, "--text", lines).returncode == 1
    assert with_closed("<&- 2>&-", "read", path / "none").returncode == 1
    with quire.open(path, read_only=True) as queue:
        assert queue.entry_count == 10
        assert dict(queue.named_tailers()).get("audit") in {None, 0, queue.first_index}
    assert quire.verify(path).ok


@pytest.mark.parametrize("command", some([["tail"], PUBLISH, ["drain"]], keep=[0]))
def test_a_removed_queue_ends_the_verbs_that_wait(path: Path, command: list[str]) -> None:
    verb, *options = command
    with subprocess.Popen(
        [*COMMAND, verb, str(path), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if verb == "drain":
            while not (path / "async.ring").exists():
                assert process.poll() is None
                time.sleep(0.05)
        else:
            process.stdout.read(1)
        shutil.rmtree(path)
        assert process.wait(300) == 1
        assert f"quire: the queue was removed or replaced: path={path}" in (
            process.stderr.read().decode()
        )


@pytest.mark.parametrize(
    "arguments",
    [["read", ""], ["prune", "", "--keep", "7d"], ["repair", "", "--apply"], ["copy", "Q", ""]],
)
def test_an_empty_path_is_not_the_working_directory(
    cli: Cli, path: Path, arguments: list[str]
) -> None:
    ran = cli(*(str(path) if it == "Q" else it for it in arguments))
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "an empty path" in ran.err


@pytest.mark.parametrize("named", ["os:getcwd", "pathlib:Path"])
@pytest.mark.parametrize("arguments", [["read"], ["write", "--method", "m", "--format", "yaml"]])
def test_what_is_no_interface_is_one_line(
    cli: Cli, path: Path, arguments: list[str], named: str
) -> None:
    file = path.with_name("messages")
    file.write_text("a\n")
    verb, *options = arguments
    files = [file] if verb == "write" else []
    ran = cli(verb, path, *files, "--interface", named, *options)
    assert (ran.code, ran.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["repair", "Q", "--timeout", "nan"], "'nan' is no number"),
        (["jitter", "--seconds", "nan"], "'nan' is no number"),
        (["top", "Q", "--once", "--interval", "nan"], "'nan' is no number"),
        (["record", "Q", "--tcp", "0", "--idle-timeout", "nan"], "'nan' is no number"),
        (["diff", "Q", "Q", "--json", "--format", "csv"], "do not go together"),
        (["stat", "Q", "--json", "--format", "csv"], "do not go together"),
    ],
)
def test_wrong_numbers_and_formats_are_wrong_usage(
    cli: Cli, path: Path, arguments: list[str], said: str
) -> None:
    ran = cli(*(str(path) if it == "Q" else it for it in arguments))
    assert (ran.code, ran.err.count("\n"), ran.raw) == (2, 1, b"")
    assert said in ran.err


def test_a_table_alone_is_not_called_damaged(cli: Cli, path: Path) -> None:
    ran = cli("verify", path / "metadata.cq4t")
    assert (ran.code, ran.err.count("\n"), ran.raw) == (1, 1, b"")
    assert "give the directory of the queue" in ran.err


@pytest.mark.parametrize(
    ("size", "shown"),
    [("32MiB", ""), ("65536", ""), ("much", "not a size"), ("0", "is not in the range x>=1")],
)
def test_sizes_are_bytes_or_have_units(cli: Cli, tmp_path: Path, size: str, shown: str) -> None:
    ran = cli("record", "--stdin", "--max-bytes", size, tmp_path / "none")
    assert ran.code != 0
    assert (shown or "no such directory") in ran.err


def test_a_unit_without_its_field_is_refused(cli: Cli, path: Path, tmp_path: Path) -> None:
    ran = cli("archive", path, tmp_path / "table", "--timestamp-unit", "ms")
    assert ran.code == 2
    assert "--timestamp-unit requires --timestamp-field" in ran.err
    assert not (tmp_path / "table").exists()
