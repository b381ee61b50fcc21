"""What notebooks show: nothing of a message or a path becomes markup."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import pyarrow as pa
import pytest

import quire
import quire.dataframes

EVIL = "<script>alert('&')</script>\u202e"


def shown(value: object) -> str:
    text: str = cast("Any", value)._repr_html_()
    assert "<script" not in text
    assert "\u202e" not in text
    return text


@pytest.mark.parametrize("kind", ["chronicle", "vanilla", "quick-queue"])
def test_handles_and_messages_are_escaped(tmp_path: Path, kind: Literal["vanilla"]) -> None:
    with quire.open(tmp_path / "<script>", format=kind) as opened:
        queue: Any = opened
        assert "None" in shown(queue)
        queue.appender().write_text(EVIL)
        tailer = queue.tailer()
        excerpt = tailer.read()

        assert "&lt;script&gt;" in shown(queue)
        assert f"{queue.last_index:#x}" in shown(queue)
        assert "Tailer(" in shown(tailer)
        assert "alert(&#x27;&amp;&#x27;)" in shown(excerpt)
    assert "closed" in shown(queue)


def test_fields_of_a_message_are_shown_and_long_ones_are_cut(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q") as queue, queue.appender() as appender:
        appender.write_map({"symbol": EVIL})
        appender.write_map({"text": "x" * 10_000})
        appender.write_map({"text": "x" * 100_000})
        first, second, third = queue.tailer()

    assert "symbol:" in shown(first)
    assert 4_000 < len(shown(second)) < 5_000
    assert len(shown(third)) < 1_000


def test_bytes_without_a_meaning_are_hexadecimal(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q", format="vanilla") as queue:
        queue.appender().write_bytes(b"\xff\xfe")
        excerpt = queue.tailer().read()
        assert "<pre>fffe</pre>" in shown(excerpt)


def test_batches_are_shown_once_the_extension_is_loaded() -> None:
    formatters: dict[type, Any] = {}
    formatter = SimpleNamespace(for_type=formatters.__setitem__)
    display = SimpleNamespace(formatters={"text/html": formatter})
    quire.dataframes.load_ipython_extension(SimpleNamespace(display_formatter=display))
    batch = pa.record_batch({"<b>": [EVIL] * 50})

    text = formatters[type(batch)](batch)
    assert "<script" not in text
    assert "<b>" not in text
    assert "50 rows, 1 columns" in text
    assert text.count("<tr>") == 21


def test_a_dataset_shows_its_first_rows(queue: quire.JournalQueue) -> None:
    queue.appender().write_map({"symbol": EVIL})

    assert "&lt;script&gt;" in shown(queue.scan({"symbol": "utf8"}))


def test_a_dataset_that_cannot_be_read_shows_the_error(tmp_path: Path) -> None:
    with quire.open(tmp_path / "queue") as queue:
        queue.appender().write_map({"symbol": EVIL})
        misfit = shown(queue.scan({"symbol": "int64"}))
        assert "the value does not fit: field=symbol" in misfit
        assert "<script" not in misfit
        dataset = queue.scan()
    assert "the queue is closed" in shown(dataset)
