"""Queues written into several, and several into one: nothing lost, nothing moved out of order."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quire
import small_disk
from cli_runs import Cli, run
from older_queues import fill
from queues import DAY_MS, START_MS, snapshot
from quire.maintenance import splitting

DAYS = [[b"%d.%d" % (day, number) for number in range(10)] for day in range(3)]


def payloads(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [excerpt.data for excerpt in tailer]


@pytest.fixture
def orders(path: Path) -> Path:
    """Three days of ten orders, whose times rise by a quarter of an hour."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock, source_id=3) as queue,
        queue.appender() as appender,
    ):
        for day in range(3):
            clock.now_ms = START_MS + day * DAY_MS
            for number in range(10):
                time = START_MS + day * DAY_MS + number * 900_000
                symbol = ("EURUSD", "../up", "a/b")[number % 3]
                appender.write_map({"n": 10 * day + number, "symbol": symbol, "time": time})
    return path


def number(excerpt: Any) -> int:  # noqa: ANN401 - of any format
    found: int = excerpt.to_dict()["n"]
    return found


def test_parts_together_are_the_queue(orders: Path, tmp_path: Path) -> None:
    before = snapshot(orders)
    counts = quire.maintenance.split_queue(
        orders, tmp_path / "parts", lambda it: str(number(it) % 4)
    )
    assert counts == {"0": 8, "1": 8, "2": 7, "3": 7}
    assert quire.verify(tmp_path / "parts").findings == ()
    assert snapshot(orders) == before
    parts = [tmp_path / "parts" / name for name in counts]
    with quire.open(parts[0], read_only=True) as part:
        assert (part.source_id, len(part.cycles)) == (3, 3)
    assert quire.maintenance.merge_queues(parts, tmp_path / "whole", number) == 30
    assert payloads(tmp_path / "whole") == payloads(orders)
    with quire.open(tmp_path / "whole") as whole, quire.open(orders) as source:
        assert (whole.cycles, whole.last_index) == (source.cycles, source.last_index)


def test_names_of_parts_stay_inside_the_destination(orders: Path, tmp_path: Path) -> None:
    counts = quire.maintenance.split_queue(
        orders, tmp_path / "out/parts", lambda it: it.to_dict()["symbol"]
    )
    assert counts == {"EURUSD": 12, "../up": 9, "a/b": 9}
    assert sorted(it.name for it in (tmp_path / "out").iterdir()) == ["parts"]
    names = sorted(it.name for it in (tmp_path / "out/parts").iterdir())
    assert names == ["%2E.%2Fup", "EURUSD", "a%2Fb"]


def test_messages_without_a_name_are_left_out(orders: Path, tmp_path: Path) -> None:
    quire.maintenance.split_queue(
        orders, tmp_path / "few", lambda it: "few" if number(it) < 3 else None
    )
    assert payloads(tmp_path / "few/few") == payloads(orders)[:3]


def test_equal_keys_keep_the_order_of_the_sources(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with quire.open(tmp_path / name) as queue, queue.appender() as appender:
            for n in (1, 1, 2):
                appender.write_map({"n": n, "from": name})
    quire.maintenance.merge_queues([tmp_path / "b", tmp_path / "a"], tmp_path / "both", number)
    with quire.open(tmp_path / "both") as both, both.tailer() as tailer:
        found = [it.to_dict() for it in tailer]
    assert [it["from"] for it in found] == ["b", "b", "a", "a", "b", "a"]


def test_a_run_that_failed_leaves_no_destination_and_can_be_repeated(
    orders: Path, tmp_path: Path
) -> None:
    def failing(excerpt: Any) -> str:  # noqa: ANN401 - of any format
        return "x" if number(excerpt) < 20 else 1 / 0  # type: ignore[return-value]

    with pytest.raises(ZeroDivisionError):
        quire.maintenance.split_queue(orders, tmp_path / "parts", failing)
    assert not (tmp_path / "parts").exists()
    assert quire.maintenance.split_queue(orders, tmp_path / "parts", lambda _: "all") == {"all": 30}
    assert sorted(it.name for it in tmp_path.iterdir()) == ["parts", "queue"]


def test_blocks_are_as_large_as_messages_need(tmp_path: Path) -> None:
    long = b"x" * (17 << 20)  # more than the default block holds
    with (
        quire.open(tmp_path / "long", block_bytes=128 << 20) as queue,
        queue.appender() as appender,
    ):
        for message in (b"before", long, b"after"):
            appender.write_bytes(message)
    counts = quire.maintenance.split_queue(tmp_path / "long", tmp_path / "parts", lambda _: "all")
    assert counts == {"all": 3}
    part = tmp_path / "parts" / "all"
    assert quire.maintenance.merge_queues([part], tmp_path / "whole", lambda _: 0) == 3
    assert payloads(part) == payloads(tmp_path / "whole") == [b"before", long, b"after"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_to_the_destination_stays(orders: Path, tmp_path: Path, is_there: bool) -> None:  # noqa: FBT001
    target, link = tmp_path / "disk" / "target", tmp_path / "link"
    (target if is_there else target.parent).mkdir(parents=True)
    link.symlink_to(target)
    quire.maintenance.split_queue(orders, link, lambda _: "all")
    assert link.is_symlink()
    assert payloads(target / "all") == payloads(orders)
    assert sorted(it.name for it in target.parent.iterdir()) == ["target"]


def test_a_mount_point_is_refused_before_anything_is_written(orders: Path, tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        with pytest.raises(ValueError, match="a mount point: give a directory in it dest="):
            quire.copy_queue(orders, disk)
        return len([*tmp_path.glob(".disk*")])

    assert small_disk.on_small_disk(tmp_path / "disk", 512 * small_disk.KIB, work) == 0


def test_what_comes_to_the_destination_meanwhile_stays(orders: Path, tmp_path: Path) -> None:
    dest = tmp_path / "parts"

    def key(_: object) -> str:
        dest.mkdir(exist_ok=True)
        (dest / "notes").write_bytes(b"mine")
        return "all"

    with pytest.raises(OSError, match=r"result is complete: .*\.parts\.splitting"):
        quire.maintenance.split_queue(orders, dest, key)
    assert [it.name for it in dest.iterdir()] == ["notes"]
    assert payloads(tmp_path / ".parts.splitting" / "all") == payloads(orders)


def test_older_formats_are_split_and_merged(tmp_path: Path) -> None:
    with (
        quire.vanilla.VanillaQueue(tmp_path / "v") as vanilla,
        vanilla.appender() as writer,
        quire.quick_queue.QuickQueue(tmp_path / "q") as quick,
        quick.appender() as other,
    ):
        writer.write_many([b"1", b"3"])
        other.write_many([b"2", b"4"])
    merged = quire.maintenance.merge_queues(
        [tmp_path / "v", tmp_path / "q"], tmp_path / "m", lambda it: int(it.data)
    )
    assert (merged, payloads(tmp_path / "m")) == (4, [b"1", b"2", b"3", b"4"])
    assert quire.maintenance.split_queue(
        tmp_path / "q", tmp_path / "s", lambda it: it.data.decode()
    ) == {
        "2": 1,
        "4": 1,
    }


def test_nothing_is_merged_into_an_empty_queue(path: Path, tmp_path: Path) -> None:
    with quire.open(path, roll_cycle="FAST_HOURLY"):
        pass
    assert quire.maintenance.merge_queues([path], tmp_path / "m", number) == 0
    with quire.open(tmp_path / "m", read_only=True) as merged:
        assert (merged.entry_count, merged.roll_cycle.name) == (0, "FAST_HOURLY")


def test_long_names_have_directories_of_their_own(tmp_path: Path) -> None:
    names = ["x" * 200, "x" * 299 + "1", "x" * 299 + "2", "\u20ac" * 300]
    with quire.open(tmp_path / "long") as queue, queue.appender() as appender:
        for name in names:
            appender.write_text(name)
    parts = tmp_path / "parts"
    found = quire.maintenance.split_queue(tmp_path / "long", parts, lambda it: it.to_text())
    assert found == dict.fromkeys(names, 1)
    directories = sorted(it.name for it in parts.iterdir())
    assert len(directories) == len(names)
    assert max(map(len, directories)) == 200
    texts = {quire.open(it, create=False).tailer().read_text() for it in parts.iterdir()}
    assert texts == {*names}


def test_what_cannot_be_done(orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "_MOST", 5)
    with quire.open(tmp_path / "many") as queue, queue.appender() as appender:
        appender.write_many(b"%d" % it for it in range(6))
    with pytest.raises(
        quire.errors.UnsupportedError, match="too many queues to split into: most=5"
    ):
        quire.maintenance.split_queue(
            tmp_path / "many", tmp_path / "parts", lambda it: it.data.decode()
        )
    with pytest.raises(TypeError, match="invalid key: expected a function"):
        quire.maintenance.split_queue(orders, tmp_path / "parts", "cycle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="overlaps the source"):
        quire.maintenance.merge_queues([orders], orders / "x", number)
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize(
    ("options", "counts"),
    [
        (("--by", "cycle"), {"20240115F": 10, "20240116F": 10, "20240117F": 10}),
        (
            ("--by", "time", "--every", "1d", "--time-field", "time"),
            {"20240115T000000Z": 10, "20240116T000000Z": 10, "20240117T000000Z": 10},
        ),
        (
            ("--by", "time", "--every", "1 day"),
            {"20240115T000000Z": 10, "20240116T000000Z": 10, "20240117T000000Z": 10},
        ),
        (("--where", "n >= 20 and symbol = 'EURUSD'"), {"other": 26, "matching": 4}),
        (("--by", "symbol"), {"EURUSD": 12, "../up": 9, "a/b": 9}),
    ],
)
def test_the_verb_splits(
    cli: Cli, orders: Path, tmp_path: Path, options: tuple[str, ...], counts: dict[str, int]
) -> None:
    lines = cli.ok("split", orders, tmp_path / "parts", *options, "--format", "csv").lines
    assert lines == ["name,messages", *(f"{name},{n}" for name, n in counts.items())]


def test_the_verb_splits_by_topic(cli: Cli, path: Path, tmp_path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for key in ("LDN", "NYC", "LDN"):
            appender.topic(key).write_text("hello")
    lines = cli.ok("split", path, tmp_path / "parts", "--by", "topic", "--format", "jsonl").lines
    assert lines == ['{"name": "LDN", "messages": 2}', '{"name": "NYC", "messages": 1}']


def test_the_verb_merges(cli: Cli, orders: Path, tmp_path: Path) -> None:
    cli.ok("split", orders, tmp_path / "parts", "--by", "symbol")
    parts = sorted((tmp_path / "parts").iterdir())
    assert cli.ok("merge", *parts, tmp_path / "m", "--time-field", "time").out == "messages=30\n"
    assert payloads(tmp_path / "m") == payloads(orders)
    cli.ok("merge", *parts, tmp_path / "n", "--by", "n", "--roll-cycle", "FAST_HOURLY")
    assert payloads(tmp_path / "n") == payloads(orders)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("split", "Q", "D"), (2, "give one of --by and --where")),
        (("split", "Q", "D", "--by", "time"), (2, "--by time goes with --every")),
        (("split", "Q", "D", "--by", "time", "--every", "soon"), (2, "is not a duration")),
        (("split", "Q", "D", "--by", "time", "--every", "500 ms"), (2, "of whole seconds")),
        (("split", "Q", "D", "--where", "n >"), (2, "where='n >'")),
        (("split", "Q", "D", "--by", "price"), (1, "a message lacks the field: field=price")),
        (("split", "D", "E", "--by", "cycle"), (1, "no such directory")),
        (("split", "Q", "Q", "--by", "cycle"), (2, "overlaps the source")),
        (("merge", "Q", "D"), (2, "give one of --by and --time-field")),
        (("merge", "Q", "D", "--by", "price"), (1, "a message lacks the field: field=price")),
        (("merge", "Q", "D", "--by", "n", "--roll-cycle", "NEVER"), (2, "NEVER")),
    ],
)
def test_wrong_uses_are_one_line(
    cli: Cli, orders: Path, tmp_path: Path, arguments: tuple[str, ...], expected: tuple[int, str]
) -> None:
    places = {"Q": orders, "D": tmp_path / "dest", "E": tmp_path / "other"}
    ran = cli(*(places.get(it, it) for it in arguments))
    assert (ran.code, ran.err.count("\n"), ran.raw) == (expected[0], 1, b"")
    assert expected[1] in ran.err
    assert not (tmp_path / "dest").exists()


def test_a_merge_fails_at_a_later_message(cli: Cli, path: Path, tmp_path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_map({"n": 1})
        appender.write_map({"other": 2})
    for sources in ([path], [path, path]):
        ran = cli("merge", *sources, tmp_path / "dest", "--by", "n")
        assert (ran.code, ran.err.count("\n")) == (1, 1)
        assert "a message lacks the field: field=n" in ran.err


def test_as_processes(orders: Path, tmp_path: Path) -> None:
    ran = run("split", orders, tmp_path / "parts", "--by", "cycle")
    assert (ran.code, ran.err) == (0, "")
    parts = sorted((tmp_path / "parts").iterdir())
    ran = run("merge", *parts, tmp_path / "m", "--by", "n")
    assert (ran.code, ran.out, ran.err) == (0, "messages=30\n", "")


def run_beside(orders: Path, tmp_path: Path, way: str, then: Callable[[], object]) -> list[bytes]:
    """Split or merge *orders*, and call *then* once, at the second message; return the result."""
    seen: list[int] = []

    def key(excerpt: Any) -> str:  # noqa: ANN401 - of any format
        seen.append(excerpt.index)
        if len(seen) == 2:
            then()
        return f"{excerpt.index:x}" if way == "merge" else "part"

    if way == "merge":
        quire.maintenance.merge_queues([orders], tmp_path / "result", key)
        return payloads(tmp_path / "result")
    quire.maintenance.split_queue(orders, tmp_path / "result", key)
    return payloads(tmp_path / "result/part")


@pytest.mark.parametrize("way", ["merge", "split"])
def test_messages_that_are_appended_meanwhile_come_at_the_end(
    orders: Path, tmp_path: Path, way: str
) -> None:
    def append() -> None:
        clock = quire.ManualClock(START_MS + 2 * DAY_MS)
        with quire.open(orders, clock=clock) as queue:
            queue.appender().write_many([b"late", b"later"])

    before = payloads(orders)
    result = run_beside(orders, tmp_path, way, append)
    assert result == payloads(orders) == [*before, b"late", b"later"]


@pytest.mark.parametrize("way", ["merge", "split"])
def test_cycles_that_are_removed_meanwhile_are_named(
    orders: Path, tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = payloads(orders)
    first, second, _ = sorted(orders.glob("*.cq4"))

    def remove() -> None:
        first.unlink()  # it is open, and read to its end
        second.unlink()

    assert run_beside(orders, tmp_path, way, remove) == before[:10] + before[20:]
    assert "messages were deleted before they were read" in caplog.text


@pytest.mark.parametrize("way", ["merge", "split"])
def test_cycles_of_a_vanilla_chronicle_that_are_removed_meanwhile_are_named(
    path: Path, tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(path, "vanilla", DAYS)
    before = payloads(path)
    days = sorted(it for it in path.iterdir() if it.is_dir())

    def remove() -> None:
        for day in days[:2]:  # the first is open, and read to its end
            shutil.rmtree(day)

    assert run_beside(path, tmp_path, way, remove) == before[:10] + before[20:]
    assert "messages were deleted before they were read" in caplog.text


RESULTS: dict[str, Callable[[Path, str | Path], object]] = {
    "split": lambda path, dest: quire.maintenance.split_queue(path, dest, str),
    "merge": lambda path, dest: quire.maintenance.merge_queues([path], dest, lambda it: it.index),
    "copy": quire.copy_queue,
    "convert": lambda path, dest: quire.convert(path, dest, into="vanilla"),
    "salvage": quire.salvage,
    "replay": quire.replay,
    "prune": lambda path, dest: quire.prune(path, max_cycles=1, action="move", dest=dest),
}


@pytest.mark.parametrize("way", RESULTS)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_result_at_a_url_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    kind: type[str | Path],
) -> None:
    monkeypatch.chdir(tmp_path)
    with quire.open("source", block_bytes=2**16) as queue, queue.appender() as appender:
        appender.write_text("a")

    with pytest.raises(quire.errors.UnsupportedError, match="a URL"):
        RESULTS[way](tmp_path / "source", kind("quire://127.0.0.1:1/dest"))

    assert [it.name for it in tmp_path.iterdir()] == ["source"]


def test_an_empty_name_and_one_of_a_zero_byte_are_different_parts(tmp_path: Path) -> None:
    with quire.open(tmp_path / "in", block_bytes=2**16) as queue, queue.appender() as appender:
        appender.write_many([b"a", b"b"])
    names = {b"a": "", b"b": "\0"}
    quire.maintenance.split_queue(tmp_path / "in", tmp_path / "out", lambda it: names[it.data])

    found = {}
    for part in (tmp_path / "out").iterdir():
        with quire.open(part) as queue, queue.tailer() as tailer:
            found[part.name] = [*tailer.payloads()]
    assert found == {"%": [b"a"], "%00": [b"b"]}
