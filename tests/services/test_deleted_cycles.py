"""Services beside `archive --delete`: what they need is kept, nothing is written twice."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

import quire
from cli_runs import Cli
from parameters import some
from queues import DAY_MS, START_MS
from quire.archive import archive
from service_cases import FIRST, SECOND, Place, drain, opened

Read = dict[int, str]


class Lines(Protocol):
    def line(self, text: str) -> None: ...


class Copying:
    """Writes a line for each number, as many as it says, and one for each word; without state."""

    between: Callable[[], object] = staticmethod(lambda: None)

    def __init__(self, out: Lines) -> None:
        self.out = out

    def number(self, value: int) -> None:
        for part in range(value % 5):
            self.out.line(f"{value}.{part}")
            self.between()

    def word(self, value: str) -> None:
        if value:
            self.out.line(value)


class KilledError(Exception):
    """The process is gone here."""


class Days:
    """A place whose queues roll each day."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = quire.ManualClock(START_MS)
        self.read: Read = {}
        self.opened = opened(path, roll_cycle="TEST4_DAILY", clock=self.clock)
        self.place: Place = self.opened.__enter__()

    def both(self) -> list[quire.JournalQueue]:
        return [self.place.first, self.place.second]

    def service(self, *, several: bool = False, **options: Any) -> quire.Service:  # noqa: ANN401
        inputs = self.both() if several else [self.place.first]
        return self.place.service(Copying, inputs=inputs, **options)

    def run(self, **options: Any) -> None:  # noqa: ANN401
        with self.service(**options) as service:
            drain(service)

    def next_day(self) -> None:
        self.clock.advance(DAY_MS)

    def stranger(self) -> None:
        with self.place.output.appender() as appender:
            appender.write_text("a stranger")

    def delete(self, queue: quire.JournalQueue) -> int:
        """Delete as an operator does, after noting what the output holds."""
        self.lines()
        with queue.appender() as appender:
            appender.normalise_eofs()
        dest = self.path / "archived" / Path(queue.path).name
        return archive(queue.path, dest, delete=True, grace_s=0).deleted

    def unlink(self, queue: quire.JournalQueue, *cycles: int) -> None:
        """Delete as nobody should."""
        self.lines()
        for cycle in cycles:
            Path(queue.file_for_cycle(cycle)).unlink()
        queue.refresh()

    def lines(self) -> list[str]:
        """All that the output ever held."""

        class Into:
            def line(self, text: str) -> None:
                found.append(text)

        tailer = self.place.output.tailer()
        reader = tailer.method_reader(Into())
        while True:
            found: list[str] = []
            if not reader.read_one():
                return [text for _, text in sorted(self.read.items())]
            if found:
                index = tailer.last_read_index
                assert index is not None
                self.read[index] = found[0]


@pytest.fixture
def days(tmp_path: Path) -> Iterator[Days]:
    found = Days(tmp_path)
    with found.opened:
        yield found


def lines_of(*numbers: int) -> list[str]:
    return [f"{number}.{part}" for number in numbers for part in range(number % 5)]


REPLAYS = pytest.mark.parametrize("replay", ["all", "missed"])
SEVERAL = pytest.mark.parametrize("several", [False, True], ids=["one input", "two inputs"])


@SEVERAL
@REPLAYS
def test_what_was_not_handled_is_kept(days: Days, replay: str, *, several: bool) -> None:
    for number in (1, 2):
        days.place.numbers(number)
        days.next_day()
    days.run(replay=replay, several=several)
    for number in (3, 4, 6):
        days.place.numbers(number)
        days.next_day()

    assert days.delete(days.place.first) == 1, "that of the first day alone"
    days.run(replay=replay, several=several)

    assert days.lines() == lines_of(1, 2, 3, 4, 6)
    assert days.delete(days.place.first) == 3
    days.run(replay=replay, several=several)
    assert days.lines() == lines_of(1, 2, 3, 4, 6)


@SEVERAL
@REPLAYS
def test_nothing_is_written_again_when_the_newest_cycle_of_the_output_is_anothers(
    days: Days, replay: str, *, several: bool
) -> None:
    for number in (1, 2, 3):
        days.place.numbers(number)
        days.place.words(f"word {number}")
        days.run(replay=replay, several=several)
        days.next_day()
    wanted = days.lines()
    days.stranger()

    assert days.delete(days.place.output) == 2, "the newest of the service's stays"
    days.run(replay=replay, several=several)
    assert days.lines() == wanted

    assert days.delete(days.place.output) == 1, "the new life noted where it is"
    assert len(days.place.output.cycles) == 1
    for _ in range(2):
        days.run(replay=replay, several=several)
        assert days.lines() == wanted
    days.place.numbers(4)
    days.run(replay=replay, several=several)
    assert days.lines() == [*wanted, *lines_of(4)]


@SEVERAL
def test_messages_that_lead_to_nothing_are_passed_for_good(days: Days, *, several: bool) -> None:
    """Whole cycles without an output: the goal moves on all the same."""
    days.place.numbers(1)
    with days.service(replay="missed", several=several) as service:
        drain(service)
        for _ in range(4):
            days.next_day()
            days.place.numbers(5)
            days.place.words("")
            drain(service)
    assert days.delete(days.place.first) == 4
    days.place.numbers(2)
    days.run(replay="missed", several=several)
    assert days.lines() == lines_of(1, 2)


def something_happens(days: Days, chance: random.Random) -> None:
    """Others write, files are deleted, days go by."""
    if chance.random() < 0.3:
        days.stranger()
    if chance.random() < 0.6:
        days.delete(chance.choice([*days.both(), days.place.output]))
    if chance.random() < 0.5:
        days.next_day()


@pytest.mark.parametrize("seed", some(range(8), keep=[0]))
@pytest.mark.parametrize("several", some([False, True], keep=[1]), ids=["one input", "two inputs"])
@pytest.mark.parametrize("replay", some(["all", "missed"], keep=[1]))
def test_kills_rolls_and_deletions_in_any_order(
    days: Days, seed: int, replay: str, monkeypatch: pytest.MonkeyPatch, *, several: bool
) -> None:
    """The output rolls between the outputs of a message, lives end there, and files go."""
    chance = random.Random(seed)  # noqa: S311 - repeatable
    place, number, wanted, words = days.place, 0, list[int](), list[str]()

    def between() -> None:
        if chance.random() < 0.15:
            days.next_day()
        if chance.random() < 0.1:
            raise KilledError

    monkeypatch.setattr(Copying, "between", staticmethod(between))
    for _ in range(12):
        for _ in range(chance.randrange(4)):
            number += 1
            wanted.append(number)
            place.numbers(number)
            if several:
                words.append(f"word {number}")
                place.words(chance.choice(["", words[-1]]))
        with contextlib.suppress(KilledError):
            days.run(replay=replay, several=several)
        something_happens(days, chance)
    monkeypatch.setattr(Copying, "between", staticmethod(lambda: None))
    days.run(replay=replay, several=several)

    found = days.lines()
    assert [line for line in found if not line.startswith("word")] == lines_of(*wanted)
    of_words = [line for line in found if line.startswith("word")]
    assert of_words == sorted(set(of_words), key=words.index), "each once, in their order"


@SEVERAL
@REPLAYS
def test_a_goal_whose_cycle_is_gone_is_an_error_that_says_so(
    days: Days, replay: str, caplog: pytest.LogCaptureFixture, *, several: bool
) -> None:
    days.place.numbers(1)
    days.run(replay=replay, several=several)
    for number in (2, 3):
        days.next_day()
        days.place.numbers(number)
    days.unlink(days.place.first, *days.place.first.cycles[:2])

    for _ in range(2):
        with pytest.raises(quire.errors.DataLossError, match=r"first=0x\w+"):
            days.service(replay=replay, several=several)
    assert days.lines() == lines_of(1)

    days.run(replay=replay, several=several, on_missing="warn")
    assert days.lines() == lines_of(1, 3)
    assert any("on_missing" in record.message for record in caplog.records)
    days.run(replay=replay, several=several)
    assert days.lines() == lines_of(1, 3)


@REPLAYS
def test_an_output_that_lost_its_notes_is_an_error(days: Days, replay: str) -> None:
    days.place.numbers(1, 2)
    days.run(replay=replay)
    days.next_day()
    days.stranger()
    days.unlink(days.place.output, days.place.output.cycles[0])

    with pytest.raises(quire.errors.DataLossError, match="tailer=service-output"):
        days.service(replay=replay)
    assert days.lines() == lines_of(1, 2)


def test_cycles_that_were_handled_and_are_gone_are_not_waited_for(days: Days) -> None:
    """Of two inputs in turn: what an older note names need not be there."""
    for number in (1, 2, 3):
        days.place.numbers(number)
        days.place.words(f"word {number}")
        days.run(several=True)
        days.next_day()
    wanted = days.lines()
    assert days.delete(days.place.first) == 2
    days.run(several=True)
    assert days.lines() == wanted


def test_every_input_is_noted_at_the_start_of_each_cycle_of_the_output(days: Days) -> None:
    for number in (1, 2, 3):
        days.place.numbers(number)
        days.place.words(f"word {number}")
        days.run(several=True)
        days.next_day()
    output, noted = days.place.output, dict[int, set[int]]()
    with output.tailer() as tailer:
        while True:
            with tailer.reading_document(include_metadata=True) as document:
                if not document.is_present:
                    break
                if document.is_metadata and b"consumed" in bytes(document.bytes):
                    sources = document.map()["consumed"][::2]
                    noted.setdefault(output.roll_cycle.to_cycle(document.index), set()).update(
                        sources
                    )
    assert list(noted) == output.cycles
    assert [noted[cycle] for cycle in output.cycles[1:]] == [{FIRST, SECOND}] * 2


def test_the_shell_shows_how_far_a_service_is(days: Days, cli: Cli) -> None:
    days.place.numbers(1, 2, 3)
    days.run()
    days.place.numbers(4, 6)

    (tailer,) = json.loads(cli.ok("stat", days.place.first.path, "--json").out)["tailers"]
    assert tailer["name"].startswith("service:/")
    assert tailer["lag"] == 2
    assert json.loads(cli.ok("stat", days.place.output.path, "--json").out)["tailers"] == []


def test_outputs_whose_paths_differ_in_case_alone_are_two_services(days: Days) -> None:
    days.place.numbers(1)
    for name in ("Out", "out"):
        with quire.open(days.path / name, source_id=7) as output:
            service = quire.service(inputs=[days.place.first], output=output, handler=Copying)
            drain(service).close()
    names = [name.rsplit("/", 1)[1] for name, _ in days.place.first.named_tailers()]
    assert len({name.lower() for name in names}) == 2


def test_an_input_that_is_open_for_reading_alone_is_read(days: Days) -> None:
    days.place.numbers(1, 2)
    before = days.place.first.table_entries()
    with quire.open(days.place.first.path, read_only=True) as first:
        drain(days.place.service(Copying, inputs=[first])).close()
    assert days.lines() == lines_of(1, 2)
    assert days.place.first.table_entries() == before
