"""The page, and what else a queue can meet while it is looked at."""

from __future__ import annotations

import asyncio
import http.client
import shutil
import signal
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

import quire
from browsing import Visit, showing
from cli_runs import started
from quire.replication import Sink, Source
from quire.server import Server

_DAY_MS = 86_400_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "queues"
    with quire.open(root / "other") as queue:
        queue.appender().write_text("hello")
    return root


@pytest.fixture
def visit(root: Path) -> Generator[Visit]:
    with showing(root) as port:
        yield Visit(port)


def test_a_replica_is_shown_with_its_role_and_takes_no_message(root: Path) -> None:
    async def replicate() -> None:
        with quire.open(root / "own") as queue:
            last = queue.appender().write_text("hello")
            async with (
                Source(queue) as source,
                Sink(root / "copy", port=source.address[1]) as sink,
            ):
                await sink.stored(last)

    asyncio.run(replicate())
    with showing(root) as port:
        visit = Visit(port)
        copy = visit.ask("/queue/copy").words
        assert "This queue is a sink, in epoch " in copy
        assert "Role, epoch" in copy
        assert "This queue is the source, in epoch " in visit.ask("/queue/own").words
        visit.ask("/sign-in")
        refused = visit.ask("/append/copy", {"kind": "text", "message": "a"})
        assert "replication sink" in refused.alert


def test_a_queue_that_is_deleted_or_damaged_is_an_error_on_its_page_alone(
    root: Path, visit: Visit
) -> None:
    for name in ("gone", "damaged"):
        with quire.open(root / name) as queue:
            queue.appender().write_text("hello")
            file = Path(queue.current_file)
        assert visit.ask(f"/queue/{name}").status == 200
    with file.open("r+b") as damaged:
        damaged.write(b"\xff" * 4096)
    shutil.rmtree(root / "gone")
    assert "no such queue" in visit.ask("/queue/gone").alert
    assert visit.ask("/queue/damaged").status in {200, 500}
    assert visit.ask("/messages/damaged").status in {200, 500}
    assert visit.ask("/queue/other").status == 200
    assert "other 1 " in visit.ask("/").words


def test_lists_leave_room_for_queues_that_clients_use(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        quire.open(root / f"q{number}").close()

    async def look() -> None:
        async with Server(root, host=None, web=("127.0.0.1", 0)) as server:
            queues = server.context.queues
            monkeypatch.setattr(queues, "_most", 6)
            visit = Visit(server.web_address[1])
            for address in ("/", "/queue/other"):
                words = (await asyncio.to_thread(visit.ask, address)).words
                assert len(queues.opened) == 3
                assert ("not opened for this list" in words) == (address == "/")
            assert (await asyncio.to_thread(visit.ask, "/queue/q5")).status == 200
            assert len(queues.opened) == 4

    asyncio.run(look())


def test_no_link_is_followed(root: Path, tmp_path: Path) -> None:
    with quire.open(tmp_path / "outside" / "orders") as queue:
        queue.appender().write_text("secret")
    (root / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)
    (root / "queue-linked").symlink_to(tmp_path / "outside" / "orders", target_is_directory=True)
    with showing(root) as port:
        visit = Visit(port)
        assert "linked" not in visit.ask("/").words
        for name in ("linked/orders", "queue-linked"):
            assert "no such queue" in visit.ask(f"/messages/{name}").alert


@pytest.mark.check
def test_cycles_that_retention_removes_are_not_counted(root: Path) -> None:
    clock = quire.ManualClock(1_705_314_600_000)
    with quire.open(root / "days", clock=clock) as queue, queue.appender() as appender:
        for number in range(3):
            appender.write_many([b"%d" % number] * 10)
            clock.advance(_DAY_MS)
        with showing(root) as port:
            visit = Visit(port)
            assert "days 30 " in visit.ask("/").words
            assert "3 of 3 cycles" in visit.ask("/queue/days").words
            assert quire.prune(queue, max_cycles=2).removed
            assert "2 of 2 cycles" in visit.ask("/queue/days").words


def test_sigterm_ends_what_is_kept_up_to_date(root: Path) -> None:
    with started("serve", root, "--web", "127.0.0.1:0") as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(b":")[2])
        connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(2)]
        for connection, place in zip(connections, ("/live", "/live/other"), strict=True):
            connection.request("GET", place)
            answer = connection.getresponse()
            assert answer.readline() == b"retry: 5000\n"
            answer.readline()
            assert answer.readline().startswith(b"event: ")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, b""), errors
        for connection in connections:
            connection.close()


@pytest.mark.check
def test_a_writer_that_holds_the_lock_holds_back_the_form_alone(root: Path, visit: Visit) -> None:
    visit.ask("/queue/other")
    with quire.open(root / "other") as queue, queue.appender() as appender:
        with appender.writing_document() as document:
            document.write("n", 1)
            answers = list[int]()
            form = {"kind": "text", "message": "waits"}
            waiting = threading.Thread(
                target=lambda: answers.append(visit.ask("/append/other", form).status)
            )
            waiting.start()
            assert Visit(visit.port).ask("/messages/other").status == 200
            assert Visit(visit.port).ask("/").status == 200
        waiting.join(60)
        assert answers == [303]
