"""Functions that show a message show raw bytes, too, as the repr does."""

from __future__ import annotations

import pytest

import quire

SHOWN = [
    (b"raw text", "raw text", "raw text\n", '"raw text"'),
    ("Grüße\n".encode(), "Grüße\n", '"Gr\\xFC\\xDFe\\n"\n', '"Grüße\\n"'),
    (b"\xff\xfe\x00", "ff fe 00", "!!binary //4A\n", '{"@!binary":"//4A"}'),
    # A block of five bytes, without them.
    (b"\x82\x05\x00\x00\x00", "82 05 00 00 00", "!!binary ggUAAAA=\n", '{"@!binary":"ggUAAAA="}'),
]


@pytest.mark.parametrize("shown", SHOWN)
def test_raw_bytes_are_shown(
    shown: tuple[bytes, str, str, str], queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    payload, text, yaml, json = shown
    appender.write_bytes(payload)
    excerpt = queue.tailer().read()
    assert excerpt is not None
    assert (excerpt.to_text(), excerpt.to_yaml(), excerpt.to_json()) == (text, yaml, json)
    with pytest.raises(quire.errors.WireError):
        queue.tailer().read_text()
    with queue.tailer().reading_document() as document:
        assert (document.to_yaml(), document.to_json()) == (yaml, json)
    with queue.group("billing").consumer() as consumer:
        message = consumer.read()
        assert message is not None
        assert message.to_text() == text


def test_a_message_that_is_no_text_is_still_refused_as_text(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_map({"symbol": "EURUSD"})
    excerpt = queue.tailer().read()
    assert excerpt is not None
    with pytest.raises(quire.errors.WireError, match="expected=a text value"):
        excerpt.to_text()
