"""Services: which outputs are refused, as nothing would count them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import quire
from journal_damages import zero_end
from queues import exit_code, fork
from quire.errors import ClosedError, WriterInUseError
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


def test_the_next_message_is_refused_while_one_is_handled(place: Place) -> None:
    def both(out: Results, value: int) -> None:
        out.total(value)
        with pytest.raises(RuntimeError, match="is still being handled"):
            service.run_once()
        out.total(value * 10)

    place.numbers(1, 2)
    with place.service(Calling) as service:
        service.handler.call = both
        drain(service)
    assert place.results() == ["total 1", "total 10", "total 2", "total 20"]


def run_once(service: quire.Service) -> bool:
    return service.run_once()


def arun_once(service: quire.Service) -> bool:
    return asyncio.run(service.arun_once())


@pytest.mark.parametrize("runs_once", [run_once, arun_once])
def test_an_append_that_failed_ends_the_service_though_the_handler_caught_it(
    place: Place, runs_once: Callable[[quire.Service], bool]
) -> None:
    class Long(Calling):
        def number(self, value: int) -> None:
            for name in ("a", "b" * longest, "c"):
                with contextlib.suppress(quire.errors.MessageTooLargeError):
                    self.out.to(name).total(value)

    def failing() -> None:
        with place.service(Long) as service, pytest.raises(quire.errors.MessageTooLargeError):
            runs_once(service)

    longest = 1 << 20
    place.numbers(1)
    failing()
    failing()
    assert place.results() == ["to a", "total 1"]
    longest = 1
    for _ in range(2):
        with place.service(Long) as service:
            drain(service)
    assert place.results() == [
        line for name in ("a", "b", "c") for line in (f"to {name}", "total 1")
    ]


def test_a_call_that_cannot_be_encoded_may_be_caught(place: Place) -> None:
    def wrong(out: Results, value: int) -> None:
        with pytest.raises((TypeError, quire.errors.WireError)):
            out.total("no number")  # type: ignore[arg-type]
        out.total(value)

    place.numbers(1, 2)
    service = place.service(Calling)
    service.handler.call = wrong
    drain(service).close()
    service = place.service(Calling)
    service.handler.call = wrong
    drain(service).close()
    assert place.results() == ["total 1", "total 2"]


def test_a_message_whose_handler_closes_the_service_is_not_done(place: Place) -> None:
    def closing(out: Results, value: int) -> None:
        out.total(value)
        service.close()
        out.total(value * 10)

    place.numbers(1, 2)
    service = place.service(Calling)
    service.handler.call = closing
    with pytest.raises(ClosedError):
        service.run_once()
    assert [index for _, index in place.first.named_tailers()] == [place.first.first_index]

    def both(out: Results, value: int) -> None:
        out.total(value)
        out.total(value * 10)

    with place.service(Calling) as service:
        service.handler.call = both
        drain(service)
    assert place.results() == ["total 1", "total 10", "total 2", "total 20"]


def test_an_output_is_free_once_its_service_is_closed_whatever_was_forked(place: Place) -> None:
    reader, writer = os.pipe()
    first = place.service()

    def waits() -> None:
        os.close(writer)
        os.read(reader, 1)  # until the parent closes the pipe

    child = fork(waits)
    first.close()
    place.service().close()
    os.close(writer)
    assert exit_code(child) == 0
    os.close(reader)


def test_an_output_is_free_once_its_process_was_killed_whatever_was_forked(
    tmp_path: Path, place: Place
) -> None:
    ready, begun = os.pipe()
    waits, ends = os.pipe()

    def serves() -> None:
        with opened(tmp_path) as own:
            own.service()
            os.close(ends)
            fork(lambda: (os.write(begun, b"."), os.read(waits, 1)))
            os.read(waits, 1)

    service = fork(serves)
    assert os.read(ready, 1) == b"."
    os.kill(service, signal.SIGKILL)
    assert exit_code(service) == -signal.SIGKILL
    place.service().close()
    for descriptor in (ready, begun, waits, ends):
        os.close(descriptor)


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
