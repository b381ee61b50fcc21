"""Names beyond Latin-1, which Java cannot write: refused wherever a name is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import make_dataclass
from typing import Any, Protocol, TypedDict

import pyarrow as pa
import pytest

import quire
from quire.errors import WireError

NAME = "\N{CYRILLIC SMALL LETTER I}\N{CYRILLIC SMALL LETTER EM}"
Named = TypedDict("Named", {NAME: int})  # type: ignore[misc]


class Calls(Protocol):
    def call(self) -> None: ...


def data_class(_: quire.JournalAppender) -> object:
    cls: type[Any] = make_dataclass("D", [(NAME, int)])
    return quire.message(alias="BeyondData")(cls)


def document(write: Callable[[quire.WriteDocument], object]) -> Callable[[Any], object]:
    def written(appender: quire.JournalAppender) -> None:
        with appender.writing_document() as document:
            document.wire.write("before", 1)
            write(document)

    return written


WAYS: dict[str, Callable[[quire.JournalAppender], object]] = {
    "map": lambda it: it.write_map({"ok": 1, NAME: 2}),
    "nested map": lambda it: it.write_map({"ok": {NAME: 2}}),
    "in a list": lambda it: it.write_map({"ok": [{NAME: 2}]}),
    "yaml": lambda it: it.write_yaml(f"ok: 1\n{NAME}: 2"),
    "nested yaml": lambda it: it.write_yaml(f"ok: {{ {NAME}: 2 }}"),
    "typed yaml": lambda it: it.write_yaml(f"ok: !Trade {{ {NAME}: 2 }}"),
    "json": lambda it: it.write_json(f'{{"ok": 1, "{NAME}": 2}}'),
    "nested json": lambda it: it.write_json(f'{{"ok": [{{"{NAME}": 2}}]}}'),
    "value": document(lambda it: it.wire.write(NAME, 1)),
    "event": document(lambda it: it.wire.write_event(NAME)),
    "document": document(lambda it: it.write(NAME, 1)),
    "dataclass": data_class,
    "TypedDict": lambda _: quire.message(alias="BeyondDict")(Named),
    "columns": lambda it: it.write_batch(pa.record_batch({"ok": [1], NAME: [2]}), form="map"),
    "method": lambda it: it.method_writer(type("M", (Calls,), {NAME: Calls.call})),
    "schema": lambda _: quire.Schema({NAME: "int64"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_name_beyond_latin_1_is_refused_and_nothing_is_written(
    way: str, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with pytest.raises((WireError, ValueError), match="a name must consist of Latin-1") as raised:
        WAYS[way](appender)
    assert NAME in str(raised.value)
    assert queue.entry_count == 0


def test_names_of_latin_1_are_written_and_read(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_map({"caf\N{LATIN SMALL LETTER E WITH ACUTE}": 1})
    appender.write_json('{"caf\N{LATIN SMALL LETTER E WITH ACUTE}": 1}')
    tailer = queue.tailer()
    assert tailer.read_map() == tailer.read_map()


def test_yaml_has_keys_beyond_latin_1_where_it_says_that_they_are(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_yaml(f'? "{NAME}": 2\nok: 1\n')
    assert queue.tailer().read_map() == {NAME: 2, "ok": 1}
