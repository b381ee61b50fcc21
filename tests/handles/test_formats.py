"""Every public name of the journal's handles works in other formats, or says why it does not."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from indexed_reference import written

NATIVE_WRITES = {"write_bytes", "write_text", "write_many"}
FORMATS = ["vanilla", "quick-queue", "indexed"]


def public(cls: type) -> list[str]:
    return [name for name in dir(cls) if not name.startswith("_")]


@pytest.fixture(params=FORMATS)
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[quire.Queue]:
    if request.param == "indexed":
        written(tmp_path / "queue", [b"one", b"two"])
    with quire.open(tmp_path / "queue", format=request.param) as queue:
        yield queue


def reason(handle: object, name: str) -> str | None:
    """Why a handle lacks a name; None if it has it."""
    try:
        getattr(handle, name)
    except quire.errors.UnsupportedError as error:
        return str(error)
    return None


def check(handle: object, journal: type) -> None:
    reasons = {name: reason(handle, name) for name in public(journal)}
    assert not [name for name, why in reasons.items() if why and f": {name} (" not in why]

    for name, why in reasons.items():
        if why is None and callable(getattr(journal, name)):
            check_options(handle, journal, name)


def check_options(handle: object, journal: type, name: str) -> None:
    """Each option of a call of the journal's is one here, or says why it is not."""
    call = getattr(handle, name)
    own = inspect.signature(call).parameters
    is_open = any(it.kind is it.VAR_KEYWORD for it in own.values())
    needed = [
        None
        for it in own.values()
        if it.default is it.empty and it.kind is it.POSITIONAL_OR_KEYWORD
    ]
    for option in inspect.signature(getattr(journal, name)).parameters.values():
        if (name, option.name) == ("write_batch", "wait") or name in NATIVE_WRITES:
            continue  # TypeError: a dictionary of options costs each append more than it says
        if option.kind is option.KEYWORD_ONLY and option.name not in own:
            assert is_open, (name, option)
            with pytest.raises(quire.errors.UnsupportedError, match=rf"{name}\({option.name}="):
                call(*needed, **{option.name: option.default})
    if is_open:
        with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
            call(*needed, nothing=1)


def test_names_of_queues(queue: quire.Queue) -> None:
    check(queue, quire.JournalQueue)


def test_names_of_tailers(queue: quire.Queue) -> None:
    with queue.tailer() as tailer:
        check(tailer, quire.JournalTailer)


def test_names_of_appenders(queue: quire.Queue) -> None:
    if isinstance(queue, quire.indexed.IndexedQueue):
        with pytest.raises(quire.errors.UnsupportedError, match="appender"):
            queue.appender()
        return
    with queue.appender() as appender:
        check(appender, quire.JournalAppender)
