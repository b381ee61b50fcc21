"""Options are declared once: signatures, the native classes and settings agree with that."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import figures
import quire
from quire import _native
from quire.opening.options import (
    OF_CLASS,
    OPTIONS,
    PARTS,
    VANILLA_PARTS,
    OpenOptions,
    QuickQueueOptions,
    VanillaOptions,
)
from quire.opening.resolving import keywords

CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "quire.open": (quire.open, {**OF_CLASS[OpenOptions]}),
    "quire.vanilla.open": (quire.vanilla.open, keywords("vanilla", VanillaOptions)),
    "quire.quick_queue.open": (quire.quick_queue.open, keywords("quick-queue", QuickQueueOptions)),
}
WHOLE: dict[str, tuple[str, ...]] = {
    "quire.open": ("format", "token", "tls", *PARTS),
    "quire.vanilla.open": (*VANILLA_PARTS,),
    "quire.quick_queue.open": (),
}
NATIVE = {
    "chronicle": _native.Queue,
    "vanilla": _native.VanillaQueue,
    "quick-queue": _native.QuickQueue,
}


@pytest.mark.parametrize("call", CALLS)
def test_a_signature_has_the_declared_keywords_and_defaults(call: str) -> None:
    opening, declared = CALLS[call]
    parameters = {**inspect.signature(opening).parameters}
    del parameters["path"]
    assert all(parameters.pop(it).default is None for it in WHOLE[call])
    assert {it.name: it.default for it in parameters.values()} == {
        name: it.default for name, it in declared.items()
    }
    assert {it.kind for it in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}


def test_the_signature_of_open_has_the_declared_types() -> None:
    parameters = inspect.signature(quire.open).parameters
    for it in dataclasses.fields(OpenOptions):
        assert parameters[it.name].annotation == it.type, it.name


def test_calls_are_learnt_in_a_day() -> None:
    widths = dict(figures.calls())
    assert widths.pop("quire.open") <= 31
    assert {name: it for name, it in widths.items() if it > 12} == {}


@pytest.mark.parametrize("kind", NATIVE)
def test_the_native_class_has_the_declared_defaults(kind: str) -> None:
    signature = str(NATIVE[kind].__text_signature__).replace("$self, ", "")
    found = ast.parse(f"def it{signature}: ...").body[0]
    assert isinstance(found, ast.FunctionDef)
    defaults = {
        name.arg: None if default is None else ast.literal_eval(default)
        for name, default in zip(found.args.kwonlyargs, found.args.kw_defaults, strict=True)
    }
    declared = {
        it.native: it.converted(it.default) if it.converted else it.default
        for it in OPTIONS.values()
        if kind in it.formats
    }
    of_native = {"file_events", "append_checksums", "cipher", "without_key"}
    started_here = {
        *("retention", "on_file_acquired", "on_file_released", "buffer_mode"),
        *("key", "allow_plain", "integrity"),  # handed on as the cipher, or as a thread that seals
        *("early_acquire_next_cycle", "preroll_time_s", "dont_write"),  # of its pretoucher
    }
    assert declared.keys() - started_here == defaults.keys() - of_native
    shown = {name: it for name, it in defaults.items() if it is not ...}  # not Some(1_000)
    assert {name: declared[name] for name in shown if name in declared} == {
        name: it for name, it in shown.items() if name not in of_native
    }


def test_settings_have_names_of_their_own() -> None:
    assert len(OPTIONS) == sum(map(len, OF_CLASS.values()))


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("roll_time", r"quire.open\(roll=quire.RollOptions\(roll_time=...\)\)"),
        ("index_count", r"quire.open\(layout=quire.LayoutOptions\(index_count=...\)\)"),
        ("eof_grace_s", r"quire.open\(wait=quire.WaitOptions\(eof_grace_s=...\)\)"),
        ("buffer_capacity_bytes", r"quire.open\(ring=quire.RingOptions\(capacity_bytes=...\)\)"),
        ("tid_bits", r"quire.vanilla.open\(files=quire.vanilla.FileOptions\(tid_bits=...\)\)"),
        ("linger_s", r"quire.vanilla.open\(linger_s=...\)"),
        ("page_bytes", r"quire.quick_queue.open\(page_bytes=...\)"),
        ("roll_time_zone", r"quire.open\(time_zone=...\)"),
    ],
)
def test_an_option_in_the_wrong_place_is_reported_where_it_belongs(
    tmp_path: Path, name: str, place: str
) -> None:
    wrong: Any = {name: 4}
    with pytest.raises(TypeError, match=rf"'{name}': it belongs to {place}"):
        quire.open(tmp_path / "queue", **wrong)
    assert not [*tmp_path.iterdir()]


def test_options_that_are_nowhere_are_refused(tmp_path: Path) -> None:
    wrong: Any = {"timeout": 4}
    for call in (quire.open, quire.vanilla.open, quire.quick_queue.open):
        with pytest.raises(TypeError, match=r"open\(\) got an unexpected keyword .* 'timeout'$"):
            call(tmp_path / "queue", **wrong)
    with pytest.raises(TypeError, match=r"'timeout_s': it belongs to quire.open\(timeout_s=...\)"):
        quire.WaitOptions(timeout_s=4)  # type: ignore[call-arg]
    wrong = {"wait": {"eof_grace_s": 4}}
    with pytest.raises(TypeError, match=r"invalid wait: expected a quire.WaitOptions or None"):
        quire.open(tmp_path / "queue", **wrong)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'path'"):
        quire.open()  # type: ignore[call-overload]


def test_another_format_refuses_options_given_as_objects(tmp_path: Path) -> None:
    with pytest.raises(quire.errors.UnsupportedError, match="a Quick-Queue: eof_grace_s=2"):
        quire.open(tmp_path, format="quick-queue", wait=quire.WaitOptions(eof_grace_s=2))  # type: ignore[call-overload]
    whole = quire.LayoutOptions(allow_network=True)
    with quire.open(tmp_path / "book", format="vanilla", layout=whole) as queue:
        assert queue.entry_count == 0


def pickled(options: object) -> Any:  # noqa: ANN401
    return pickle.loads(pickle.dumps(options))


@pytest.mark.parametrize("again", [copy.copy, pickled])
def test_options_are_values(again: Callable[[object], Any], path: Path) -> None:
    options = quire.WaitOptions(eof_grace_s=1)
    found = again(options)
    assert (found, hash(found)) == (options, hash(options))
    assert str(found).startswith("WaitOptions(eof_grace_s=1.0, group_commit_s=None")
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.eof_grace_s = 2  # pyright: ignore[reportAttributeAccessIssue]
    with quire.open(path, wait=found) as queue, pickle.loads(pickle.dumps(queue)) as opened:
        assert opened.path == queue.path


@pytest.mark.parametrize("retention", [None, [], ()])
def test_an_option_that_is_given_as_none_is_as_if_it_were_not_given(
    tmp_path: Path, retention: list[quire.Retention] | None
) -> None:
    roll = dataclasses.replace(quire.RollOptions(roll_time="09:00"), roll_time="17:00")
    with quire.open(tmp_path / "queue", retention=retention, roll=roll) as queue:
        again = pickle.loads(pickle.dumps(queue))
        with again:
            assert again.roll_cycle == queue.roll_cycle


def test_a_listener_that_is_false_is_a_listener(tmp_path: Path) -> None:
    class Files(list[str]):
        def __call__(self, _cycle: int, path: str) -> None:
            self.append(path)

    opened, released = Files(), Files()
    roll = quire.RollOptions(on_file_acquired=opened, on_file_released=released)
    with quire.open(tmp_path / "queue", roll=roll) as queue, queue.appender() as appender:
        appender.write_text("hello")
    assert opened == released != []
