"""Queues that are made by a form of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from browsing import Visit, showing
from cli_runs import run_here


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made") / "queues"
    for name in ("there", "folder/inside"):
        quire.open(root / name).close()
    return root


@pytest.fixture
def visit(visit: Visit) -> Visit:
    visit.ask("/create")
    return visit


def test_a_queue_is_made_with_what_the_form_says(root: Path, visit: Visit) -> None:
    assert "Create a queue" in visit.ask("/").words
    form = {
        "name": " prices/eur ",
        "format": "chronicle",
        "roll_cycle": "FAST_HOURLY",
        "time_zone": "Europe/Berlin",
        "source_id": "7",
        "block_bytes": "1048576",
        "wire_type": "",
        "epoch_ms": "",
    }
    made = visit.ask("/create", form)
    assert (made.status, made.headers["location"]) == (303, "/queue/prices/eur")
    assert "FAST_HOURLY" in visit.ask("/queue/prices/eur").words
    with quire.open(root / "prices/eur", create=False) as queue:
        assert queue.roll_cycle.name == "FAST_HOURLY"
        assert (queue.roll_time_zone, queue.source_id) == ("Europe/Berlin", 7)
    assert "eur 0 " in visit.ask("/").words  # at once


@pytest.mark.parametrize("kind", ["chronicle", "vanilla", "quick-queue"])
def test_queues_of_each_format_are_made(root: Path, visit: Visit, kind: str) -> None:
    name = f"of/{kind}"
    assert visit.ask("/create", {"name": name, "format": kind}).status == 303
    assert visit.ask(f"/append/{name}", {"kind": "text", "message": "hello"}).status == 303
    with quire.open(root / name, create=False, read_only=True) as queue:
        assert queue.last_index is not None


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ({"name": ""}, "invalid name"),
        ({"name": "../x"}, "invalid name"),
        ({"name": ".hidden"}, "invalid name"),
        ({"name": "a\u202eb"}, "invalid name"),
        ({"name": "x" * 300}, "invalid name"),
        ({"name": "there"}, "a queue of this name exists"),
        ({"name": "there/below"}, "holds no other queue"),
        ({"name": "folder"}, "a directory of others"),
        ({"name": "new", "format": "<script>"}, "format"),
        ({"name": "new", "roll_cycle": "NONE"}, "NONE"),
        ({"name": "new", "format": "quick-queue", "roll_cycle": "DAILY"}, "roll_cycle"),
        ({"name": "new", "time_zone": "../../etc/passwd"}, "zone"),
        ({"name": "new", "epoch_ms": "-1"}, "epoch_ms"),
        ({"name": "new", "block_bytes": "9" * 30}, "block_bytes"),
        ({"name": "new", "source_id": "x"}, "source_id"),
        ({"name": "new", "wire_type": "TEXT"}, "TEXT"),
    ],
)
def test_what_cannot_be_made_is_said_on_the_form(
    root: Path, visit: Visit, form: dict[str, str], word: str
) -> None:
    found = visit.ask("/create", {**form, "time_zone": form.get("time_zone", "")})
    assert (found.status, word in found.alert) == (400, True), found.alert
    assert "<script>" not in found.text.replace('<script src="/static/page.js" defer>', "")
    assert 'action="/create"' in found.text
    assert "\u202e" not in found.text
    if form["name"] == "new":
        assert 'name="name" value="new"' in found.text  # what was written is kept
        assert not (root / "new").exists()


def test_a_form_of_another_site_makes_nothing(root: Path, visit: Visit) -> None:
    form = {"name": "forged"}
    for it in (Visit(visit.port), Visit(visit.port, form_key=visit.form_key)):
        assert "load the page again" in it.ask("/create", form).alert
    across = {"Sec-Fetch-Site": "cross-site"}
    assert "another site" in visit.ask("/create", form, across).alert
    assert not (root / "forged").exists()


@pytest.mark.check
def test_the_token_says_which_queues_may_be_made(tmp_path: Path) -> None:
    root, file, audit = (tmp_path / it for it in ("queues", "tokens", "audit"))
    rights = {
        "reader": ["--read", "*"],
        "maker": ["--read", "*", "--create", "new/*"],
        "blind": ["--create", "*"],
    }
    tokens = {
        name: run_here("token", "add", name, "--tokens", str(file), *given).out.strip()
        for name, given in rights.items()
    }
    with showing(root, "--tokens", file, "--audit", audit) as port:

        def signed_in(name: str) -> Visit:
            visit = Visit(port)
            visit.ask("/sign-in")
            assert visit.ask("/sign-in", {"token": tokens[name]}).status == 303
            visit.ask("/")
            return visit

        reader = signed_in("reader")
        assert "Create a queue" not in reader.ask("/").words
        assert reader.ask("/create").status == 403
        assert reader.ask("/create", {"name": "new/a"}).status == 403
        maker = signed_in("maker")
        assert "Create a queue" in maker.ask("/").words
        refused = maker.ask("/create", {"name": "other"})
        assert (refused.status, "may not create" in refused.alert) == (403, True)
        assert maker.ask("/create", {"name": "new/a"}).headers["location"] == "/queue/new/a"
        blind = signed_in("blind")
        assert "The queue was created." in blind.ask("/create", {"name": "b"}).words
    assert sorted(it.name for it in root.iterdir() if it.name[0] != ".") == ["b", "new"]
    with quire.open(audit, read_only=True) as queue, queue.tailer() as tailer:
        rows = [it.to_dict() for it in tailer]
    changed = [(it["what"], it["who"], it["about"]) for it in rows if "creat" in str(it)]
    assert changed == [
        ("refused", "reader", "create"),  # once, although the form was sent, too
        ("refused", "maker", "create other"),
        ("create", "maker", "new/a"),
        ("create", "blind", "b"),
    ]
