"""When messages were written, on the page: shown, and searched for within a cycle."""

from __future__ import annotations

import http.client
import re
from pathlib import Path

import pytest

import quire
from browsing import Visit

_START_MS = 1_705_314_600_000
"""2024-01-15T10:30 UTC."""
_HOSTILE: list[object] = [
    float("inf"),
    float("nan"),
    2**63 - 1,
    "9" * 5000,
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59.999999-14:00",
    "<script>",
    True,
    [[]],
]
_DEEP = '{"at": [' * 30 + "true" + "]}" * 30


def fill(root: Path) -> None:
    clock = quire.ManualClock(_START_MS)
    with (
        quire.open(root / "indexed", clock=clock, time_index=True) as queue,
        quire.open(root / "plain", clock=clock) as plain,
        quire.open(root / "new-york", clock=clock, time_zone="America/New_York") as zoned,
    ):
        for number in range(100):
            clock.now_ms = _START_MS + 1500 * number
            at = {"at": clock.now_ms, "n": number} if number % 7 else {"n": number}
            for it in (queue, plain, zoned):
                it.appender().write_map(at)
    with quire.open(root / "quick-queue", format="quick-queue") as older:
        older.appender().write_bytes(b"hello")
    with quire.open(root / "hostile") as queue, queue.appender() as appender:
        appender.write_bytes(quire.types.parse_json(_DEEP))
        for value in _HOSTILE:
            appender.write_map({"at": value})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shown") / "queues"
    fill(root)
    return root


def times(visit: Visit, address: str) -> list[str]:
    return re.findall(r"<time [^>]*>([^<]*)</time>", visit.ask(address).text)


def shown(visit: Visit, address: str) -> list[int]:
    return [int(it) for it in re.findall(r"\bn: (\d+)\b", visit.ask(address).words)]


def test_a_message_has_the_time_of_its_append_where_that_is_kept(visit: Visit) -> None:
    found = visit.ask("/messages/indexed?from=start&count=3").text
    assert (
        '<time datetime="2024-01-15T10:30:01.500000Z" title="when it was appended, UTC">'
        "2024-01-15 10:30:01.500</time>" in found
    )
    assert times(visit, "/messages/indexed?from=start&count=3") == [
        "2024-01-15 10:30:00.000",
        "2024-01-15 10:30:01.500",
        "2024-01-15 10:30:03.000",
    ]
    assert shown(visit, "/messages/indexed?from=2024-01-15T10:30:02")[0] == 2


def test_a_message_has_the_start_of_its_cycle_where_nothing_else_is_known(visit: Visit) -> None:
    assert set(times(visit, "/messages/plain")) == {"cycle of 2024-01-15 00:00"}
    assert times(visit, "/messages/quick-queue") == []
    assert "cycle" in visit.ask("/messages/quick-queue?from=2024-01-15").alert
    assert visit.ask("/messages/quick-queue?from=2024-01-15").status == 400


def test_a_field_gives_times_and_finds_them_within_a_cycle(visit: Visit) -> None:
    at = "/messages/plain?time_field=at&count=3&"
    assert shown(visit, at + "from=2024-01-15T10:30:02") == [2, 3, 4]
    assert times(visit, at + "from=2024-01-15T10:30:02") == [
        "2024-01-15 10:30:03.000",
        "2024-01-15 10:30:04.500",
        "2024-01-15 10:30:06.000",
    ]
    assert shown(visit, at + "from=2000-01-01") == [0, 1, 2]
    assert times(visit, at + "from=start")[0] == "cycle of 2024-01-15 00:00"  # it has no field
    assert shown(visit, at + "from=2030-01-01") == []
    assert (
        "no message has a time in the field"
        in visit.ask("/messages/plain?time_field=none&from=2024-01-15T10:30:02").alert
    )
    assert shown(visit, at + "from=2024-01-15T10:30:02&regex=n:%20.0") == [10, 20, 30]
    (newer,) = re.findall(r'rel="next" href="([^"]*)"', visit.ask(at + "from=start").text)[:1]
    assert "time_field=at" in newer


def test_the_zone_of_a_queue_is_named(visit: Visit) -> None:
    found = visit.ask("/messages/new-york?from=start&count=2&time_field=at").text
    assert "in its field at, UTC; 2024-01-15 05:30:01.500000-05:00 America/New_York" in found
    one = re.search(r'href="(/message/new-york[^"]*)"', found)
    assert one is not None
    words = visit.ask(one[1].replace("&amp;", "&")).words
    assert "America/New_York" in words


def test_fields_that_hold_no_time_are_shown_without_one(visit: Visit) -> None:
    found = visit.ask("/messages/hostile?time_field=at&from=start")
    assert found.status == 200
    assert "<script>" not in found.text.replace('<script src="/static/page.js" defer>', "")
    assert visit.ask("/messages/hostile?time_field=at&from=2024-01-15").status in {200, 400}
    name = "%3Cscript%3E%E2%80%AE" + "x" * 900
    hostile = visit.ask(f"/messages/hostile?time_field={name}&from=start")
    assert hostile.status == 200
    assert "\u202e" not in hostile.text
    assert visit.ask("/messages/hostile?time_field=" + "x" * 1001).status == 400


def test_messages_that_come_have_their_time(port: int, root: Path) -> None:
    clock = quire.ManualClock(_START_MS)
    with quire.open(root / "live", clock=clock) as queue, queue.appender() as appender:
        appender.write_text("before")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/live/live?as=json&time_field=at")
        events = connection.getresponse()
        while b"following" not in events.readline():
            pass
        appender.write_map({"at": "2024-01-15T10:30:00.123456Z"})
        while not (line := events.readline()).startswith(b'data: {"rows"'):
            pass
        assert b'"text": "2024-01-15 10:30:00.123456"' in line
        connection.close()
