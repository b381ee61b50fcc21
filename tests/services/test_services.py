"""Services: every message handled once, whatever happens in between."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quire
from queues import DAY_MS, START_MS
from quire import pausers
from service_cases import FIRST, Adder, BrokenError, Place, Results, drain, opened


class Killed(BaseException):
    """The process is gone here."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with opened(tmp_path) as found:
        yield found


def expected(*numbers: int) -> list[str]:
    found: list[str] = []
    total = 0
    for number in numbers:
        total += number
        lines = [
            [f"total {total * 10}"],
            [f"total {total * 10 + 1}"],
            ["to third", f"total {total}"],
        ]
        found += [line for each in lines[: number % 4] for line in each]
    return found


def test_it_calls_the_handler_and_writes_what_that_calls(place: Place) -> None:
    place.numbers(1, 2, 3, 4, 5)

    with place.service() as service:
        drain(service)
        assert service.handler.sum == 15
        assert not service.run_once()

    assert place.results() == expected(1, 2, 3, 4, 5)


def test_outputs_name_the_input_that_led_to_them(place: Place) -> None:
    place.numbers(1, 4, 2)
    indexes = [excerpt.index for excerpt in place.first.tailer()]

    drain(place.service()).close()

    tailer = place.output.tailer()
    sources: list[Any] = []
    while tailer.read() is not None:
        assert tailer.history is not None
        sources.append(tailer.history.sources)
        assert len(tailer.history.timings) == 3
    assert sources == [
        ((FIRST, indexes[0]),),
        ((FIRST, indexes[2]),),
        ((FIRST, indexes[2]),),
    ]


def test_a_new_service_goes_on_with_the_state_of_the_old(place: Place) -> None:
    place.numbers(1, 2, 3)
    drain(place.service()).close()
    place.numbers(4, 5)

    with place.service() as service:
        assert service.is_replaying
        drain(service)
        assert not service.is_replaying
        assert service.handler.sum == 15

    assert place.results() == expected(1, 2, 3, 4, 5)


def killed_after(service: quire.Service, outputs: int) -> None:
    """Run until so many outputs are written, and stop as a killed process would."""
    written = 0
    watched: Any = service
    appender = watched._output
    write = appender._writer

    class Counting:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:  # noqa: ANN401
                nonlocal written
                if written == outputs:
                    raise Killed
                result = getattr(write, name)(*arguments)
                if result is None:
                    written += 1
                    return None

                class After:
                    def total(self, value: int) -> None:
                        nonlocal written
                        if written == outputs:
                            raise Killed
                        result.total(value)
                        written += 1

                return After()

            return call

    appender._writer = Counting()
    with contextlib.suppress(Killed):
        drain(service)
    watched._abandon()


@given(
    numbers=st.lists(st.integers(0, 7), max_size=12),
    kills=st.lists(st.integers(0, 5), max_size=6),
    replay=st.just("all"),
)
@settings(max_examples=60)
def test_killed_between_any_two_outputs_it_writes_each_once(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], kills: list[int], replay: str
) -> None:
    with opened(tmp_path_factory.mktemp("kills")) as place:
        for outputs in kills:
            place.numbers(*numbers)
            killed_after(place.service(replay=replay), outputs)
        drain(place.service()).close()
        assert place.results() == expected(*numbers * len(kills))


@pytest.mark.check
@given(
    steps=st.lists(
        st.one_of(st.integers(0, 5), st.sampled_from(["", "a", "b"]), st.just(None)), max_size=25
    ),
    seed=st.integers(0, 1000),
)
@settings(max_examples=80)
def test_of_two_inputs_the_order_is_kept_over_kills(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int | str | None], seed: int
) -> None:
    """Whatever was handled when, what is written is what one life would have written."""
    chance = random.Random(seed)  # noqa: S311 - repeatable
    with opened(tmp_path_factory.mktemp("orders")) as place:
        both = [place.first, place.second]
        for step in [*steps, None]:
            if isinstance(step, int):
                place.numbers(step)
            elif step is not None:
                place.words(step)
            else:
                inputs = chance.sample(both, 2)  # the order of a life is not that of the next
                killed_after(place.service(inputs=inputs), chance.randrange(4))
        with place.service(inputs=both) as service:
            drain(service)
            results = place.results()
            state = service.handler.sum
        # A life that follows only what was written down comes to the same end.
        with place.service(inputs=both[::-1]) as again:
            drain(again)
            assert again.handler.sum == state
        assert place.results() == results
        words = [line.split()[1] for line in results if line.startswith("both")]
        assert words == [it for it in steps if isinstance(it, str) and it]
        outputs = sum(it % 4 for it in steps if isinstance(it, int))
        assert sum(line.startswith("total") for line in results) == outputs


def test_an_orderly_end_keeps_the_order_of_what_left_no_output(place: Place) -> None:
    place.numbers(4)
    place.words("")
    with place.service(inputs=[place.first, place.second]) as service:
        drain(service)
        assert service.handler.sum == 8
    service.close()

    with place.service(inputs=[place.second, place.first]) as again:
        drain(again)
        assert again.handler.sum == 8
    assert place.results() == []


def test_days_go_by(tmp_path: Path) -> None:
    """Input and output roll, and a life begins in each of their cycles."""
    clock = quire.ManualClock(START_MS)
    with opened(tmp_path, roll_cycle="TEST4_DAILY", clock=clock) as place:
        for number in range(1, 8):
            place.numbers(number)
            clock.advance(DAY_MS)
            if number % 2:
                killed_after(place.service(), 2)
                clock.advance(DAY_MS)
        drain(place.service()).close()
        assert place.results() == expected(*range(1, 8))
        assert len(place.first.cycles) == 7
        assert len(place.output.cycles) > 2


def test_paths_are_of_queues_that_are_there(place: Place, tmp_path: Path) -> None:
    place.numbers(1, 2)
    for inputs, output in ((tmp_path / "none", place.output), ([place.first], tmp_path / "none")):
        with pytest.raises(quire.errors.NotAQueueError):
            quire.service(
                inputs=[inputs] if isinstance(inputs, Path) else inputs,
                output=output,
                handler=Adder,
            )
    assert not (tmp_path / "none").exists()

    one: Any = str(tmp_path / "1")
    drain(quire.service(inputs=one, output=tmp_path / "9", handler=Adder)).close()
    assert place.results() == expected(1, 2)


def test_the_path_of_an_output_need_not_be_utf8(place: Place, tmp_path: Path) -> None:
    place.numbers(1, 2)
    path = os.fsdecode(os.fsencode(tmp_path) + b"/odd \xff")
    with quire.open(path, source_id=9, block_bytes=2**16) as output:
        for _ in range(2):
            with quire.service(inputs=[place.first], output=output, handler=Adder) as service:
                drain(service)
        assert output.entry_count == len(expected(1, 2))
    [(name, _)] = place.first.named_tailers()
    assert "odd%20%ff" in name.lower()


def test_queues_of_a_server_are_refused(place: Place) -> None:
    url = "quire://127.0.0.1:1/numbers"
    with pytest.raises(quire.errors.UnsupportedError, match="a URL where a path belongs"):
        place.service(inputs=[url])
    with pytest.raises(quire.errors.UnsupportedError, match="a URL where a path belongs"):
        quire.service(inputs=[place.first], output=url, handler=Adder)
    place.service().close()  # nothing is locked


def test_an_exception_closes_the_service_and_a_new_one_goes_on(place: Place) -> None:
    place.numbers(1, 3, 2)
    service = place.service()
    service.handler.fails_at = 3

    with pytest.raises(BrokenError):
        drain(service)
    with pytest.raises(quire.errors.ClosedError):
        service.run_once()

    drain(place.service()).close()
    assert place.results() == expected(1, 3, 2)


def test_a_handler_without_state_sees_only_what_it_missed(place: Place) -> None:
    seen: list[int] = []

    class Stateless:
        def __init__(self, out: Results) -> None:
            self.out = out

        def number(self, value: int) -> None:
            seen.append(value)
            self.out.total(value)
            self.out.total(-value)

    place.numbers(1, 2, 3)
    killed_after(place.service(Stateless, replay="missed"), 5)
    assert seen == [1, 2, 3]
    place.numbers(4)

    drain(place.service(Stateless, replay="missed")).close()

    assert seen == [1, 2, 3, 3, 4]
    assert place.results() == [f"total {sign * n}" for n in (1, 2, 3, 4) for sign in (1, -1)]


def test_what_a_service_decided_holds_against_a_new_program(place: Place) -> None:
    class Newer(Adder):
        def number(self, value: int) -> None:
            super().number(value)
            self.out.both("new", self.sum)

    place.numbers(1, 2)
    drain(place.service()).close()
    place.numbers(3)

    drain(place.service(Newer)).close()

    assert place.results()[:3] == expected(1, 2)
    assert place.results()[3:] == ["both new 3", *expected(1, 2, 3)[3:], "both new 6"]


def test_so_it_does_where_several_inputs_were_in_turn(place: Place) -> None:
    class Newer(Adder):
        def number(self, value: int) -> None:
            super().number(value)
            self.out.both("new", self.sum)

    both = [place.first, place.second]
    for number in (1, 2, 3):
        place.numbers(number)
        place.words("a")
    drain(place.service(inputs=both)).close()
    results = place.results()

    drain(place.service(Newer, inputs=both)).close()

    assert place.results() == results


def test_an_output_has_one_service(place: Place) -> None:
    with place.service(), pytest.raises(quire.QuireError, match=r"another service,.*close"):
        place.service()
    place.service().close()


def test_inputs_are_told_apart_by_source_ids(place: Place, tmp_path: Path) -> None:
    with quire.open(tmp_path / "none") as unnamed:
        for inputs in ([unnamed], [place.first, place.first], []):
            with pytest.raises(ValueError, match="source_ids="):
                place.service(inputs=inputs)
    with pytest.raises(ValueError, match="replay=new"):
        place.service(replay="new")
    with pytest.raises(ValueError, match="writes="):
        place.service(handler=unannotated)


def unannotated(out: Any):  # type: ignore[no-untyped-def] # noqa: ANN201, ANN401
    return Adder(out)


unannotated.__annotations__.clear()


def test_handlers_come_in_three_kinds(place: Place) -> None:
    class WithAttribute:
        out: Results

        def number(self, value: int) -> None:
            self.out.total(value)

    def made(out: Results) -> Adder:
        return Adder(out)

    place.numbers(1)
    drain(place.service(made)).close()
    place.numbers(1)
    drain(place.service(unannotated, writes=Results)).close()
    assert place.results() == expected(1, 1)
    place.numbers(7)
    drain(place.service(WithAttribute())).close()
    assert place.results() == [*expected(1, 1), "total 7"]


def test_a_handler_of_local_classes_and_with_arguments(place: Place) -> None:
    class Local(Protocol):
        def total(self, value: int) -> None: ...

    class Times:
        def __init__(self, out: Local, factor: int) -> None:
            self.out = out
            self.factor = factor

        def number(self, value: int) -> None:
            self.out.total(value * self.factor)

    place.numbers(2)
    drain(
        quire.service(
            inputs=[place.first],
            output=place.output,
            handler=functools.partial(functools.partial(Times), factor=3),
        )
    ).close()
    assert place.results() == ["total 6"]


def test_an_input_that_lost_messages_is_not_handled_as_if_new(place: Place, tmp_path: Path) -> None:
    place.numbers(1, 2, 3)
    drain(place.service()).close()
    with quire.open(tmp_path / "other", source_id=FIRST) as other:
        for replay in ("all", "missed"):
            with pytest.raises(quire.QuireError, match="the output names a message"):
                drain(place.service(inputs=[other], replay=replay))


def test_an_input_whose_lost_end_was_filled_again_is_not_told_from_the_old_one(
    place: Place, tmp_path: Path
) -> None:
    """A limit, as docs/services.md says."""
    place.numbers(1, 2, 3)
    drain(place.service()).close()
    with quire.open(tmp_path / "restored", source_id=FIRST) as restored:
        filled = Place(restored, place.second, place.output)
        filled.numbers(1, 6, 3, 2)
        before = place.results()
        drain(filled.service()).close()
        assert place.results()[: len(before)] == before
        filled.numbers(1)
        drain(filled.service()).close()
    assert len(place.results()) == len(before) + 3  # of the last two alone


def test_an_output_outside_of_a_message_is_refused(place: Place) -> None:
    class Early:
        def __init__(self, out: Results) -> None:
            out.total(1)

        def number(self, value: int) -> None: ...

    with pytest.raises(quire.QuireError, match="no message is being handled"):
        place.service(Early)
    place.service().close()


def test_what_is_no_message_of_the_inputs_does_not_count(place: Place) -> None:
    place.numbers(1, 2)
    drain(place.service()).close()
    with place.output.appender() as appender:
        appender.write_text("a stranger")
        appender.method_writer(Results, record_history=True).total(5)
    place.numbers(3)

    drain(place.service()).close()

    assert place.results() == [*expected(1, 2), "total 5", *expected(1, 2, 3)[3:]]


def test_it_runs_on_a_pauser_until_it_is_stopped(place: Place) -> None:
    pauser = pausers.millis(50_000)
    service = place.service()
    thread = threading.Thread(target=service.run, args=(pauser,))
    thread.start()
    place.numbers(1, 2, 3)
    pauser.unpause()
    while service.handler.sum < 6:
        pass
    service.stop()
    thread.join(300)
    assert not thread.is_alive()
    service.close()
    assert place.results() == expected(1, 2, 3)


def test_it_runs_on_asyncio(place: Place) -> None:
    async def run() -> None:
        with place.service() as first:
            task = asyncio.create_task(first.arun())
            place.numbers(*range(200))
            async with asyncio.timeout(300):
                while first.handler.sum < sum(range(200)):  # noqa: ASYNC110 - the service is shown
                    await asyncio.sleep(0)
            first.stop()
            await task

    asyncio.run(run())
    assert place.results() == expected(*range(200))


@pytest.mark.parametrize("is_set", [True, False])
def test_it_finds_its_outputs_that_no_replica_has_acknowledged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_set: bool,  # noqa: FBT001 - a parameter
) -> None:
    with opened(tmp_path) as place:
        place.numbers(1, 2, 3)
        drain(place.service()).close()
        written = place.results()
        place.first._note_acknowledged(place.first.last_index or 0)  # pyright: ignore[reportPrivateUsage]
    options = {} if is_set else {"read_after_replica_acknowledged": True}
    if is_set:
        monkeypatch.setenv("QUIRE_READ_AFTER_REPLICA_ACKNOWLEDGED", "1")

    with opened(tmp_path, **options) as place, place.service() as service:
        drain(service)
        assert service.handler.sum == 6
        assert place.results() == []

    monkeypatch.undo()
    with opened(tmp_path) as place:
        assert place.results() == written
