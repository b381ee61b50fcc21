"""Services: which outputs are refused, as nothing would count them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import quire
from journal_damages import zero_end
from quire.errors import WriterInUseError
from service_cases import Named, Place, Results, drain, opened


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with opened(tmp_path) as found:
        yield found


class Calling:
    """Hands each number, and what to write with, to a function."""

    def __init__(self, out: Results) -> None:
        self.out = out
        self.call: Callable[[Results, int], object] = lambda out, value: out.total(value)

    def number(self, value: int) -> None:
        self.call(self.out, value)


def test_once_it_runs_an_output_outside_of_a_message_is_refused_too(place: Place) -> None:
    place.numbers(1, 2)
    with place.service(Calling) as service:
        service.run_once()
        with pytest.raises(quire.QuireError, match="no message is being handled"):
            service.handler.out.total(99)
        drain(service)
    assert place.results() == ["total 1", "total 2"]


@pytest.mark.parametrize("inputs", [1, 2])
def test_an_output_of_another_thread_is_refused(place: Place, inputs: int) -> None:
    def elsewhere(out: Results, value: int) -> None:
        pool.submit(out.total, value).result()

    place.numbers(1, 2)
    with ThreadPoolExecutor(1) as pool:
        service = place.service(Calling, inputs=[place.first, place.second][:inputs])
        service.run_once()
        service.handler.call = elsewhere
        with pytest.raises(quire.QuireError, match="in the handler itself"):
            service.run_once()
    assert place.results() == ["total 1"]


def test_an_output_of_a_reader_within_the_handler_is_refused(place: Place) -> None:
    def looks_up(out: Results, value: int) -> None:
        place.second.tailer().method_reader(Rates(out)).read_one()
        out.total(value)

    class Rates:
        def __init__(self, out: Results) -> None:
            self.out = out

        def word(self, value: str) -> None:
            self.out.both(value, 1)

    place.numbers(1)
    place.words("a")
    service = place.service(Calling)
    service.handler.call = looks_up
    wrong = r"message of another reader: found=2:0x\w+ expected=1:0x"
    with pytest.raises(quire.QuireError, match=wrong):
        service.run_once()
    assert place.results() == []


def test_a_chain_does_not_go_on_in_the_next_message(place: Place) -> None:
    chains: list[Named] = []

    def begins(out: Results, value: int) -> None:
        chains.append(out.to("x"))
        chains[0].total(value)

    place.numbers(1, 2)
    service = place.service(Calling)
    service.handler.call = begins
    service.run_once()
    with pytest.raises(quire.QuireError, match="another message"):
        service.run_once()
    assert place.results() == ["to x", "total 1"]


def test_a_call_that_failed_fails_again_in_the_next_life(place: Place) -> None:
    def tries(out: Results, value: int) -> None:
        for each in (value, 2**80, value + 1):
            for target in (out, out.to("x")):
                with contextlib.suppress(quire.errors.WireError):
                    target.total(each)

    place.numbers(7)
    for _ in range(3):
        with place.service(Calling) as service:
            service.handler.call = tries
            drain(service)
        assert place.results() == ["total 7", "to x", "total 7", "total 8", "to x", "total 8"]


def test_outputs_are_not_cut_off_while_the_service_runs(place: Place) -> None:
    place.numbers(1, 2, 3, 4, 5)
    path = Path(place.output.path)
    with place.service(Calling) as service:
        drain(service)
        zero_end(max(path.glob("*.cq4")))
        with pytest.raises(WriterInUseError, match="a service or a conversion writes"):
            quire.repair(path, dry_run=False)
    assert "lost-end" in [it.kind for it in quire.repair(path, dry_run=False).actions]
    place.numbers(6)
    with place.service(Calling) as service:
        drain(service)
    assert place.results() == [f"total {number}" for number in range(1, 7)]
