"""Errors as clients see them: none names the server's own directories."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import redis
from pyarrow import flight

import quire
from browsing import Visit, showing
from flown import client_of, flying, path_of, ticket
from quire.errors import MovedError, RefusedError
from quire.server.errors_for_clients import ErrorsForClients
from served import command, connected, serving, talk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with a queue that cannot be opened, and one that cannot be appended to."""
    found = tmp_path / "kept here" / "queues"
    with quire.open(found / "orders"):
        pass
    os.link(found / "orders" / "metadata.cq4t", tmp_path / "another name")
    with quire.open(found / "damaged") as queue:
        queue.appender().write_text("hello")
        file = Path(queue.current_file)
    with file.open("r+b") as damaged:
        damaged.write(b"\xff" * 4096)
    return found


def assert_named(text: str, topic: str) -> None:
    """Check that a text names a queue, and nothing above the served directory."""
    assert topic in text
    assert "kept here" not in text


def test_clients_of_redis_see_names_alone(root: Path) -> None:
    with serving(root) as (port, _), connected(port) as client:
        for words in ("XLEN", "QUIRE.INFO"):
            with pytest.raises(redis.ResponseError) as refused:
                client.execute_command(words, "orders")
            assert_named(str(refused.value), "path=orders")
        together = talk(port, command("XADD", "damaged", "*", "n", "1") * 3).splitlines()
        assert len(together) == 3
        for each in together:
            assert each.startswith(b"-")
            assert_named(each.decode(), "damaged/")


def test_clients_of_flight_see_names_alone(root: Path) -> None:
    with flying(root) as ((address,), _), client_of(address) as client:
        calls: tuple[Callable[[], object], ...] = (
            lambda: client.get_flight_info(path_of("orders")),
            lambda: client.do_get(ticket(queue="orders")).read_all(),
            lambda: client.get_schema(path_of("orders")),  # raises what is none of Flight's
        )
        for ask in calls:
            with pytest.raises((flight.FlightError, pa.ArrowException)) as refused:
                ask()
            assert_named(str(refused.value), "path=orders")
            assert '"/' not in str(refused.value)  # nor where the program is


def test_visitors_of_the_page_see_names_alone(root: Path) -> None:
    with showing(root) as port:
        visit = Visit(port)
        for place in ("/queue/orders", "/"):
            assert_named(visit.ask(place).words, "path=orders")
        assert_named(visit.ask("/create").text, "name")
        refused = visit.ask("/create", {"name": "orders"})
        assert refused.status == 400
        assert_named(refused.words, "path=orders")


def test_only_the_served_directory_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    errors = ErrorsForClients(tmp_path / "link")
    for place in ("real", "link"):
        path = tmp_path / place
        assert errors.text(f"path={path}/a/b file='{path}'") == "path=a/b file='.'"
        assert errors.text(f"{path}") == "."
        for other in (f"{path}2/a", f"/mnt{path}/a"):
            assert errors.text(other) == other
    assert ErrorsForClients(Path("/")).text("path=/srv/q") == "path=/srv/q"


def test_an_error_of_the_system_quotes_a_path() -> None:
    errors = ErrorsForClients(Path("/srv/caf\N{LATIN SMALL LETTER E WITH ACUTE}\x01"))
    error = FileNotFoundError(2, "No such file", f"{'/srv/café'}\x01/q/metadata.cq4t")
    assert errors.text(error) == "[Errno 2] No such file: 'q/metadata.cq4t'"


def test_a_refusal_that_sends_elsewhere_stays_one() -> None:
    moved = MovedError("elsewhere")
    errors = ErrorsForClients(Path("/srv"))
    assert errors.refusal(moved) is moved
    assert str(errors.refusal(RefusedError("path=/srv/q"))) == "path=q"
