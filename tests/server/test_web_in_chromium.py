"""
The page in headless Chromium: in both themes, on a desk and a phone, by keyboard, with no script.

`python tests/server/test_web_in_chromium.py` makes the pictures of the documentation.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pytest

import quire
from browsing import chromium, showing
from paths import ROOT
from quire._native import entry_bytes

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.check

Theme: TypeAlias = Literal["light", "dark"]
_START_MS: Final = 1_705_314_600_000
_HOUR_MS: Final = 3_600_000
_DESK: Final = {"width": 1100, "height": 700}
_PHONE: Final = {"width": 390, "height": 780}
_HOSTILE: Final = "<img src=x>"
_PAGES: Final = {
    "list": "/",
    "queue": "/queue/prices/eur",
    "messages": "/messages/prices/eur",
    "fields": "/messages/prices/eur?as=fields&from=start",
    "search": "/messages/prices/eur?regex=price&count=3",
    "hostile": "/messages/hostile?as=bytes",
    "one": "/messages/hostile?as=yaml&from=start",
    "letters": "/queue/%3Cimg%20src=x%3E/failed",
    "times": "/messages/prices/eur?time_field=price&from=start",
    "create": "/create",
    "failed": "/queue/..",
    "sign-in": "/sign-in",
}
_PICTURES: Final[dict[str, tuple[str, Mapping[str, int], Theme]]] = {
    "web-queues": ("/", _DESK, "light"),
    "web-queue": ("/queue/prices/eur", _DESK, "light"),
    "web-messages": ("/messages/prices/eur", _DESK, "dark"),
    "web-letters": ("/messages/prices/failed", _DESK, "light"),
    "web-phone": ("/", _PHONE, "dark"),
}


def fill(root: Path) -> None:
    clock = quire.ManualClock(_START_MS)
    with (
        quire.open(
            root / "prices/eur",
            clock=clock,
            roll_cycle="FAST_HOURLY",
            metrics=True,
            time_index=True,
        ) as queue,
        queue.appender() as appender,
    ):
        for hour in range(48):
            for number in range(20 + (hour * 37) % 61):
                price = round(1.1 + number / 1000, 3)
                appender.write_map({"symbol": "EURUSD", "price": price, "size": 100 * number})
            clock.advance(_HOUR_MS)
        with queue.tailer("audit") as tailer, queue.tailer("risk") as other:
            tailer.read_many(100)
            other.read_many(1500)
        with queue.group("billing").consumer("c1") as consumer:
            first, *_ = consumer.read_many(5)
            assert first.ack()
        fail(queue, root / "prices/failed", "fraud")
    for name in ("prices/usd", "orders/new", "orders/filled"):
        with quire.open(root / name) as queue, queue.appender() as appender:
            appender.write_many([b"\xe5hello"] * (len(name) * 17))


def fill_hostile(root: Path) -> None:
    with quire.open(root / "hostile") as queue, queue.appender() as appender:
        appender.write_text("<script>document.title='taken'</script>")
        appender.write_text("\x1b[2J\u202e" + "x" * 100_000)
        appender.write_bytes(b"\xff\xfe broken")
    with quire.open(root / _HOSTILE / "orders") as queue:
        queue.appender().write_text("<script>document.title='taken'</script>")
        fail(queue, root / _HOSTILE / "failed", "billing")
    with quire.open(root / _HOSTILE / "failed") as queue, queue.appender() as appender:
        with appender.writing_document(metadata=True) as document:
            why = {"source": _HOSTILE, "index": 1, "group": _HOSTILE, "reason": _HOSTILE * 1000}
            document.write_bytes(entry_bytes("deadLetter", why))
        appender.write_text(_HOSTILE)


def fail(queue: quire.JournalQueue, letters: Path, group: str) -> None:
    """Have a group refuse the last messages until they are dead letters."""
    assert queue.first_index is not None
    assert queue.last_index is not None
    found = queue.group(group, dead_letter=letters, max_deliveries=1)
    found.reset(max(queue.first_index, queue.last_index - 2))
    with found.consumer() as consumer:
        for message in consumer:
            message.nack()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shown") / "queues"
    fill(root)
    fill_hostile(root)
    return root


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(browser: Browser, root: Path) -> Generator[str]:
    del browser  # nothing is served where there is none
    with showing(root) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def page(browser: Browser) -> Generator[Page]:
    with opened(browser) as page:
        yield page


@contextmanager
def opened(
    browser: Browser,
    theme: Theme = "light",
    size: Mapping[str, int] = _DESK,
    *,
    runs_script: bool = True,
) -> Generator[Page]:
    """Open a page for a while; what it complains of fails the test."""
    complaints = list[str]()
    viewport: Any = dict(size)
    with browser.new_context(
        viewport=viewport, color_scheme=theme, java_script_enabled=runs_script
    ) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if _is_bad(said) else None)
        yield page
    assert not complaints


def _is_bad(said: Any) -> bool:  # noqa: ANN401
    is_answer = "the server responded with a status of" in said.text
    return said.type in {"error", "warning"} and not is_answer


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [_DESK, _PHONE], ids=["desk", "phone"])
def test_every_page_is_accessible_and_fits(
    browser: Browser, address: str, theme: Theme, size: Mapping[str, int]
) -> None:
    axe: Any = import_module("axe_playwright_python.sync_playwright").Axe()  # it has no types
    with opened(browser, theme, size) as page:
        for name, place in _PAGES.items():
            page.goto(address + place)
            found = axe.run(page, options={"resultTypes": ["violations"]})
            assert not found.response["violations"], (name, found.generate_report())
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
            assert "taken" not in page.title()
            assert page.locator("img").count() == 0
            if name in {"letters", "create"}:
                _go_further(page, name)
                found = axe.run(page, options={"resultTypes": ["violations"]})
                assert not found.response["violations"], (name, found.generate_report())
                assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
                assert page.locator("img").count() == 0
        page.evaluate("document.querySelector('label').remove()")
        assert axe.run(page).response["violations"]  # it does find something


def _go_further(page: Page, name: str) -> None:
    """Go to a dead letter from its queue, or to what is said of a form that cannot be."""
    if name == "create":
        page.get_by_label("Name").fill(f"{_HOSTILE}/../x")
        page.get_by_role("button", name="Create").click()
        page.get_by_role("alert").wait_for()
        return
    page.get_by_role("link", name="Show them").click()
    page.locator("#messages a").last.click()
    page.get_by_role("heading", name="Dead letter").wait_for()


def test_the_list_changes_while_messages_come(page: Page, address: str, root: Path) -> None:
    page.goto(address + "/")
    page.get_by_text("Live", exact=True).wait_for()
    with quire.open(root / "prices/usd") as queue:
        count = queue.entry_count + 5
        queue.appender().write_many([b"\xe5hello"] * 5)
    row = page.locator("[data-topic='prices/usd']")
    row.get_by_text(f"{count}", exact=True).wait_for()


def test_messages_are_followed(page: Page, address: str, root: Path) -> None:
    page.goto(address + "/messages/orders/new")
    page.get_by_role("button", name="Follow new messages").click()
    page.get_by_text("Following").wait_for()
    with quire.open(root / "orders/new") as queue:
        queue.appender().write_text("<img src=x onerror=\"document.title='taken'\">")
    page.get_by_text("<img src=x").wait_for()
    assert page.locator("img").count() == 0
    page.get_by_role("button", name="Follow new messages").click()
    assert "taken" not in page.title()


def test_a_message_is_appended_and_shown_without_script(
    browser: Browser, address: str, root: Path
) -> None:
    with opened(browser, runs_script=False) as page:
        page.goto(address + "/")
        page.get_by_role("link", name="filled").click()
        page.get_by_label("Message", exact=True).fill("symbol: EURUSD\nprice: 1.1")
        page.get_by_role("button", name="Append").click()
        page.get_by_text("The message was appended.").wait_for()
        page.get_by_text("price: 1.1").wait_for()
        page.get_by_role("link", name="Fields").click()
        page.get_by_role("link", name="messages from here on").click()
    with quire.open(root / "orders/filled", read_only=True) as queue, queue.tailer() as tailer:
        *_, last = tailer
        assert last.to_dict() == {"symbol": "EURUSD", "price": 1.1}


def test_a_queue_is_created_without_script_and_by_keyboard(
    browser: Browser, address: str, root: Path
) -> None:
    with opened(browser, runs_script=False) as page:
        page.goto(address + "/")
        page.get_by_role("link", name="Create a queue").focus()
        page.keyboard.press("Enter")
        page.get_by_label("Name").fill("prices/eur")
        page.keyboard.press("Enter")
        page.get_by_role("alert").get_by_text("a queue of this name exists").wait_for()
        page.get_by_label("Name").fill("prices/gbp")
        page.get_by_label("Format").select_option("vanilla")
        page.get_by_label("Roll cycle").fill("HOURS")
        page.get_by_role("button", name="Create").click()
        page.wait_for_url("**/queue/prices/gbp")
        page.get_by_text("There are no messages yet.").wait_for()
    assert (root / "prices/gbp").is_dir()


def test_a_dead_letter_is_found_from_its_group_and_appended_again(
    browser: Browser, address: str, root: Path
) -> None:
    with opened(browser, runs_script=False) as page:
        page.goto(address + "/queue/%3Cimg%20src=x%3E/orders")
        page.get_by_role("link", name=f"{_HOSTILE}/failed").click()
        page.get_by_text("Dead letter of billing, delivered once: refused").wait_for()
        page.locator("#messages a").first.click()
        page.get_by_role("button", name=f"Append it again to {_HOSTILE}/orders").click()
        page.get_by_text("The message was appended.").wait_for()
    with quire.open(root / _HOSTILE / "orders", read_only=True) as queue, queue.tailer() as tailer:
        first, second = [it.to_text() for it in tailer]
    assert first == second


def test_a_pending_message_is_released(page: Page, address: str, root: Path) -> None:
    with (
        quire.open(root / "prices/usd") as queue,
        queue.group("billing", ack_timeout_s=3600.0).consumer("c1") as consumer,
    ):
        message = consumer.read()
        assert message is not None
        page.goto(address + "/queue/prices/usd")
        page.get_by_text("Pending messages of billing").first.click()
        with page.expect_navigation():
            page.get_by_role("button", name=f"Deliver again message {message.index}").click()
        assert not message.ack()


def test_everything_is_reached_by_keyboard(page: Page, address: str) -> None:
    page.goto(address + "/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "name"
    page.keyboard.type("eur")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?name=eur")
    page.get_by_role("link", name="eur").last.focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Messages").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/messages/prices/eur")
    page.locator("main").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**before=**")


def make_pictures(browser: Browser, address: str, folder: Path) -> None:
    """Write the pictures of the documentation."""
    folder.mkdir(exist_ok=True)
    for name, (place, size, theme) in _PICTURES.items():
        with opened(browser, theme, size) as page:
            page.goto(address + place)
            page.screenshot(path=folder / f"{name}.png")


def test_the_pictures_of_the_documentation_can_be_made(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    make_pictures(browser, address, tmp_path / "images")
    for name in _PICTURES:
        made, kept = (it / f"{name}.png" for it in (tmp_path / "images", ROOT / "docs/images"))
        assert 5_000 < made.stat().st_size < 100_000
        assert kept.is_file(), f"python {Path(__file__).relative_to(ROOT)} makes it"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder, "queues"))
        with chromium() as found, showing(Path(folder, "queues")) as port:
            make_pictures(found, f"http://127.0.0.1:{port}", ROOT / "docs/images")
    sys.stdout.write("docs/images\n")
