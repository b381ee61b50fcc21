"""Calls between a method writer and a method reader, in the bytes of Java's generated writers."""

from __future__ import annotations

from typing import Any

import pytest

import quire
from probe_calls import CALLS, NOT_MADE, Market, make, recorder
from probes import ROWS


def made(name: str) -> list[tuple[str, tuple[Any, ...]]]:
    call = CALLS[name]
    return [(each.method, each.arguments) for each in (call, *call.then)]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_written_as_java_writes_it_and_read_back(
    queue: quire.JournalQueue, appender: quire.JournalAppender, name: str
) -> None:
    make(appender.method_writer(Market), name)
    with queue.tailer() as tailer:
        payload = tailer.read_bytes()
    assert payload is not None
    assert payload.hex() == ROWS[f"call {name}"]["bytes"]

    calls: list[tuple[str, tuple[Any, ...]]] = []
    with queue.tailer() as tailer:
        reader = tailer.method_reader(recorder(calls), interface=Market)
        assert reader.read_one()
        assert not reader.read_one()
    assert calls == made(name)


def test_every_call_of_the_market_is_made_or_named() -> None:
    probes = {name[5:] for name in ROWS if name.startswith("call ") and "generic" not in name}
    assert probes == CALLS.keys() | NOT_MADE
