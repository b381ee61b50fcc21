"""Handles refuse attributes that they do not have: what is misspelt does not pass unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

import quire
from quire.metrics import DiskMonitor


class Talk(Protocol):
    def say(self, text: str) -> None: ...


class Talker:
    def say(self, text: str) -> None: ...


HANDLES: dict[str, Callable[[quire.JournalQueue], Any]] = {
    "queue": lambda queue: queue,
    "appender": lambda queue: queue.appender(),
    "tailer": lambda queue: queue.tailer(),
    "group": lambda queue: queue.group("billing"),
    "consumer": lambda queue: queue.group("billing").consumer(),
    "topic": lambda queue: queue.appender().topic("LDN"),
    "method writer": lambda queue: queue.appender().method_writer(Talk),
    "disk monitor": DiskMonitor,
    "method reader": lambda queue: queue.tailer().method_reader(Talker()),
}


@pytest.mark.parametrize("handle", HANDLES)
def test_an_unknown_attribute_is_refused(handle: str, queue: quire.JournalQueue) -> None:
    found = HANDLES[handle](queue)
    with pytest.raises(AttributeError, match=rf"'{type(found).__name__}' .* 'colour'$"):
        found.colour = "red"
    with pytest.raises(AttributeError, match="'clsoed': did you mean 'closed'"):
        HANDLES["consumer"](queue).clsoed = True
    found._mine = 1  # private names are whose they are
    assert found._mine == 1


@pytest.mark.parametrize("make", [quire.pausers.balanced, quire.pausers.busy, quire.pausers.Pauser])
def test_a_pauser_refuses_unknown_attributes(make: Callable[[], Any]) -> None:
    pauser = make()
    with pytest.raises(AttributeError, match="'Pauser' object has no attribute 'timeout_s'"):
        pauser.timeout_s = 5

    class Own(quire.pausers.Pauser):
        pass

    own = Own()
    own.colour = "red"  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]


def test_the_error_names_what_was_meant(queue: quire.JournalQueue) -> None:
    tailer = queue.tailer()
    with pytest.raises(AttributeError, match="did you mean 'direction'") as raised:
        tailer.dirction = "backward"  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
    assert raised.value.name == "dirction"
    assert raised.value.obj is tailer
    tailer.direction = "backward"
    assert tailer.direction == "backward"


@pytest.mark.parametrize("format_name", ["vanilla", "quick-queue"])
def test_what_a_format_lacks_cannot_be_set(format_name: Any, path: Path) -> None:  # noqa: ANN401
    with cast("quire.Queue", quire.open(path, format=format_name)) as queue:
        handles: list[tuple[Any, str]] = [
            (queue.tailer(), "state"),
            (queue, "wire_type"),
            (queue, "lastt_index"),
        ]
        if format_name == "quick-queue":
            handles.append((queue.tailer(), "direction"))
        for handle, name in handles:
            with pytest.raises(AttributeError, match=name):
                setattr(handle, name, "backward")


def test_a_service_refuses_unknown_attributes(tmp_path: Path) -> None:
    class Handler:
        def __init__(self, out: Talk) -> None:
            self.out = out

        def say(self, text: str) -> None:
            self.out.say(text)

    with (
        quire.open(tmp_path / "in", source_id=1) as source,
        quire.open(tmp_path / "out", source_id=2) as output,
        quire.service(inputs=[source], output=output, handler=Handler) as service,
        pytest.raises(AttributeError, match="did you mean 'handler'"),
    ):
        service.handlr = None  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]


def test_classes_of_users_have_attributes_of_their_own(path: Path) -> None:
    class Counting(quire.JournalTailer):
        def __init__(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - __new__ took them
            self.count = 0

        def read_bytes(self) -> bytes | None:
            self.count += 1
            return super().read_bytes()

    class More(Counting):
        pass

    with quire.open(path) as queue:
        for cls in (Counting, More):
            tailer = cls(queue)
            assert tailer.read_bytes() is None
            assert tailer.count == 1
        with pytest.raises(AttributeError, match="'cuont'"):
            queue.tailer().cuont = 1  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]


def test_a_method_may_be_replaced(
    queue: quire.JournalQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    tailer = queue.tailer()
    monkeypatch.setattr(tailer, "read_bytes", lambda: b"replaced")
    assert tailer.read_bytes() == b"replaced"
