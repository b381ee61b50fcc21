"""What all verbs share: formats of rows, colour, completion, and what a verb imports."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import quire
from cli_runs import ENVIRONMENT, Cli
from quire.cli.output.row_formats import counted, number_text, print_rows
from quire.cli.verb_group import VERBS

HEAVY = {
    "rich",
    "textual",
    "pydantic",
    "lark",
    "pyarrow",
    "pandas",
    "matplotlib",
    "pyspark",
    "jinja2",
}
COLUMNS = ("name", "count", "share", "alive", "note")
ROWS = [
    {"name": "risk", "count": 12_345, "share": 0.5, "alive": True, "note": "\x1b[31m\u202e"},
    {"name": "audit, old", "count": 7, "share": 1.25, "alive": False, "note": None},
]


@pytest.mark.parametrize(
    ("given", "meant"), [("raed", "read"), ("append", "write"), ("ls", "stat"), ("xyzzy", None)]
)
def test_a_verb_that_is_not_there(cli: Cli, given: str, meant: str | None) -> None:
    ran = cli(given, "orders")
    hint = "" if meant is None else f" Did you mean '{meant}'?"
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"quire: No such command '{given}'.{hint} (see: quire --help)\n"


def printed(style: str, capture: pytest.CaptureFixture[bytes], rows: object = ROWS) -> bytes:
    assert isinstance(rows, list)
    print_rows(style, COLUMNS, rows)  # pyright: ignore[reportUnknownArgumentType]
    return capture.readouterr().out


def test_rows_are_the_same_in_every_format(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert json.loads(printed("json", capsysbinary)) == ROWS
    lines = printed("jsonl", capsysbinary).splitlines()
    assert [json.loads(line) for line in lines] == ROWS
    documents = printed("yaml", capsysbinary).decode().split("---\n")[1:]
    read = [json.loads(quire.types.to_json(quire.types.parse_yaml(text))) for text in documents]
    assert [it["count"] for it in read] == [12_345, 7]
    text = printed("csv", capsysbinary).decode()
    assert [row["name"] for row in csv.DictReader(io.StringIO(text))] == ["risk", "audit, old"]
    with pa.ipc.open_stream(printed("arrow", capsysbinary)) as stream:
        assert stream.read_all().to_pylist() == ROWS


def test_no_rows_are_no_error_in_any_format(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert json.loads(printed("json", capsysbinary, [])) == []
    assert printed("jsonl", capsysbinary, []) == printed("yaml", capsysbinary, []) == b""
    assert printed("csv", capsysbinary, []) == b"name,count,share,alive,note\n"
    assert printed("text", capsysbinary, []) == b"name  count  share  alive  note\n"
    with pa.ipc.open_stream(printed("arrow", capsysbinary, [])) as stream:
        assert stream.read_all().num_rows == 0


def test_a_table_aligns_numbers_and_escapes_controls(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert printed("text", capsysbinary).decode().splitlines() == [
        "name        count  share  alive  note",
        "risk        12345    0.5  yes    \\x1b[31m\\u202e",
        "audit, old      7   1.25  no     -",
    ]


def test_numbers_have_commas_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert number_text(12_345) == "12345"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert number_text(12_345) == "12,345"
    assert counted(1, "file") == "1 file"
    assert counted(2_000, "file") == "2,000 files"


def test_a_verb_imports_nothing_heavy_for_its_help_nor_for_text(tmp_path: Path) -> None:
    with quire.open(tmp_path / "queue") as queue, queue.appender() as appender:
        appender.write_map({"symbol": "EURUSD"})
    program = f"""if True:
        import sys
        from quire.cli import main
        for verb in {sorted(VERBS)}:
            assert main([verb, "--help"]) == 0, verb
        assert main(["read", {str(tmp_path / "queue")!r}]) == 0
        assert main(["stat", {str(tmp_path / "queue")!r}]) == 0
        print("loaded:", *sorted({HEAVY} & {{it.partition(".")[0] for it in sys.modules}}))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == b"loaded:"


@pytest.mark.parametrize(("no_color", "has_color"), [(None, True), ("", True), ("1", False)])
def test_headings_are_coloured_on_a_terminal_only(no_color: str | None, *, has_color: bool) -> None:
    program = (
        "from quire.cli.output.row_formats import print_rows; print_rows('text', ['a'], [{'a': 1}])"
    )
    environment = {**ENVIRONMENT, "TERM": "xterm"}
    environment |= {} if no_color is None else {"NO_COLOR": no_color}
    shown, side = pty.openpty()
    subprocess.run([sys.executable, "-c", program], stdout=side, env=environment, check=True)
    os.close(side)
    assert (b"\x1b[1m" in os.read(shown, 1000)) is has_color
    os.close(shown)
    piped = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, env=environment, check=True
    )
    assert b"\x1b" not in piped.stdout


def test_a_binary_format_is_refused_on_a_terminal() -> None:
    program = """from quire.cli.output.row_formats import print_rows
print_rows("arrow", ["a"], [{"a": 1}])"""
    shown, side = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=side, stderr=subprocess.PIPE, check=False
    )
    os.close(side)
    os.close(shown)
    assert b"redirect stdout" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_and_installed_once(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert "_QUIRE_COMPLETE" in cli.ok("completion").out
    assert cli.ok("completion", shell).out == cli.ok("completion").out
    assert cli.ok("completion", "--install").out.startswith("installed=")
    (file,) = [it for it in tmp_path.rglob("*") if it.is_file()]
    assert f"_QUIRE_COMPLETE={shell}_source quire" in file.read_text()
    before = file.read_bytes()
    assert cli.ok("completion", "--install").out == f"present={file}\n"
    assert file.read_bytes() == before


def test_completion_keeps_a_start_up_file_that_is_not_utf8(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file, before = tmp_path / ".bashrc", b'export NAME="Andr\xe9"'
    file.write_bytes(before)
    assert cli.ok("completion", "bash", "--install").out.startswith("installed=")
    assert file.read_bytes() == before + b'\neval "$(_QUIRE_COMPLETE=bash_source quire)"\n'
    assert cli.ok("completion", "bash", "--install").out == f"present={file}\n"


def test_completion_without_a_known_shell_says_which_there_are(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    ran = cli("completion")
    assert ran.code == 2
    assert "SHELL='tcsh' (name one of bash, zsh, fish)" in ran.err


def test_the_shell_is_offered_verbs_and_options() -> None:
    environment = ENVIRONMENT | {"_QUIRE_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    for words, expected in (("quire re", "read"), ("quire stat --", "--json")):
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        program = [sys.executable, "-c", "from quire.cli import main; main()"]
        done = subprocess.run(
            program, env=environment | asked, capture_output=True, text=True, check=False
        )
        assert f"plain,{expected}" in done.stdout.splitlines()
