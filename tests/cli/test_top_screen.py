"""
The screens of `quire top`, as text in tests/cli/screens.

Run as a program, this file renews the screens: `.venv/bin/python tests/cli/test_top_screen.py`.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

import quire
from paths import ROOT
from quire._common.units import count_text, duration_text, latency_text, short_size_text
from quire.cli.live.app import Top
from quire.cli.live.arrivals import Newest
from quire.cli.live.arrivals import shown as shown_message
from quire.cli.live.sample import GONE, OK, DiskSample, LockSample, Sample, TailerSample
from quire.cli.live.sampler import Sampler
from quire.cli.live.trail import cut, sparkline
from quire.cli.reading.sources import Source

SCREENS = Path(__file__).parent / "screens"
SIZE = (80, 24)
GIB = 2**30

Act = Callable[["Still", Pilot[None]], Awaitable[None]]


def example(number: int) -> list[Sample]:
    """Samples as a busy machine gives them; the next ones differ a little."""
    disk = DiskSample(1, 40 * GIB, 100 * GIB)
    orders = Sample(
        queue="desk/orders",
        path="/data/desk/orders",
        time="2024-01-15T10:30:00Z",
        state=OK,
        format="chronicle",
        messages_per_second=12_345.0 * (1 + number % 3),
        bytes_per_second=2.5e6,
        latencies_us=(11.0, 12.0, 13.0 + number, 900.0),
        latency_us=12.5 + number,
        latency_of="history",
        idle_s=0.0,
        end_index="0x4d1900012345",
        lag=1_234_567,
        tailers=(
            TailerSample("risk", "0x4d1900012345", 0, 12_345.0),
            TailerSample("audit\x1b[31m", "0x4d1800000000", 1_234_567 + 1000 * number, None),
        ),
        locks=(LockSample("chronicle.write.lock", 4711, alive=True, held_s=75.0),),
        lock_pid=4711,
        files=12,
        rolls=2,
        next_roll_s=8_000.0,
        on_disk=3 * GIB,
        disk=disk,
    )
    fills = replace(
        orders,
        queue="desk/fills-of-a-very-long-name",
        format="vanilla",
        messages_per_second=0.5,
        bytes_per_second=40.0,
        latencies_us=(),
        latency_us=None,
        idle_s=7_300.0,
        lag=None,
        tailers=(),
        locks=(LockSample("chronicle.write.lock", 99, alive=False, held_s=3.0),),
        lock_pid=99,
        on_disk=81_920,
    )
    gone = Sample("old", "/data/old", orders.time, GONE)
    return [fills, orders, gone]


class Played(Sampler):
    """Plays the samples above."""

    def __init__(self) -> None:
        super().__init__([])
        self.number = 0
        self.rescans = 0

    def sample(self) -> list[Sample]:
        self.number += 1
        return example(self.number)

    def rescan(self) -> None:
        self.rescans = getattr(self, "rescans", 0) + 1


class Still(Top):
    """Takes a sample only when it is asked to."""

    def __init__(self, sampler: Sampler) -> None:
        super().__init__(sampler, sampler.sample(), 1)

    async def take_sample(self) -> None:
        pass

    async def step(self) -> None:
        await super().take_sample()


def text_of(app: Top) -> str:
    lines = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
    return "".join("".join(it.text for it in line).rstrip() + "\n" for line in lines)


def played(act: Act, size: tuple[int, int] = SIZE) -> str:
    """Show five samples, act, and return the screen."""

    async def run() -> str:
        sampler = Played()
        app = Still(sampler)
        async with app.run_test(size=size) as pilot:
            for _ in range(4):
                await app.step()
            await act(app, pilot)
            await pilot.pause()
            return text_of(app)

    return asyncio.run(run())


async def nothing(_app: Still, _pilot: Pilot[None]) -> None:
    pass


async def second_by_lag(_app: Still, pilot: Pilot[None]) -> None:
    await pilot.press("down", "s", "s", "s", "s")


async def filtered(_app: Still, pilot: Pilot[None]) -> None:
    await pilot.press("slash", *"ORD", "enter")


async def paused(app: Still, pilot: Pilot[None]) -> None:
    await pilot.press("p", "d")
    await app.step()


CASES: dict[str, tuple[Act, tuple[int, int]]] = {
    "table": (nothing, SIZE),
    "sorted": (second_by_lag, SIZE),
    "filtered": (filtered, SIZE),
    "paused": (paused, SIZE),
    "wide": (second_by_lag, (120, 30)),
}


@pytest.mark.parametrize("name", [*CASES])
def test_the_screen_is_as_it_was(name: str) -> None:
    shown = played(*CASES[name])
    assert shown == (SCREENS / f"{name}.txt").read_text("utf-8")
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= CASES[name][1][0]


def test_the_documentation_shows_a_screen_as_it_is() -> None:
    shown = (SCREENS / "sorted.txt").read_text("utf-8")
    assert f"```text\n{shown}```" in (ROOT / "docs/cli.md").read_text("utf-8")


def test_messages_of_the_selected_queue_open_and_close(
    appender: quire.JournalAppender, path: Path
) -> None:
    appender.write_map({"symbol": "EURUSD", "note": "\x1b[31m"})
    sampler = Sampler([path])

    async def run() -> list[str]:
        app = Still(sampler)
        shown = list[str]()
        async with app.run_test(size=SIZE) as pilot:
            await pilot.press("enter")
            await until(pilot, lambda: "EURUSD" in text_of(app))
            shown.append(text_of(app))
            appender.write_text("next")
            await until(pilot, lambda: "next" in text_of(app))
            await pilot.press("s", "f", "f")
            await until(pilot, lambda: " · hex" in text_of(app))
            shown.append(text_of(app))
            await pilot.press("escape")
            await until(pilot, lambda: "by queue" in text_of(app))
            shown.append(text_of(app))
            await pilot.press("q")
        return shown

    as_json, as_hex, table = asyncio.run(run())
    assert '0x4d1900000000: {"symbol":"EURUSD","note":"\\u001b[31m"}' in as_json
    assert "0x4d1900000000: b90673796d626f6c" in as_hex
    assert table.startswith("1 queue ·")
    sampler.close()


def test_a_queue_that_was_removed_while_paused_opens_with_an_error(
    appender: quire.JournalAppender, path: Path
) -> None:
    appender.write_text("hello")
    sampler = Sampler([path.parent])

    async def run() -> str:
        app = Top(sampler, sampler.sample(), 1)
        async with app.run_test(size=(200, 24)) as pilot:
            await pilot.press("p")
            shutil.rmtree(path)
            await pilot.press("r")
            await until(pilot, lambda: path.name not in sampler.sources())
            await pilot.press("enter")
            await until(pilot, lambda: "no such directory" in text_of(app))
            return text_of(app)

    assert str(path) in asyncio.run(run())
    sampler.close()


async def until(pilot: Pilot[None], is_so: Callable[[], bool]) -> None:
    while not is_so():
        await pilot.pause(0.01)


@pytest.mark.parametrize("count", [50, 150, 1000])
def test_only_the_newest_messages_are_read(
    appender: quire.JournalAppender, path: Path, count: int
) -> None:
    appender.write_many([b"old"] * 3)
    newest = Newest(Source("", path))
    left_out, found = newest.read()
    assert (left_out, [it.data for it in found]) == (False, [b"old"] * 3)
    last = appender.write_many([b"%d" % it for it in range(count)])
    left_out, found = newest.read()
    assert left_out is (count == 1000)
    assert found[-1].index == last
    assert len(found) == (99 if left_out else count)
    newest.close()


def test_a_message_is_shown_on_one_harmless_line() -> None:
    assert shown_message(b"\xe3a\x1bb", "json") == '"a\\u001bb"'
    assert "\n" not in shown_message(quire.types.parse_yaml("a: 1\nb: 2"), "yaml")
    assert shown_message(b"x" * 100_000, "json").endswith("… 97.7K, too long to show")
    assert len(shown_message(b"x" * 50_000, "hex")) == 2001


def test_queues_are_looked_for_again_at_a_key() -> None:
    async def run() -> None:
        sampler = Played()
        before = sampler.rescans
        app = Still(sampler)
        async with app.run_test(size=SIZE) as pilot:
            await pilot.press("r")
            await until(pilot, lambda: sampler.rescans == before + 1)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0"),
        (0.5, "0.5"),
        (7, "7"),
        (999, "999"),
        (999.6, "1.0k"),
        (12_345, "12.3k"),
        (123_456, "123k"),
        (5e6, "5.0M"),
        (99.96, "100"),
        (1e20, "100000P"),
    ],
)
def test_counts_are_short(count: float | None, text: str) -> None:
    assert count_text(count) == text


def test_other_numbers_are_short_too() -> None:
    assert [short_size_text(it) for it in (0, 1000, 1536, 3 * GIB)] == [
        "0B",
        "1.0K",
        "1.5K",
        "3.0G",
    ]
    times = (None, 0.2, 59.4, 90, 7_200, 200_000)
    assert [*map(duration_text, times)] == ["-", "0s", "59s", "2m", "2h", "2d"]
    latencies = (None, 0.25, 12, 999.9, 3_400, 1.2e6, 3e8)
    shown = ["-", "0.2us", "12us", "1.0ms", "3.4ms", "1.2s", "300s"]
    assert [*map(latency_text, latencies)] == shown
    assert sparkline([None, 0, 1, 50, 100], 6) == "  ▁▂▅█"
    assert sparkline([0, 0], 2) == "▁▁"
    assert [cut("orders", width) for width in (6, 4)] == ["orders", "…ers"]


if __name__ == "__main__":
    for name, case in CASES.items():
        (SCREENS / f"{name}.txt").write_text(played(*case), "utf-8")
        sys.stdout.write(f"{name}\n")
