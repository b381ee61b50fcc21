"""Dead letters and pending messages on the page: shown with the reason, and delivered again."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import quire
from browsing import Visit, showing
from cli_runs import run_here
from quire._native import entry_bytes
from quire.groups.letters import DeadLetters, Letter

_START_MS = 1_705_314_600_000
_DAY_MS = 86_400_000


def fail(root: Path, *texts: str, group: str = "billing") -> None:
    """Have a group refuse messages until they are dead letters."""
    with (
        quire.open(root / "shop/orders") as queue,
        queue.group(
            group, dead_letter=str(root / "shop/failed"), max_deliveries=2
        ).consumer() as consumer,
    ):
        queue.appender().write_many([quire.types.parse_json(f'"{it}"') for it in texts])
        for message in consumer:
            message.nack()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "queues"
    root.mkdir()
    return root


@pytest.fixture
def visit(root: Path) -> Generator[Visit]:
    with showing(root) as port:
        yield Visit(port)


@contextmanager
def signed_in(root: Path, *rights: str) -> Generator[Visit]:
    """Show the page to somebody whose token has some rights."""
    file = str(root.parent / f"tokens-{len([*root.parent.iterdir()])}")
    added = run_here("token", "add", "one", "--tokens", file, *rights)
    with showing(root, "--tokens", file) as port:
        visit = Visit(port)
        visit.ask("/sign-in")
        assert visit.ask("/sign-in", {"token": added.out.strip()}).status == 303
        yield visit


def letter_page(visit: Visit, number: int = 0) -> str:
    listed = visit.ask("/messages/shop/failed").text
    found: list[str] = re.findall(r'<div class="head"><a href="([^"]*)"', listed)
    return found[number].replace("&amp;", "&")


def texts(root: Path, name: str) -> list[str]:
    with quire.open(root / name, read_only=True) as queue, queue.tailer() as tailer:
        return [it.to_text() for it in tailer]


def test_the_number_of_dead_letters_leads_to_them(root: Path, visit: Visit) -> None:
    fail(root, "first", "second")
    found = visit.ask("/queue/shop/orders")
    assert "Group Messages Stored in billing 2 shop/failed" in found.words
    assert 'href="/messages/shop/failed"' in found.text
    held = visit.ask("/queue/shop/failed")
    assert "This queue holds dead letters." in held.words
    assert "Group Messages From billing 2 shop/orders" in held.words
    fail(root, "third")
    assert "billing 3 shop/failed" in visit.ask("/queue/shop/orders").words
    fail(root, group="audit")
    assert "audit 3 shop/failed billing 3 shop/failed" in visit.ask("/queue/shop/orders").words


def test_a_dead_letter_is_shown_with_the_reason(root: Path, visit: Visit) -> None:
    fail(root, "first", "second")
    listed = visit.ask("/messages/shop/failed").words
    assert listed.count("Dead letter of billing, delivered 2 times: refused") == 2
    for number, text in enumerate(("first", "second")):
        one = visit.ask(letter_page(visit, number))
        assert "Reason refused Group billing Delivered 2 times Original message" in one.words
        (source,) = re.findall(r'href="(/message/shop/orders[^"]*)"', one.text)
        assert text in visit.ask(source).words
    found = visit.ask("/messages/shop/failed?regex=second").words
    assert found.count("Dead letter of billing") == 1
    assert "Dead letter" not in visit.ask("/messages/shop/orders").words


def test_a_dead_letter_is_appended_again(root: Path, visit: Visit) -> None:
    fail(root, "first", "second")
    page = letter_page(visit, 1)
    one = visit.ask(page)
    assert "Append it again to shop/orders" in one.words
    index = re.search(r"index=(\d+)", page)
    assert index is not None
    assert (
        "load the page again" in Visit(visit.port).ask("/again/shop/failed", {"index": "1"}).alert
    )
    done = visit.ask("/again/shop/failed", {"index": index[1]})
    assert done.status == 303
    assert "second" in visit.ask(done.headers["location"]).words
    assert texts(root, "shop/orders") == ["first", "second", "second"]
    assert visit.ask("/again/shop/failed", {"index": "1"}).status == 400
    assert visit.ask("/again/shop/orders", {"index": "1"}).status == 400
    assert visit.ask("/again/shop/failed", {"index": "x"}).status == 400


def test_a_dead_letter_of_a_queue_that_another_server_has_is_no_link(root: Path) -> None:
    fail(root, "first")
    with showing(root, "--peer", "shop/orders=127.0.0.1:1") as port:
        visit = Visit(port)
        one = visit.ask(letter_page(visit))
        assert (one.status, "/message/shop/orders" in one.text) == (200, False)
        assert "Append it again" not in one.words
        visit.ask("/create")
        made = visit.ask("/create", {"name": "shop/orders"})
        assert (made.status, "served elsewhere" in made.alert) == (400, True)


def test_what_the_token_may_not_do_is_not_offered(root: Path) -> None:
    fail(root, "first")
    with signed_in(root, "--read", "shop/*") as visit:
        page = letter_page(visit)
        assert "Append it again" not in visit.ask(page).words
        index = re.search(r"index=(\d+)", page)
        assert index is not None
        refused = visit.ask("/again/shop/failed", {"index": index[1]})
        assert (refused.status, "may not append" in refused.alert) == (403, True)
    assert texts(root, "shop/orders") == ["first"]


@pytest.mark.check
def test_a_queue_that_the_token_may_not_read_is_no_link(root: Path) -> None:
    fail(root, "first")
    with signed_in(root, "--read", "shop/failed", "--append", "*") as visit:
        one = visit.ask(letter_page(visit))
        assert "/message/shop/orders" not in one.text
        assert "Append it again" not in one.words
        assert visit.ask("/queue/shop/orders").status == 403
    with signed_in(root, "--read", "shop/orders") as visit:
        assert "shop/failed" not in visit.ask("/queue/shop/orders").text


_SOURCES = {
    "<script>document.title='taken'</script>": "<img src=x onerror=alert(1)>",
    "{root}/../../etc/passwd": "\x1b[2J\u202e",
    "{root}/shop/orders": "another message",
    "{root}/shop/nothing": "",
    "{root}/.quire-server": "x" * 200_000,
    "": "{{ 7 * 7 }}",
}


def test_what_a_dead_letter_says_is_neither_markup_nor_believed(root: Path, visit: Visit) -> None:
    bad = list[int]()
    with quire.open(root / "shop/orders") as orders, quire.open(root / "shop/failed") as failed:
        index = orders.appender().write_text("good")
        with failed.appender() as appender:
            claims = [(source, reason, index) for source, reason in _SOURCES.items()]
            claims += [
                ("{root}/shop/orders", "", it) for it in (-1, 2**63 - 1, -(2**63), index + 1)
            ]
            for source, reason, claimed in claims:
                why = {"source": source.format(root=root), "index": claimed, "count": -1}
                why |= {"group": "<b>", "reason": reason}
                with appender.writing_document(metadata=True) as document:
                    document.write_bytes(entry_bytes("deadLetter", why))
                bad.append(appender.write_text("bad"))
    pages = [visit.ask(letter_page(visit, number)) for number in range(len(bad))]
    pages.append(visit.ask("/messages/shop/failed"))
    pages += [visit.ask(f"/queue/shop/{name}") for name in ("orders", "failed")]
    for page in pages:
        assert page.status == 200
        assert not re.search(r"<script>|<img|<b>|\x1b|\u202e", page.text)
        assert "Append it again" not in page.words
        assert len(page.body) < 100_000
    for it in bad:
        assert visit.ask("/again/shop/failed", {"index": str(it)}).status == 400
    assert texts(root, "shop/orders") == ["good"]


def test_the_first_dead_letter_of_a_cycle_is_shown_with_the_reason(
    root: Path, visit: Visit
) -> None:
    clock = quire.ManualClock(_START_MS)
    with (
        quire.open(root / "shop/orders") as queue,
        quire.open(root / "shop/failed", clock=clock) as failed,
    ):
        letters = DeadLetters(failed, 1, queue)
        for number in range(3):
            letters.write("billing", Letter(b"\xe1%d" % number, number, 1, f"reason {number}"))
            clock.advance(_DAY_MS)
        for number in range(3):
            assert f"Reason reason {number} " in visit.ask(letter_page(visit, number)).words
        assert quire.prune(failed, max_cycles=2).removed
    assert "Reason reason 1 " in visit.ask(letter_page(visit)).words
    assert "billing 2 " in visit.ask("/queue/shop/failed").words


def test_a_pending_message_is_delivered_again(root: Path, visit: Visit) -> None:
    with quire.open(root / "orders") as queue:
        index = queue.appender().write_text("hello")
        with queue.group("billing", ack_timeout_s=3600.0).consumer("c1") as consumer:
            message = consumer.read()
            assert message is not None
            page = visit.ask("/queue/orders")
            assert f"Deliver again message {index}" in page.words
            form = {"group": "billing", "index": str(index)}
            assert "load the page again" in Visit(visit.port).ask("/release/orders", form).alert
            assert visit.ask("/release/orders", form).status == 303
            assert not message.ack()
            again = consumer.read()
            assert again is not None
            assert again.redelivery_cause == "released"
            assert again.ack()
            assert "cannot be changed" in visit.ask("/release/orders", form).alert
            for name in ("none", "../x", "", "<b>"):
                refused = visit.ask("/release/orders", {"group": name, "index": str(index)})
                assert refused.status == 400
