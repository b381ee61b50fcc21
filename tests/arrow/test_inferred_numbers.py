"""The types of numbers that are inferred from what is stored of them."""

from __future__ import annotations

import quire


def test_integers_of_any_size_are_inferred_as_such(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    """Java stores those beyond 32 bits as a float32 where that holds them."""
    wide = [2**40, -(2**40), 2**63 - 1, -(2**63), 2**32]
    for number in wide:
        with appender.writing_document() as document:
            document.write("alone", number)
            document.write("mixed", 1)
            document.write("double", number)
    with appender.writing_document() as document:
        document.write("alone", wide[0])
        document.write("mixed", wide[0])
        document.write("double", 0.25)
    schema = quire.Schema.infer(queue)
    assert schema == quire.Schema({"alone": "int64", "mixed": "int64", "double": "float64"})
    found = queue.tailer().read_batch(schema=schema)
    assert found["alone"].to_pylist() == [*wide, wide[0]]
    assert found["mixed"].to_pylist() == [1] * len(wide) + [wide[0]]
