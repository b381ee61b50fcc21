"""Which messages a method reader begins with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quire


class Numbers:
    def __init__(self) -> None:
        self.found: list[int] = []

    def add(self, number: int) -> None:
        self.found.append(number)


def test_a_reader_begins_where_it_is_asked_to(tmp_path: Path) -> None:
    with (
        quire.open(tmp_path / "source", source_id=1) as source,
        quire.open(tmp_path / "output", source_id=2) as output,
        source.appender() as appender,
        source.tailer() as tailer,
    ):
        writer = appender.method_writer(Numbers)
        for number in range(5):
            writer.add(number)
        first = source.first_index
        assert first is not None

        class Half:
            """Writes something for the first three messages."""

            written = output.appender().method_writer(Numbers)

            def add(self, number: int) -> None:
                self.written.add(number)

        half = tailer.method_reader(Half(), replay="all")
        for _ in range(3):
            assert half.read_one()

        def handled(**asked: Any) -> list[int]:  # noqa: ANN401 - any option
            numbers = Numbers()
            tailer.method_reader(numbers, **asked).run(until=lambda: True)
            return numbers.found

        assert handled(replay="all") == [0, 1, 2, 3, 4]
        assert handled() == []
        assert handled(replay="missed", output=output) == [3, 4]
        assert handled(replay="missed", output=tmp_path / "output") == [3, 4]
        assert handled(replay=first + 2) == [2, 3, 4]
        assert handled(replay="new") == []
        writer.add(5)
        assert handled() == [5]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"replay": "missed"}, "replay='missed' and output go together"),
        ({"output": "somewhere"}, "replay='missed' and output go together"),
        ({"replay": "some"}, "invalid replay: expected one of all, new, missed"),
        ({"replay": -1}, "invalid replay: expected an integer from 0"),
    ],
)
def test_a_wrong_beginning_moves_nothing(path: Path, asked: dict[str, Any], error: str) -> None:
    with quire.open(path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_text("a message")
        with pytest.raises(ValueError, match=error):
            tailer.method_reader(Numbers(), **asked)
        assert tailer.read_text() == "a message"
