"""Pipeline files of strangers: errors are reported, and take little memory."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest

from cli_runs import COMMAND
from parameters import some
from quire.pipeline import PipelineFileError, load

MIB = 1 << 20


def aliases(levels: int) -> str:
    """Nine times the line before, on each line."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)
    ]
    return "\n".join(lines)


def merges(levels: int) -> str:
    lines = ["a0: &a0 {x: 1}"]
    lines += [
        f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}"
        for level in range(1, levels)
    ]
    return "\n".join(lines)


TEXTS = {
    "aliases": (
        aliases(9),
        "not YAML: too many values with all aliases: limit=",
    ),
    "merges": (merges(9), "not YAML: too many values with all aliases: limit="),
    "itself": ("a: &a [1, *a]", "1: not YAML: an alias refers to a value that contains it"),
    "itself as key": ("&a {*a : 1}", "not YAML: an alias refers to a value that contains it"),
    "deep": ("a: " + "[" * 200_000, "not YAML: nested too deep: limit="),
    "deep and whole": ("[" * 200 + "]" * 200, "not YAML: nested too deep: limit="),
    "long": ("a: " + "x" * (2 * MIB), "not YAML: the file is too long: limit=1048576"),
    "long text": ("a: " + "x" * 70_000, "not YAML: a text is too long: limit=65536"),
    "base 60": ("a: 1" + ":59" * 300_000, "not YAML: a text is too long: limit=65536"),
    "no text": ("a: \ud800", "not YAML: 'utf-8' codec can't decode"),
}


@pytest.mark.parametrize("kind", some(TEXTS, keep=[0]))
def test_a_file_that_stands_for_too_much_is_refused_in_little_memory(
    tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "pipeline.yaml"
    text, problem = TEXTS[kind]
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert kind != "aliases" or len(text) < 500

    checked = subprocess.run(
        [*COMMAND, "pipeline", "check", str(file)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (400 * MIB, 400 * MIB)),
    )

    assert checked.returncode == 1, checked
    assert "Traceback" not in checked.stderr
    assert "MemoryError" not in checked.stderr
    with pytest.raises(PipelineFileError, match=problem):
        load(file)


def test_a_file_may_use_aliases(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        "pipeline: small\nmode: full\n"
        "sources:\n"
        "  one: &source {format: csv, path: one.csv, options: &options {header: true}}\n"
        "  two: {<<: *source, path: two.csv}\n"
        "  three: {format: csv, path: three.csv, options: *options}\n"
        "steps: {all: {sql: 'select * from {one}, {two}, {three}'}}\n"
        "sinks: [{from: all, format: parquet, path: out}]\n"
    )

    assert [it.options for it in load(file).sources] == [{"header": "true"}] * 3
