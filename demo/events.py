"""
Flights on the time line: departures, arrivals and cancellations in UTC.

The data set gives local clock times and no date of arrival. A scheduled arrival is therefore the
first moment after the scheduled departure at which the destination's clock shows it, and the
actual one follows by its delay. A diverted flight that reached its destination all the same has no
delay: it arrives when the clock there first shows its arrival time after it left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from demo.flights import Flight

ORIGIN_ZONE: Final = "America/New_York"
MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000

# Scheduled and actual, in epoch milliseconds, and the minutes between them.
Times: TypeAlias = tuple[int, int | None, int | None]


class Event(NamedTuple):
    """
    One message of the journal.

    Attributes:
        event: ``departed``, ``arrived`` or ``cancelled``.
        sched: When it was to happen, in epoch milliseconds.
        actual: When it did, in epoch milliseconds; None for a cancellation.
        delay: Minutes between the two; None where the data set has none.
        hour: The scheduled local hour, 0 to 23.

    """

    event: str
    carrier: str
    flight: int
    tailnum: str | None
    origin: str
    dest: str
    sched: int
    actual: int | None
    delay: int | None
    hour: int

    @property
    def time_ms(self) -> int:
        """When it enters the journal: a cancelled flight at its scheduled departure."""
        return self.sched if self.actual is None else self.actual


def date_of(day: int) -> date:
    """Return the date of a day, of its number since 1970 in UTC."""
    return datetime.fromtimestamp(day * DAY_MS / 1_000, UTC).date()


def timeline(flights: Iterable[Flight], zones: Mapping[str, str]) -> list[Event]:
    """Return the events of all *flights* in true time order; equal times keep the data's order."""
    events = [event for flight in flights for event in events_of(flight, zones)]
    events.sort(key=attrgetter("time_ms"))
    return events


def events_of(flight: Flight, zones: Mapping[str, str]) -> Iterator[Event]:
    """
    Yield what happened to one flight.

    Raises:
        KeyError: *zones* lacks the destination.

    """
    sched = LocalClock.of(ORIGIN_ZONE).epoch_ms(flight.day, flight.sched_dep_time)
    if flight.dep_delay is None:
        yield _event("cancelled", flight, flight.sched_dep_time, (sched, None, None))
        return
    departed = sched + flight.dep_delay * MINUTE_MS
    yield _event("departed", flight, flight.sched_dep_time, (sched, departed, flight.dep_delay))
    if flight.arr_time is not None:
        times = _arrival(flight, zones[flight.dest], sched, departed, flight.arr_time)
        yield _event("arrived", flight, flight.sched_arr_time, times)


class LocalClock:
    """
    The wall clocks of one time zone.

    A time that the spring change skips is read with the offset before it, one that the autumn
    change repeats is the first of the two.
    """

    def __init__(self, zone: str) -> None:
        """Look the zone up; whole hours are remembered."""
        self._zone = ZoneInfo(zone)
        self._hours: dict[tuple[date, int], int] = {}

    @staticmethod
    @cache
    def of(zone: str) -> LocalClock:
        """Return the one clock of this zone."""
        return LocalClock(zone)

    def epoch_ms(self, day: date, hhmm: int) -> int:
        """Return when this clock shows *hhmm* (2400 is the next midnight) on *day*."""
        hour, minute = divmod(hhmm, 100)
        start = self._hours.get((day, hour))
        if start is None:
            start = self._hours[day, hour] = self._hour_ms(day, hour)
        return start + minute * MINUTE_MS

    def first_after(self, moment_ms: int, day: date, hhmm: int) -> int:
        """Return the first time after *moment_ms*, which lies near *day*, that it shows *hhmm*."""
        shift = (moment_ms - self.epoch_ms(day, hhmm)) // DAY_MS
        found = self.epoch_ms(day + timedelta(shift), hhmm)
        while found <= moment_ms:
            shift += 1
            found = self.epoch_ms(day + timedelta(shift), hhmm)
        return found

    def _hour_ms(self, day: date, hour: int) -> int:
        days, hour = divmod(hour, 24)
        local = datetime(day.year, day.month, day.day, hour, tzinfo=self._zone) + timedelta(days)
        return int(local.astimezone(UTC).timestamp()) * 1_000


def _arrival(flight: Flight, zone: str, sched_dep: int, departed: int, arr_time: int) -> Times:
    """Return the times of an arrival, from those of the departure in epoch milliseconds."""
    clock = LocalClock.of(zone)
    sched = clock.first_after(sched_dep, flight.day, flight.sched_arr_time)
    if flight.arr_delay is not None:
        return sched, sched + flight.arr_delay * MINUTE_MS, flight.arr_delay
    return sched, clock.first_after(departed, flight.day, arr_time), None


def _event(name: str, flight: Flight, hhmm: int, times: Times) -> Event:
    _, carrier, number, tailnum, origin, dest, *_ = flight
    sched, actual, delay = times
    return Event(
        name, carrier, number, tailnum, origin, dest, sched, actual, delay, hhmm // 100 % 24
    )
