"""The page that `quire serve --web` shows, as a browser without script asks for it."""

from __future__ import annotations

import http.client
import re
from pathlib import Path

import pytest

import quire
from browsing import Visit
from served import connected, serving

_START_MS = 1_705_314_600_000
_HOUR_MS = 3_600_000


def fill(root: Path) -> None:
    clock = quire.ManualClock(_START_MS)
    with (
        quire.open(root / "prices/eur", clock=clock, roll_cycle="FAST_HOURLY") as queue,
        queue.appender() as appender,
    ):
        for hour in range(3):
            for number in range(100):
                appender.write_map({"symbol": "EURUSD", "n": 100 * hour + number})
            clock.advance(_HOUR_MS)
        with queue.tailer("audit") as tailer:
            tailer.read_many(100)
        with queue.group("billing").consumer("c1") as consumer:
            taken = [*consumer.read_many(5)]
            assert taken[0].ack()
    with quire.open(root / "prices/usd", metrics=True) as queue:
        queue.appender().write_map({"symbol": "USDJPY", "<b>": "</script>"})
    for name in ("vanilla", "quick-queue"):
        with quire.open(root / "older" / name, format=name) as older:
            older.appender().write_text("hello")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shown") / "queues"
    fill(root)
    return root


def test_the_list_has_the_queues_of_all_formats_as_a_tree(visit: Visit) -> None:
    found = visit.ask("/")
    assert found.status == 200
    words = found.words
    assert "4 queues" in words
    assert words.index("older/") < words.index("quick-queue 1 ") < words.index("prices/")
    assert re.search(r"prices/ eur 300 \S+ 299 .*B 3 chronicle usd 1 \S+ \N{EN DASH} ", words)
    assert "usd" not in visit.ask("/?name=EUR").words
    assert "No queue name contains zzz." in visit.ask("/?name=zzz").words


def test_the_page_of_a_queue(visit: Visit) -> None:
    words = visit.ask("/queue/prices/eur").words
    for part in ("300 ", "audit 200 ", "billing 299 4 ", "2024-01-15 10:00:00 UTC 100 ", "none"):
        assert part in words, part
    assert "Dead letters are counted if a process opens the queue with metrics." in words
    measured = visit.ask("/queue/prices/usd").words
    assert "Appending 1 times: half within" in measured
    assert "Dead letters of all groups: 0" in measured
    for name in ("vanilla", "quick-queue"):
        assert visit.ask(f"/queue/older/{name}").status == 200


def shown(visit: Visit, address: str) -> list[int]:
    return [int(it) for it in re.findall(r"\bn: (\d+)\b", visit.ask(address).words)]


def link(visit: Visit, address: str, word: str) -> str:
    found = re.search(rf'href="([^"]*)"[^>]*>[^<]*{word}', visit.ask(address).text)
    assert found is not None, word
    return found[1].replace("&amp;", "&")


def test_messages_are_reached_by_links_page_by_page(visit: Visit) -> None:
    first = "/messages/prices/eur"
    assert shown(visit, first) == [*range(250, 300)]
    older = link(visit, first, "Older")
    assert shown(visit, older) == [*range(200, 250)]
    assert shown(visit, link(visit, older, "Newer")) == [*range(250, 300)]
    seen = list[int]()
    address = link(visit, first, "First")
    while True:
        seen += shown(visit, address)
        if 'rel="next"' not in visit.ask(address).text:
            break
        address = link(visit, address, "Newer")
    assert seen == [*range(300)]


def test_messages_are_found_by_time_field_and_pattern(visit: Visit) -> None:
    at = "/messages/prices/eur?count=200&"
    assert shown(visit, at + "from=2024-01-15T11:00")[:2] == [100, 101]
    assert shown(visit, at + "from=start") == [*range(200)]
    assert shown(visit, at + "field=n&value=17") == [17]
    assert shown(visit, at + "field=nothing") == []
    assert shown(visit, at + "regex=n:%20.7%24&as=yaml") == [*range(17, 100, 10)]
    assert "10 found" not in visit.ask(at + "regex=nowhere").words
    assert "0 found among 300 messages, to the end" in visit.ask(at + "regex=nowhere").words
    index = re.search(r"index=(\d+)", visit.ask(at + "field=n&value=123").text)
    assert index is not None
    assert shown(visit, at + f"from={index[1]}")[0] == 123
    assert shown(visit, at + f"from={int(index[1]):#x}")[0] == 123


def test_a_message_is_shown_as_yaml_json_fields_and_bytes(visit: Visit) -> None:
    found = visit.ask("/messages/prices/usd")
    index = re.search(r"index=(\d+)", found.text)
    assert index is not None
    one = f"/message/prices/usd?index={index[1]}&as="
    assert 'symbol: USDJPY "<b>": "</script>"' in visit.ask(one + "yaml").words
    assert '{"symbol":"USDJPY","<b>":"</script>"}' in visit.ask(one + "json").words
    assert "symbol USDJPY <b> </script>" in visit.ask(one + "fields").words
    assert "00000000 b9 06 73 79 6d" in visit.ask(one + "bytes").words
    whole = visit.ask(f"/whole/prices/usd?index={index[1]}&as=bytes")
    assert whole.body.startswith(b"\xb9\x06symbol")
    assert whole.headers["content-disposition"].startswith("attachment")
    assert whole.headers["content-type"] == "application/octet-stream"


def test_a_message_is_appended_by_a_form(visit: Visit, root: Path) -> None:
    visit.ask("/queue/orders/new")
    with quire.open(root / "orders" / "new") as queue:
        queue.appender().write_text("first")
    for kind, text, data in (
        ("yaml", "n: 1\r\nsymbol: EURUSD", {"n": 1, "symbol": "EURUSD"}),
        ("json", '{"n": 2}', {"n": 2}),
        ("text", "a\r\nb", "a\nb"),
    ):
        visit.ask("/queue/orders/new")
        appended = visit.ask("/append/orders/new", {"kind": kind, "message": text})
        assert appended.status == 303
        assert "The message was appended." in visit.ask(appended.headers["location"]).words
        with quire.open(root / "orders" / "new", read_only=True) as queue:
            with queue.tailer() as tailer:
                *_, last = tailer
            assert data == (last.to_text() if kind == "text" else last.to_dict())


def test_every_answer_says_that_nothing_else_may_be_loaded(visit: Visit) -> None:
    for address in ("/", "/nothing", "/queue/..", "/sign-in", "/static/page.js", "/queue/a?x"):
        headers = visit.ask(address).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    page = visit.ask("/queue/prices/eur").text
    assert not re.search(r"<script(?! src=\"/static/)|style=|<style|\son\w+=|https?://", page)


def test_numbers_and_messages_are_sent_as_they_come(port: int, root: Path) -> None:
    with quire.open(root / "live") as queue, queue.appender() as appender:
        appender.write_text("before")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/live/live?as=json")
        events = connection.getresponse()
        while b"following" not in events.readline():
            pass
        appender.write_text("<b>now")
        while not (line := events.readline()).startswith(b'data: {"rows"'):
            pass
        assert b'"text": "\\"<b>now\\""' in line
        connection.close()


def test_redis_clients_and_the_page_are_served_together(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with serving(root, "--web", "127.0.0.1:0") as (port, process), connected(port) as client:
        assert process.stdout is not None
        page = Visit(int(process.stdout.readline().rpartition(b":")[2]))
        client.xadd("orders", {"symbol": "EURUSD"})
        assert "orders 1 " in page.ask("/").words
        assert "symbol: EURUSD" in page.ask("/messages/orders").words
