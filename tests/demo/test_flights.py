from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from demo.events import DAY_MS, Event, events_of, timeline
from demo.flights import FLIGHT_COUNT, Flight, data_folder, read_flights, read_zones

ZONES = {
    "BQN": "America/Puerto_Rico",
    "HNL": "Pacific/Honolulu",
    "IAH": "America/Chicago",
    "LAX": "America/Los_Angeles",
    "PHX": "America/Phoenix",
}


def flight(day: date, dest: str, departs: int, arrives: int) -> Flight:
    """Return a flight that kept its times."""
    return Flight(day, "B6", 725, "N804JB", "JFK", dest, departs, 0, arrives, arrives, 0)


def utc_of(found: Flight) -> list[str]:
    times = [event.time_ms / 1_000 for event in events_of(found, ZONES)]
    return [datetime.fromtimestamp(time, UTC).strftime("%m-%d %H:%M") for time in times]


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    return list(read_flights(data_folder()))


@pytest.fixture(scope="module")
def zones() -> dict[str, str]:
    return read_zones(data_folder())


@pytest.fixture(scope="module")
def events(flights: list[Flight], zones: dict[str, str]) -> list[Event]:
    return timeline(flights, zones)


@pytest.mark.parametrize(
    ("day", "departure"),
    [
        (date(2013, 3, 9), "03-09 12:00"),
        (date(2013, 3, 10), "03-10 11:00"),
        (date(2013, 11, 2), "11-02 11:00"),
        (date(2013, 11, 3), "11-03 12:00"),
    ],
)
def test_new_york_changes_its_clocks_in_march_and_november(day: date, departure: str) -> None:
    assert utc_of(flight(day, "IAH", 700, 1000))[0] == departure


@pytest.mark.parametrize(
    ("day", "arrival"), [(date(2013, 1, 15), "01-15 17:00"), (date(2013, 7, 15), "07-15 17:00")]
)
def test_phoenix_does_not_change_its_clocks(day: date, arrival: str) -> None:
    assert utc_of(flight(day, "PHX", 500, 1000))[1] == arrival


def test_a_late_evening_departure_arrives_on_the_next_day() -> None:
    assert utc_of(flight(date(2013, 1, 1), "BQN", 2359, 437)) == ["01-02 04:59", "01-02 08:37"]


def test_a_western_arrival_may_show_an_earlier_clock_than_the_departure() -> None:
    assert utc_of(flight(date(2013, 1, 1), "LAX", 2355, 300)) == ["01-02 04:55", "01-02 11:00"]


def test_honolulu_is_reached_on_the_same_local_day() -> None:
    assert utc_of(flight(date(2013, 1, 1), "HNL", 900, 1530)) == ["01-01 14:00", "01-02 01:30"]


def test_delays_move_an_event_over_midnight_both_ways() -> None:
    early = flight(date(2013, 6, 2), "IAH", 5, 230)._replace(dep_delay=-10, arr_delay=-20)
    late = flight(date(2013, 6, 2), "IAH", 2200, 2359)._replace(dep_delay=1301, arr_delay=1272)

    assert utc_of(early) == ["06-02 03:55", "06-02 07:10"]
    assert utc_of(late) == ["06-03 23:41", "06-04 02:11"]


def test_a_diverted_flight_arrives_when_the_clock_next_shows_its_arrival_time() -> None:
    diverted = flight(date(2013, 6, 2), "IAH", 2200, 100)._replace(arr_time=2400, arr_delay=None)

    departed, arrived = events_of(diverted, ZONES)
    assert utc_of(diverted) == ["06-03 02:00", "06-03 05:00"]
    assert (departed.delay, arrived.delay) == (0, None)


def test_a_flight_that_never_left_is_cancelled_at_its_scheduled_departure() -> None:
    never = flight(date(2013, 1, 1), "IAH", 1935, 2240)._replace(dep_delay=None, arr_time=None)

    (event,) = events_of(never, ZONES)
    assert (event.event, event.actual, event.delay, event.hour) == ("cancelled", None, None, 19)
    assert utc_of(never) == ["01-02 00:35"]


def test_a_flight_that_landed_elsewhere_only_departs() -> None:
    lost = flight(date(2013, 1, 1), "IAH", 1935, 2240)._replace(arr_time=None, arr_delay=None)

    assert [event.event for event in events_of(lost, ZONES)] == ["departed"]


@pytest.mark.slow
def test_the_data_set_is_whole(flights: list[Flight], events: list[Event]) -> None:
    kinds = [event.event for event in events]

    assert len(flights) == FLIGHT_COUNT
    assert kinds.count("departed") == 328_521
    assert kinds.count("arrived") == 328_063
    assert kinds.count("cancelled") == 8_255


@pytest.mark.slow
def test_events_are_in_time_order_and_fill_366_utc_days(events: list[Event]) -> None:
    times = [event.time_ms for event in events]
    days = {time // DAY_MS for time in times}

    assert times == sorted(times)
    assert len(days) == 366
    assert datetime.fromtimestamp(max(days) * DAY_MS / 1_000, UTC).date() == date(2014, 1, 1)


@pytest.mark.slow
def test_arrivals_show_the_clock_time_that_the_data_set_gives(
    flights: list[Flight], zones: dict[str, str]
) -> None:
    """The arrival time itself is not used for them, so it tells whether the dates are right."""
    arrived = [found for found in flights if found.arr_delay is not None]
    wrong = [found for found in arrived if local_arrival(found, zones) != found.arr_time]

    # Summer time began in this night: no clock there showed 02:03, it was 03:03 already.
    assert [(found.day, found.dest, found.arr_time) for found in wrong] == [
        (date(2013, 3, 9), "PBI", 203)
    ]


def local_arrival(found: Flight, zones: dict[str, str]) -> int:
    """Return the arrival on the destination's clock as the data set writes it; midnight is 2400."""
    departed, arrived = events_of(found, zones)
    assert departed.time_ms < arrived.time_ms < departed.time_ms + DAY_MS
    local = datetime.fromtimestamp(arrived.time_ms / 1_000, ZoneInfo(zones[found.dest]))
    return local.hour * 100 + local.minute or 2400
