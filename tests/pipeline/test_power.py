"""Power cuts: what a pipeline said is done is there, and nothing comes twice."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from parameters import some
from power import CutError, Power
from quire.errors import UnsafePathError
from quire.pipeline import PipelineError
from quire.pipeline.runtime.sinks.parquet_folder import STAGING, ParquetFolder
from quire.pipeline.runtime.state import State
from quire.pipeline.spec.parts import QueueSource

NAMES = ("day=1/a.parquet", "day=1/b.parquet", "c.parquet")
IMAGES = [True, False]


def names_of(batch: int) -> tuple[str, ...]:
    """The first batch has a folder that the second one has nothing for."""
    return (*NAMES, "day=9/z.parquet") if batch == 1 else NAMES


def write(folder: Path, batch: int, *, replace: bool = False) -> None:
    """Write a batch as a pipeline does: unless it is there."""

    def made(place: str) -> None:
        for name in names_of(batch):
            (Path(place) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(place) / name).write_text(f"{batch} {name}")

    sink = ParquetFolder(str(folder), f"run{batch}" if replace else "writer", r"run\d*")
    if replace or not sink.has(batch):
        sink.write(batch, made, replace=replace)


def contents(folder: Path) -> Counter[str]:
    found = [it for it in folder.rglob("*.parquet") if STAGING not in it.parts]
    return Counter(it.read_text() for it in found)


def expected(*batches: int) -> Counter[str]:
    return Counter(f"{batch} {name}" for batch in batches for name in names_of(batch))


@pytest.mark.parametrize("replace", some([False, True], keep=[1]), ids=["append", "replace"])
@pytest.mark.parametrize("is_named", some(IMAGES, keep=[0]))
def test_a_power_cut_anywhere_in_a_batch_loses_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, replace: bool, is_named: bool
) -> None:
    """Twice: while a batch is written, and while the next attempt makes up for that."""
    cuts = 0
    for steps in range(200):
        here, left = tmp_path / f"{steps}", tmp_path / f"{steps} left"
        here.mkdir()
        with monkeypatch.context() as patch:
            power = Power(here, patch)
            write(here / "out", 1, replace=replace)
            power.cut_after(steps)
            try:
                write(here / "out", 2, replace=replace)
            except CutError:
                cuts += 1
            is_done = steps >= cuts
        power.image(left, is_named=is_named)
        if is_done:
            assert contents(left / "out") == (expected(2) if replace else expected(1, 2))
        write(left / "out", 2, replace=replace)
        assert contents(left / "out") == (expected(2) if replace else expected(1, 2)), steps
        if is_done:
            break
    assert cuts > 20


@pytest.mark.check
def test_a_killed_process_and_then_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first run moved, and did not sync, the second one syncs, though it moves nothing."""
    cuts = 0
    for steps in range(100):
        here, left = tmp_path / f"{steps}", tmp_path / f"{steps} left"
        here.mkdir()
        with monkeypatch.context() as patch:
            power = Power(here, patch)
            write(here / "out", 1)
            power.cut_after(steps)
            try:
                write(here / "out", 2)
            except CutError:
                cuts += 1
            power.last = None
            write(here / "out", 2)
        power.image(left, is_named=False)
        assert contents(left / "out") == expected(1, 2), steps
        if steps >= cuts:
            break
    assert cuts > 20


@pytest.mark.parametrize("text", ["", "x", "-1", "1\n", "9" * 40])
def test_a_damaged_record_of_batches_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path, 1)
    (tmp_path / STAGING / "writer").write_text(text)

    with pytest.raises(PipelineError, match=r"the record of batches is damaged: file=.*writer"):
        write(tmp_path, 1)
    assert contents(tmp_path) == expected(1)


SOURCES = (QueueSource(format="quire", path="/data/trades"),)
SOURCES[0].locate("trades", 1)


def run_to_checkpoint(folder: Path) -> str:
    state = State(folder)
    with state.opened():
        state.belongs_to(SOURCES)
        (folder / "checkpoint" / "offsets").mkdir(parents=True)
        (folder / "checkpoint" / "metadata").write_text("{}")
        (folder / "checkpoint" / "offsets" / "0").write_text("v1")
        state.sync_offsets()
    return state.identity


@pytest.mark.parametrize("is_named", IMAGES)
def test_a_checkpoint_is_never_there_without_the_name_of_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_named: bool
) -> None:
    cuts, ends = 0, 0
    for steps in range(100):
        here, left = tmp_path / f"{steps}", tmp_path / f"{steps} left"
        here.mkdir()
        identity = None
        with monkeypatch.context() as patch:
            power = Power(here, patch)
            power.cut_after(steps)
            try:
                identity = run_to_checkpoint(here / "state")
            except CutError:
                cuts += 1
        power.image(left, is_named=is_named)
        state = State(left / "state")
        with state.opened():
            state.belongs_to(SOURCES)
        if identity is not None:
            assert state.identity == identity
            assert (left / "state/checkpoint/offsets/0").read_text() == "v1"
            ends += 1
            break
    assert (cuts > 8, ends) == (True, 1)


@pytest.mark.parametrize("text", ["", "abc", "0123456789ab\n", "../../../../x", None])
def test_a_state_without_its_name_is_refused(tmp_path: Path, text: str | None) -> None:
    run_to_checkpoint(tmp_path / "state")
    place = tmp_path / "state" / "identity"
    place.unlink() if text is None else place.write_text(text)

    with pytest.raises(PipelineError, match=r"missing or damaged: file=.*identity \(remove"):
        State(tmp_path / "state").opened().__enter__()
    assert (tmp_path / "state" / "checkpoint" / "metadata").exists()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[["trades", 7]]', None])
def test_a_state_without_its_sources_is_refused(tmp_path: Path, text: str | None) -> None:
    run_to_checkpoint(tmp_path / "state")
    place = tmp_path / "state" / "sources.json"
    place.unlink() if text is None else place.write_text(text)
    state = State(tmp_path / "state")

    with (
        state.opened(),
        pytest.raises(PipelineError, match=r"missing or damaged: file=.*sources.json"),
    ):
        state.belongs_to(SOURCES)


@pytest.mark.parametrize("name", ["lock", "identity", "sources.json", "checkpoint", "kept"])
def test_links_in_a_state_are_not_followed(tmp_path: Path, name: str) -> None:
    home, state = tmp_path / "home", tmp_path / "state"
    home.mkdir()
    (home / "metadata").write_text("precious")
    run_to_checkpoint(state)
    place = state / name
    shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(missing_ok=True)
    place.symlink_to(home if name in {"checkpoint", "kept"} else home / "metadata")

    def use() -> None:
        it = State(state)
        with it.opened():
            it.belongs_to(SOURCES)
            it.prune(3)

    with pytest.raises((UnsafePathError, PipelineError), match=str(place)):
        use()
    assert [(it.name, it.read_text()) for it in home.iterdir()] == [("metadata", "precious")]


@pytest.mark.parametrize("name", [STAGING, f"{STAGING}/writer", "day=1"])
def test_links_in_an_output_are_not_followed(tmp_path: Path, name: str) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    (home / "writer").write_text("7")
    (out / name).parent.mkdir(parents=True)
    (out / name).symlink_to(home / "writer" if "/" in name else home)

    with pytest.raises(UnsafePathError, match=str(out / name)):
        write(out, 1)
    assert [(it.name, it.read_text()) for it in home.iterdir()] == [("writer", "7")]


def test_what_is_planted_in_a_staging_folder_is_neither_followed_nor_moved(tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    (home / "a.parquet").write_text("precious")
    ready = out / STAGING / "writer-000000000.ready"
    ready.mkdir(parents=True)
    (ready / "x.parquet").symlink_to(home / "a.parquet")
    (ready / "y").symlink_to(home)
    (out / STAGING / "writer-000000001.tmp").symlink_to(home)
    (out / STAGING / ".writer.tmp").symlink_to(home / "a.parquet")

    write(out, 1)

    assert contents(out) == expected(1)
    assert [(it.name, it.read_text()) for it in home.iterdir()] == [("a.parquet", "precious")]


def test_state_and_output_are_their_owners_alone(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        run_to_checkpoint(tmp_path / "state")
        write(tmp_path / "out", 1)
    finally:
        os.umask(mask)
    (tmp_path / "shared").mkdir(0o755)
    write(tmp_path / "shared", 1)

    modes = {it: f"{(tmp_path / it).stat().st_mode & 0o777:o}" for it in ("state", "out", "shared")}
    assert modes == {"state": "700", "out": "700", "shared": "755"}
    for place in ("state/lock", "state/identity", "state/sources.json", f"out/{STAGING}/writer"):
        assert (tmp_path / place).stat().st_mode & 0o077 == 0, place
    assert (tmp_path / "shared" / "day=1").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "shared" / STAGING).stat().st_mode & 0o777 == 0o700
    assert json.loads((tmp_path / "state" / "sources.json").read_text())[0][0] == "trades"
