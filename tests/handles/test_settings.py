"""Options of ``quire.open`` from environment variables and from ``quire.toml``."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import Cli
from queues import DAY_MS, START_MS


def indexes(path: Path) -> list[int]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [excerpt.index for excerpt in tailer]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, which holds no queue, without options set for the test run itself."""
    for name in [name for name in os.environ if name.startswith("QUIRE_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def config(cli: Cli, path: Path) -> dict[str, tuple[object, str]]:
    lines = cli.ok("stat", path, "--config", "--format", "jsonl").out.splitlines()
    rows = map(json.loads, lines)
    return {row["option"]: (row["value"], row["origin"]) for row in rows}


def test_the_environment_holds_over_the_file_and_arguments_over_both(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    file = folder / "mine.toml"
    file.write_text("[open]\nroll_cycle = 'HOURLY'\nsource_id = 3\nfile_mode = 0o640\n")
    monkeypatch.setenv("QUIRE_CONFIG", str(file))
    monkeypatch.setenv("QUIRE_SOURCE_ID", "4")
    monkeypatch.setenv("QUIRE_TIMEOUT_S", "2.5")
    monkeypatch.setenv("QUIRE_PRETOUCH", "off")

    found = config(cli, path)
    assert found["roll_cycle"] == ("HOURLY", str(file))
    assert found["file_mode"] == ("0o640", str(file))
    assert found["source_id"] == (4, "QUIRE_SOURCE_ID")
    assert found["timeout_s"] == (2.5, "QUIRE_TIMEOUT_S")
    assert found["pretouch"] == (False, "QUIRE_PRETOUCH")
    assert found["durability"] == ("process", "default")

    with quire.open(path, roll_cycle="DAILY") as queue:
        assert (queue.roll_cycle.name, queue.source_id) == ("DAILY", 4)
        queue.appender().write_bytes(b"a")
        assert Path(queue.file_for_cycle(queue.cycles[0])).stat().st_mode & 0o777 == 0o640
    with quire.open(folder / "other") as queue:
        assert queue.roll_cycle.name == "HOURLY"


def test_an_existing_queue_keeps_what_it_was_created_with(
    path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    with quire.open(path, roll_cycle="DAILY") as queue:
        queue.appender().write_bytes(b"a")
    monkeypatch.setenv("QUIRE_ROLL_CYCLE", "HOURLY")

    with quire.open(path) as queue:
        assert queue.roll_cycle.name == "DAILY"
    assert "roll_cycle" not in config(cli, path)


@pytest.mark.parametrize("kind", ["vanilla", "quick-queue"])
def test_options_that_a_format_lacks_are_left_out(
    path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, kind: str
) -> None:
    monkeypatch.setenv("QUIRE_DURABILITY", "batch")
    monkeypatch.setenv("QUIRE_BUFFER_MODE", "async")
    monkeypatch.setenv("QUIRE_PAGE_BYTES", "0x10000")

    with quire.open(path, format=kind) as queue:  # type: ignore[call-overload]
        queue.appender().write_bytes(b"a")
    assert not {"durability", "buffer_mode", "page_bytes"} & config(cli, path).keys()


def test_the_ring_can_be_set_and_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_WRITE_BUFFER_MODE", "async")
    monkeypatch.setenv("QUIRE_BUFFER_CAPACITY_BYTES", "65536")

    with quire.open(path) as queue:
        assert queue.ring is not None
        assert queue.ring.capacity_bytes == 65536
    with quire.open(path, buffer_mode="none") as queue:
        assert queue.ring is None
    with quire.open(path, read_only=True) as queue:
        assert queue.ring is None
    monkeypatch.delenv("QUIRE_WRITE_BUFFER_MODE")
    with quire.open(path) as queue:
        assert queue.ring is None
    (path / "async.ring").unlink(missing_ok=True)
    with quire.open(path, buffer_mode="async") as queue:
        assert queue.ring is not None
        assert queue.ring.capacity_bytes == 65536


def test_a_clock_that_is_called_has_no_ring(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_BUFFER_MODE", "async")

    with quire.open(path, clock=lambda: START_MS) as queue:
        assert queue.ring is None


def test_an_encrypted_queue_has_no_ring(
    path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("QUIRE_BUFFER_MODE", "async")
    ring = quire.KeyRing({"a": b"k" * 32}, current="a")

    with quire.open(path, key=ring) as queue:
        assert queue.ring is None
        queue.appender().write_text("a")
    with ring.as_default(), quire.open(path) as queue:
        assert queue.ring is None
        assert queue.tailer().read_text() == "a"
    assert config(cli, path)["buffer_mode"] == (None, "default")
    monkeypatch.setenv("QUIRE_DURABILITY", "each")
    with pytest.raises(quire.errors.UnsupportedError, match="cannot be synced") as caught:
        quire.open(path.with_name("other"), buffer_mode="async")
    assert caught.value.__notes__ == [
        "options that were not given were set: durability=QUIRE_DURABILITY"
    ]


def test_what_quire_makes_of_a_queue_does_not_go_through_a_ring(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, clock=clock, roll_cycle="MINUTELY") as queue,
        queue.appender() as appender,
    ):
        for number in range(4):
            appender.write_map({"n": number})
            clock.now_ms += 60_000
    monkeypatch.setenv("QUIRE_BUFFER_MODE", "async")
    outs = [folder / name for name in ("merged", "converted", "replayed")]

    cli.ok("merge", path, outs[0], "--by", "n")
    cli.ok("convert", path, outs[1], "--into", "chronicle")
    quire.replay(path, out=outs[2])

    assert [indexes(out) for out in outs] == [indexes(path)] * len(outs)


@pytest.mark.parametrize("verb", [["read"], ["stat"], ["tailers"], ["copy", "copied"]])
def test_readers_do_not_seal(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, verb: list[str]
) -> None:
    (folder / "quire.toml").write_text("[open]\nintegrity = true\n")
    with quire.open(path) as queue:
        queue.appender().write_text("a")
    assert (path / "seals.quire").exists()
    before = {it.name: it.stat().st_mtime_ns for it in path.iterdir()}

    cli.ok(verb[0], path, *verb[1:])
    cli.ok("verify", path)

    assert {it.name: it.stat().st_mtime_ns for it in path.iterdir()} == before
    monkeypatch.setenv("QUIRE_INTEGRITY", "1")
    cli.ok("verify", path)
    with pytest.raises(quire.errors.ReadOnlyError, match="integrity=True seals the queue"):
        quire.open(path, read_only=True, integrity=True)


def test_a_wrong_setting_is_no_finding_about_seals(
    path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    with quire.open(path, integrity=True) as queue:
        queue.appender().write_text("a")
    monkeypatch.setenv("QUIRE_FORCE_UNLOCK", "maybe")

    for verb in ("verify", "history", "seal"):
        ran = cli(verb, path)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "invalid QUIRE_FORCE_UNLOCK='maybe': " in ran.err


@pytest.mark.parametrize(
    "verb",
    [
        ["copy", "copied"],
        ["prune", "--max-cycles", "1"],
        ["refresh"],
        ["tailers", "--delete", "one"],
        ["unlock"],
        ["pretouch", "--once"],
    ],
)
def test_tools_make_no_ring(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, verb: list[str]
) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_text("a")
        queue.tailer("one").close()
    monkeypatch.setenv("QUIRE_BUFFER_MODE", "async")
    monkeypatch.setenv("QUIRE_READ_BUFFER_MODE", "async")

    cli.ok(verb[0], path, *verb[1:])

    assert list(folder.rglob("async*.ring")) == []


def test_a_working_directory_that_is_gone_has_no_file(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with quire.open(path) as queue:
        assert queue.source_id == 0


def test_how_long_syncs_wait_is_set_only_where_there_are_syncs(
    path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("QUIRE_GROUP_COMMIT_S", "3600")

    with quire.open(path) as queue:
        queue.appender().write_bytes(b"a")
    assert config(cli, path)["group_commit_s"] == (None, "default")
    monkeypatch.setenv("QUIRE_DURABILITY", "batch")
    with quire.open(path) as queue:
        queue.appender().write_bytes(b"b")
    assert config(cli, path)["group_commit_s"] == (3600, "QUIRE_GROUP_COMMIT_S")


@pytest.mark.parametrize(
    ("variable", "problem"),
    [
        (("QUIRE_TIMEOUT_S", "soon"), "invalid QUIRE_TIMEOUT_S='soon'"),
        (("QUIRE_TIMEOUT_S", "-1"), "cannot be negative"),
        (("QUIRE_METRICS", "perhaps"), "expected 1 or 0"),
        (("QUIRE_DURABILITY", "always"), "expected one of process, batch, each"),
        (("QUIRE_SOURCE_ID", "1.5"), "invalid QUIRE_SOURCE_ID='1.5'"),
        (("QUIRE_BUFFER_MODE", "copy"), "expected one of async, none"),
    ],
)
def test_a_wrong_variable_is_named(
    path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, variable: tuple[str, str], problem: str
) -> None:
    monkeypatch.setenv(*variable)

    with pytest.raises(ValueError, match=problem):
        quire.open(path)
    ran = cli("stat", path, "--config")
    assert (ran.code, variable[0] in ran.err) == (2, True)
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[open\n", "not a TOML file"),
        ("[shut]\n", r"expected one table, \[open\]: found='shut'"),
        ("open = 1\n", r"expected one table, \[open\]"),
        ("[open]\ntimeout = 1\n", "not an option that can be set: option='timeout'"),
        ("[open]\nclock = 1\n", "not an option that can be set: option='clock'"),
        ("[open]\ntimeout_s = '1'\n", "invalid timeout_s: expected seconds, found str"),
        ("#" * 70_000, "longer than 65536 bytes"),
        ("[open]\nsource_id = '\udcff'\n", "not a TOML file"),
        ("[open]\nsource_id = " + "[" * 30_000, "not a TOML file"),
        ("[open]\nsource_id = " + "1" * 5_000, "not a TOML file"),
    ],
)
def test_a_wrong_file_is_named(path: Path, folder: Path, text: str, problem: str) -> None:
    file = folder / "quire.toml"
    file.write_text(text, "utf-8", "surrogateescape")

    with pytest.raises(ValueError, match=rf"{problem}.* path={file}"):
        quire.open(path)


def test_a_file_can_be_named(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "mine.toml"
    monkeypatch.setenv("QUIRE_CONFIG", str(file))
    with pytest.raises(FileNotFoundError, match=r"mine\.toml"):
        quire.open(path)
    file.write_text("[open]\nsource_id = 9\n")
    with quire.open(path) as queue:
        assert queue.source_id == 9
    file.chmod(0o646)
    with pytest.raises(ValueError, match=r"another user could have written it: .* mode=0646"):
        quire.open(path)


def test_a_file_that_others_could_have_put_here_is_ignored(
    path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = folder / "quire.toml"
    (folder / "elsewhere").write_text("[open]\nsource_id = 9\n")
    with caplog.at_level(logging.WARNING, "quire"):
        file.symlink_to(folder / "elsewhere")
        with quire.open(path) as queue:
            assert queue.source_id == 0
        file.unlink()
        os.mkfifo(file)
        with quire.open(path) as queue:
            assert queue.source_id == 0
    assert [f"path={file}" in line for line in caplog.messages] == [True, True]


@pytest.mark.parametrize("kind", ["chronicle", "vanilla", "quick-queue", "indexed", "compressed"])
@pytest.mark.parametrize("where", [".", "received"])
def test_a_file_where_queues_lie_is_ignored(
    path: Path, folder: Path, caplog: pytest.LogCaptureFixture, kind: str, where: str
) -> None:
    received = folder / where
    received.mkdir(exist_ok=True)
    if kind == "indexed":
        (received / "old.index").touch()
        (received / "old.data").touch()
    elif kind == "compressed":
        (received / "20240101.cq4.zst").touch()
    else:
        with quire.open(received, format=kind) as queue:  # type: ignore[call-overload]
            queue.appender().write_bytes(b"a")
        (received / "metadata.cq4t").unlink(missing_ok=True)
    for number in range(100):  # not only among the first names
        (folder / f"{number:03}").touch()
    if (kind, where) == ("indexed", "received"):
        (folder / "received").rename(folder / "old")  # neither file is in the directory itself
        (folder / "old" / "old.index").rename(folder / "old.index")
        (folder / "old" / "old.data").rename(folder / "old.data")
    (folder / "quire.toml").write_text("[open]\nsource_id = 9\n")

    with caplog.at_level(logging.WARNING, "quire"), quire.open(path) as queue:
        assert queue.source_id == 0
    assert "it is in a directory of queues: name it by QUIRE_CONFIG" in caplog.text


def test_a_file_in_a_part_of_a_queue_is_ignored(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with quire.open(tmp_path / "vanilla", format="vanilla") as queue:
        queue.appender().write_bytes(b"a")
    (cycle,) = (it for it in (tmp_path / "vanilla").iterdir() if it.is_dir())
    (cycle / "quire.toml").write_text("[open]\nsource_id = 9\n")
    monkeypatch.chdir(cycle)
    with quire.open(path) as queue:
        assert queue.source_id == 0


def test_a_file_that_was_found_sets_only_what_is_harmless(
    path: Path, folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """[open]
        source_id = 9
        file_mode = 0o666
        force_unlock = "always"
        allow_network = true
        buffer_mode = "async"
        buffer_capacity_bytes = 1048576
        block_bytes = 1073741824
        max_clock_ahead_s = 1e9
        eof_grace_s = 0
    """
    file = folder / "quire.toml"
    file.write_text(text)
    with caplog.at_level(logging.WARNING, "quire"), quire.open(path) as queue:
        assert queue.source_id == 9
        assert queue.ring is None
        queue.appender().write_bytes(b"a")
        assert Path(queue.file_for_cycle(queue.cycles[0])).stat().st_mode & 0o777 == 0o600
    assert [line.split("option=")[1].split()[0] for line in caplog.messages] == [
        "file_mode",
        "force_unlock",
        "allow_network",
        "buffer_mode",
        "buffer_capacity_bytes",
        "block_bytes",
        "max_clock_ahead_s",
        "eof_grace_s",
    ]
    monkeypatch.setenv("QUIRE_CONFIG", str(file))
    with quire.open(path) as queue:
        assert queue.ring is not None


def test_a_file_that_a_group_may_write_is_not_used(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "quire.toml"
    file.write_text("[open]\nsource_id = 9\n")
    file.chmod(0o664)
    with quire.open(path) as queue:
        assert queue.source_id == 0
    monkeypatch.setenv("QUIRE_CONFIG", str(file))
    with pytest.raises(
        quire.errors.SettingError, match=r"another user could have written it: .*0664"
    ):
        quire.open(path)


def test_a_combination_that_fails_says_where_its_options_came_from(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIRE_ROLL_CYCLE", "SOMETIMES")
    with pytest.raises(ValueError, match="SOMETIMES") as raised:
        quire.open(path)
    assert raised.value.__notes__ == [
        "options that were not given were set: roll_cycle=QUIRE_ROLL_CYCLE"
    ]


@pytest.mark.parametrize(
    "verb",
    [
        ["write", "Q", "lines", "--text"],
        ["unlock", "Q"],
        ["history", "Q"],
        ["top", "Q", "--once"],
        ["replay", "Q", "--to-queue", "again"],
        ["publish", "Q", "--stdout"],
        ["bench", "."],
    ],
)
def test_verbs_name_a_wrong_setting_in_one_line(
    path: Path, folder: Path, cli: Cli, verb: list[str]
) -> None:
    quire.open(path).close()
    (folder / "lines").write_text("a\n")
    (folder / "quire.toml").write_text("[open]\ntimeout_s = -1\n")
    ran = cli(*(str(path) if it == "Q" else it for it in verb))
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert f"timeout_s=-1: path={folder / 'quire.toml'}" in ran.err


def test_variables_that_name_no_option_are_shown(
    path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIRE_TIMEOUT", "3")
    monkeypatch.setenv("QUIRE_XYZ", "3")
    monkeypatch.setenv("QUIRE_PRETOUCH", "0")
    ran = cli("stat", path, "--config")
    ignored = "quire: ignored, as it names no option: variable="
    meant = "(did you mean QUIRE_TIMEOUT_S?)"
    assert (ran.code, ran.err.count("\n")) == (0, 2)
    assert ran.err == f"{ignored}QUIRE_TIMEOUT {meant}\n{ignored}QUIRE_XYZ\n"


def test_an_archive_reports_a_wrong_setting_as_what_failed(
    path: Path, folder: Path, cli: Cli
) -> None:
    quire.open(path).close()
    (folder / "quire.toml").write_text("[open]\ntimeout_s = -1\n")
    ran = cli("archive", path, "archived")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert f"timeout_s=-1: path={folder / 'quire.toml'}" in ran.err


def test_a_directory_is_no_settings_file(
    path: Path, folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "quire.toml").mkdir()
    quire.open(path).close()  # with a warning
    monkeypatch.setenv("QUIRE_CONFIG", str(folder))
    assert cli("read", path).err == f"quire: Is a directory: path={folder}\n"


def test_write_makes_queues_as_set_and_says_what_it_wrote(
    path: Path, folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "lines").write_text("a\nb\n")
    monkeypatch.setenv("QUIRE_BUFFER_MODE", "async")
    monkeypatch.setenv("QUIRE_ROLL_CYCLE", "HOURLY")
    out = cli.ok("write", path, folder / "lines", "--text", "--create").out
    assert out == f"written=2 last={indexes(path)[-1]:#x}\n"
    with quire.open(path, read_only=True) as queue:
        assert queue.roll_cycle.name == "HOURLY"
    monkeypatch.setenv("QUIRE_ROLL_CYCLE", "NEVER")
    ran = cli("write", folder / "new", folder / "lines", "--text", "--create")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "NEVER" in ran.err


def test_a_default_that_is_given_holds_over_what_is_set(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIRE_MAX_CLOCK_AHEAD_S", "60")
    monkeypatch.setenv("QUIRE_READ_BUFFER_MODE", "async")
    clock = quire.ManualClock(START_MS)

    def days_later(wait: quire.WaitOptions | None = None) -> None:
        with quire.open(path, clock=clock, wait=wait) as queue:
            clock.advance(3 * 86_400_000)
            queue.appender().write_bytes(b"a")

    days_later()  # the first cycle
    with pytest.raises(quire.errors.ClockAheadError):
        days_later(wait=quire.WaitOptions(eof_grace_s=1))
    days_later(wait=quire.WaitOptions(max_clock_ahead_s=None))
    with quire.open(path, clock=clock) as queue:
        assert queue.ring is not None
    with quire.open(path, clock=clock, ring=quire.RingOptions(read_buffer_mode="none")) as queue:
        assert queue.ring is None
    with quire.open(path, clock=clock, ring=quire.RingOptions(read_buffer_mode=None)) as queue:
        assert queue.ring is None


def test_an_existing_queue_of_another_format_is_opened_as_set(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quire.vanilla.open(path).close()
    monkeypatch.setenv("QUIRE_CONSUMPTION", "queue")
    with quire.vanilla.open(path) as queue:
        queue.appender().write_bytes(b"a")
    found: Any = quire.open(path)
    with found as queue:
        assert queue.tailer().claim(7).data == b"a"
    with (
        quire.vanilla.open(path, consumption="topic") as queue,
        pytest.raises(quire.errors.UnsupportedError, match="consumption='queue'"),
    ):
        queue.tailer().claim(7)


def test_the_options_of_a_pretoucher_are_set_from_outside(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("QUIRE_EARLY_ACQUIRE_NEXT_CYCLE", "1")
    (folder / "quire.toml").write_text("[open]\npreroll_time_s = 60\n")
    found = config(cli, path)
    assert found["early_acquire_next_cycle"] == (True, "QUIRE_EARLY_ACQUIRE_NEXT_CYCLE")
    assert found["preroll_time_s"] == (60, str(folder / "quire.toml"))
    assert found["dont_write"] == (False, "default")

    clock = quire.ManualClock(DAY_MS - 30_000)
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock) as queue:
        for given, files in ((False, 1), (None, 2)):
            with queue.pretoucher(early_acquire_next_cycle=given) as pretoucher:
                pretoucher.execute()
            assert len([*path.glob("*.cq4")]) == files


def test_a_verb_obeys_what_is_set_for_a_pretoucher(
    path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    quire.open(path).close()
    monkeypatch.setenv("QUIRE_DONT_WRITE", "1")
    cli.ok("pretouch", path, "--once")
    assert not [*path.glob("*.cq4")]


def test_a_wrong_value_for_a_pretoucher_names_its_variable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with quire.open(path) as queue:
        monkeypatch.setenv("QUIRE_PREROLL_TIME_S", "soon")
        with pytest.raises(quire.errors.SettingError, match="QUIRE_PREROLL_TIME_S='soon'"):
            queue.pretoucher()
