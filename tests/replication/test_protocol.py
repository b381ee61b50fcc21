"""Sources and sinks against a second implementation of the page, docs/replication.md."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import quire
import replication_reference as reference
from event_loops import until
from paths import ROOT
from queues import DAY_MS, START_MS, problems_of
from quire.errors import DivergedError
from quire.replication import Sink, Source
from quire.replication.original import Original
from quire.replication.replica import Replica
from quire.replication.sink_session import SinkSession
from quire.replication.source_session import SourceSession
from replicas import LAYOUT
from replication_reference import (
    SEQUENCE_BITS,
    Batch,
    Cycle,
    Document,
    GroupState,
    History,
    InWork,
    Place,
    ReferenceSink,
    ReferenceSource,
    listening,
)

PAGE = ROOT / "docs" / "replication.md"
FIRST_CYCLE = START_MS // DAY_MS


@pytest.fixture
def layout(queue: quire.JournalQueue) -> dict[str, Any]:
    """How a source that lives describes the queue of the fixtures."""
    found = ReferenceSink()

    async def ask() -> None:
        async with Source(queue) as source:
            await (await found.join(source.address[1])).close()

    asyncio.run(ask())
    shape: dict[str, Any] = found.welcome["layout"]
    return shape


def recorded() -> History:
    """Three cycles: metadata between messages, at a cycle's start and at its end."""
    first = [
        Document(b"one"),
        Document(b"note", is_metadata=True),
        Document(b"other note", is_metadata=True),
        Document(b"two"),
        *(Document(b"%d" % number) for number in range(50)),
        Document(b"last note", is_metadata=True),
    ]
    second = [Document(b"early note", is_metadata=True), Document(b"x" * 30_000)]
    third = [Document(b"three"), Document(b"four")]
    return History(
        [
            Cycle(FIRST_CYCLE, first, is_ended=True),
            Cycle(FIRST_CYCLE + 1, second, is_ended=True),
            Cycle(FIRST_CYCLE + 3, third),
        ]
    )


def source_of(layout: dict[str, Any], history: History | None = None) -> ReferenceSource:
    history = history or recorded()
    messages = history.messages()
    welcome = {
        "version": 1,
        "queue": "0123456789abcdef" * 2,
        "epoch": 1,
        "first": messages[0][0],
        "last": messages[-1][0],
        "layout": layout,
    }
    return ReferenceSource(history, welcome)


async def keep(copy: Path, source: ReferenceSource, **options: Any) -> None:  # noqa: ANN401
    """Run a sink until it has everything."""
    last = source.history.messages()[-1][0]
    async with listening(source) as port, Sink(copy, port=port, **options) as sink:
        await sink.stored(last)


def documents_of(path: Path) -> list[tuple[int, bool, bytes]]:
    found = list[tuple[int, bool, bytes]]()
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        while True:
            with tailer.reading_document(include_metadata=True) as document:
                if not document.is_present:
                    return found
                data = bytes(document.bytes)
                if not (document.is_metadata and (b"index" in data[:12] or b"header" in data[:12])):
                    found.append((document.index, document.is_metadata, data))


def documents_in(history: History) -> list[tuple[int, bool, bytes]]:
    return [
        (place.next, document.is_metadata, document.payload)
        for cycle in history.cycles
        for place, document in zip(history.places(cycle), cycle.documents, strict=False)
    ]


def test_the_reference_knows_the_layout(layout: dict[str, Any]) -> None:
    assert layout == LAYOUT


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_sink_keeps_what_the_reference_serves(
    size: int, tmp_path: Path, layout: dict[str, Any]
) -> None:
    source, copy = source_of(layout), tmp_path / "copy"
    source.batch_documents = size
    asyncio.run(keep(copy, source))
    assert documents_of(copy) == documents_in(source.history)
    assert problems_of(copy) == []
    assert source.started == [None]
    assert source.requested == []
    assert source.acknowledged[-1][1].next == source.history.messages()[-1][0] + 1
    assert {level for *_, level in source.acknowledged} == {0}


def test_synced_batches_are_acknowledged_as_such(tmp_path: Path, layout: dict[str, Any]) -> None:
    source = source_of(layout)
    source.is_ending = False
    last = source.history.messages()[-1][0]

    async def work() -> None:
        async with (
            listening(source) as port,
            Sink(tmp_path / "copy", port=port, acknowledge="synced") as sink,
        ):
            await sink.stored(last)
            await until(lambda: any(it[1].next > last for it in source.acknowledged))

    asyncio.run(work())
    assert {level for *_, level in source.acknowledged} == {1}


def prefixes(history: History) -> Iterator[History]:
    """Yield the history as it was after each document and each end of a cycle."""
    for number, cycle in enumerate(history.cycles):
        before = history.cycles[:number]
        for count in range(1, len(cycle.documents) + 1):
            if 5 < count < len(cycle.documents) - 2:
                continue
            part = Cycle(cycle.number, cycle.documents[:count])
            yield History([*before, part])
        if cycle.is_ended:
            yield History([*before, cycle])


def test_a_sink_goes_on_from_every_place(tmp_path: Path, layout: dict[str, Any]) -> None:
    whole = recorded()
    for number, part in enumerate(prefixes(whole)):
        if not part.messages():
            continue
        copy = tmp_path / f"copy{number}"
        early, late = source_of(layout, part), source_of(layout, whole)
        end = part.cycles[-1]
        places = [*part.places(end)]
        place = places[-1]._replace(is_ended=int(end.is_ended))
        asyncio.run(keep_to(copy, early, place))
        asyncio.run(keep(copy, late))
        assert documents_of(copy) == documents_in(whole)
        assert late.requested == [place]
        assert late.started == [place]


async def keep_to(copy: Path, source: ReferenceSource, place: Place) -> None:
    """Run a sink until it has acknowledged a place."""
    async with listening(source) as port, Sink(copy, port=port, reconnect_s=0.01):
        await until(lambda: any(it[1] == place for it in source.acknowledged))


def test_what_the_sink_has_is_passed_over(tmp_path: Path, layout: dict[str, Any]) -> None:
    source, copy = source_of(layout), tmp_path / "copy"
    history = source.history
    twice = [it for each in history.batches(None, 4) for it in (each, each)]

    def repeated(place: Place | None, size: int) -> Iterator[Batch]:
        del place, size
        yield from twice

    history.batches = repeated  # type: ignore[method-assign]
    asyncio.run(keep(copy, source))
    assert documents_of(copy) == documents_in(history)


@pytest.mark.parametrize("changed", [0, 3, 30, 53])
def test_a_differing_message_is_found(changed: int, tmp_path: Path, layout: dict[str, Any]) -> None:
    whole, copy = recorded(), tmp_path / "copy"
    whole.cycles = whole.cycles[:1]
    documents = list(whole.cycles[0].documents)
    documents[changed] = Document(b"another")
    other = History([Cycle(FIRST_CYCLE, documents, is_ended=True)])
    asyncio.run(keep(copy, source_of(layout, whole)))
    before = documents_of(copy)
    source = source_of(layout, other)

    async def diverge() -> DivergedError:
        async with listening(source) as port:
            sink = Sink(copy, port=port)
            with pytest.raises(DivergedError) as caught:
                async with sink:
                    await sink.run_forever()
            await until(lambda: bool(source.refusals))
            return caught.value

    error = asyncio.run(diverge())
    data = [it for it in documents[:changed] if not it.is_metadata]
    assert error.args[1] == whole.start_of(whole.cycles[0]) + len(data)
    assert source.refusals[0]["code"] == "diverged"
    assert documents_of(copy) == before


def append_all(queue: quire.JournalQueue, clock: quire.ManualClock, history: History) -> None:
    """Append a history as its cycles and documents are."""
    with queue.appender() as appender:
        for cycle in history.cycles:
            clock.advance(cycle.number * DAY_MS - clock.now_ms)
            for document in cycle.documents:
                with appender.writing_document(metadata=document.is_metadata) as writing:
                    writing.write_bytes(document.payload)


def test_a_reference_sink_keeps_what_a_source_serves(
    queue: quire.JournalQueue, clock: quire.ManualClock
) -> None:
    append_all(queue, clock, recorded())
    sink, resumed = ReferenceSink(), ReferenceSink()

    async def work() -> None:
        async with Source(queue) as source:
            port = source.address[1]
            await sink.replicate(port, queue.last_index or 0)
            for cycle in sink.history.cycles:
                for place in sink.history.places(cycle):
                    resumed.batches.clear()
                    resumed.end = place
                    if place.next <= (queue.last_index or 0):
                        await resumed.replicate(port, queue.last_index or 0)
                        kept = sum(len(it.documents) for it in resumed.batches)
                        assert kept == count_after(sink.history, place)

    asyncio.run(work())
    assert documents_in(sink.history) == documents_of(Path(queue.path))
    assert [it.is_ended for it in sink.history.cycles] == [True, True, False]
    assert sink.welcome["first"] == queue.first_index
    assert sink.welcome["last"] == queue.last_index


def count_after(history: History, place: Place) -> int:
    count = 0
    for cycle in history.cycles:
        for each, _ in zip(history.places(cycle), cycle.documents, strict=False):
            count += each[:2] >= place[:2]
    return count


def test_digests_of_both_are_the_same(queue: quire.JournalQueue, clock: quire.ManualClock) -> None:
    append_all(queue, clock, recorded())
    sink = ReferenceSink()

    async def work() -> None:
        async with Source(queue) as source:
            await sink.replicate(source.address[1], queue.last_index or 0)
            peer = await sink.join(source.address[1])
            history = sink.history
            for cycle in history.cycles:
                for place in history.places(cycle):
                    await peer.send(reference.digest_request(place))
                    assert await peer.expect(reference.DIGEST) == (place, history.digest(place))
            nowhere = [
                Place(history.start_of(history.cycles[0]) + 1000),
                Place(history.start_of(history.cycles[0]) + 1, 3),
                Place((FIRST_CYCLE + 2) << SEQUENCE_BITS),
                Place((FIRST_CYCLE - 9) << SEQUENCE_BITS),
            ]
            for place in nowhere:
                await peer.send(reference.digest_request(place))
                assert await peer.expect(reference.DIGEST) == (place, None)
            await peer.close()

    asyncio.run(work())


def vectors() -> dict[str, bytes]:
    """Return the frames of the page's table."""
    section = PAGE.read_text("utf-8").split("### Test vectors")[1].split("\n## ")[0]
    found = dict[str, bytes]()
    for what, codes, text in re.findall(
        r"^\| (.+?) \| `([0-9a-f ]+)`(?:, `(.+)`)? \|$", section, re.MULTILINE
    ):
        found[what] = bytes.fromhex(codes) + text.encode()
    return found


PLACE = Place(0x4D19_0000_0005, 1)
BATCH_OF_TWO = Batch(0x4D19_0000_0005, (Document(b"one"), Document(b"xy", is_metadata=True)))
ZSTD_START = bytes.fromhex("28b52ffd0058")  # the magic number, no flag, a window of 2 MiB
ENCODED = {
    "HEARTBEAT, time 1": reference.heartbeat(1),
    "START, everything": reference.start(None),
    "START, next index 0x4d1900000005, one metadata document": reference.start(PLACE),
    "DIGEST_REQUEST, the same place": reference.digest_request(PLACE),
    "ACKNOWLEDGEMENT, time 1,700,000,000 s, the same place, synced": reference.acknowledgement(
        1_700_000_000_000_000_000, PLACE, is_synced=True
    ),
    "END": reference.frame(reference.END),
    "CYCLES_REQUEST, cycles 19,000 to 19,001": reference.cycles_request(19_000, 19_001),
    "REFUSAL": reference.facts(reference.REFUSAL, code="diverged", reason="no"),
    "REFUSAL of an old epoch": reference.old_epoch("0123456789abcdef" * 2, 3),
    "GREETING": reference.greeting("b", features=["handover"], address="10.0.0.2:7001"),
    "HANDOVER, epoch 2, the same place": reference.handover(2, PLACE),
    "TAKEN_OVER, epoch 2": reference.taken_over(2, "10.0.0.2", 7001),
    "TAILER, next index 0x4d1900000005, version 7": reference.tailer(
        "replicated:risk", (0x4D19_0000_0005, 7)
    ),
    "TAILER, deleted": reference.tailer("replicated:risk", None),
    "GROUPS": reference.groups("billing", "risk"),
    "TAILERS": reference.tailers(**{"replicated:risk": 7}),
    "FILE, `dictionary.quire`": reference.file("dictionary.quire", b"0123abc\n"),
    "GROUP, next index 0x4d1900000005, the message before it in work": reference.group(
        "billing",
        GroupState(
            0, 0x4D19_0000_0005, 0, [], [InWork(0x4D19_0000_0003, 2, 0, 1, 0, 3, 1, [1])]
        ).encode(),
    ),
    "COMPRESSED_BATCH, the same, in a block as it is": reference.compressed_batch(
        1, 33, ZSTD_START + (33 << 3).to_bytes(3, "little") + BATCH_OF_TWO.encode()
    ),
    "BATCH, time 1: the message `one` at 0x4d1900000005, then metadata `xy`": reference.batch(
        1, BATCH_OF_TWO
    ),
}


def test_ranges_of_cycles_hash_as_the_reference_says(tmp_path: Path) -> None:
    clock, sink = quire.ManualClock(START_MS), ReferenceSink()
    path = tmp_path / "queue"
    with quire.open(path, roll_cycle="TEST4_DAILY", block_bytes=1 << 16, clock=clock) as queue:
        for day in range(3):
            queue.appender().write_many([b"a", b"b" * (day + 1)])
            with queue.appender().writing_document(metadata=True) as document:
                document.write("note", day)
            clock.advance(DAY_MS)
        cycles = queue.cycles

        async def work() -> None:
            async with Source(queue) as source:
                port = source.address[1]
                await sink.replicate(port, queue.last_index or 0)
                peer = await sink.join(port)
                for asked in ((cycles[0], cycles[1]), (cycles[1], cycles[1]), (0, 1)):
                    await peer.send(reference.cycles_request(*asked))
                    found = await peer.expect(reference.CYCLES)
                    assert found == (*asked, cycles[0], *sink.history.of_range(*asked))
                await peer.close()

        asyncio.run(work())


def test_many_short_batches_are_acknowledged_bit_by_bit(tmp_path: Path) -> None:
    """Each makes a file at the sink, which is taken for lost where it is silent meanwhile."""
    clock, count = quire.ManualClock(START_MS), 150
    options: dict[str, Any] = {"roll_cycle": "MINUTELY", "block_bytes": 1 << 16, "clock": clock}
    made = cast("Any", quire.open(tmp_path / "source", **options))
    with made as queue, queue.appender() as appender:
        last = 0
        for number in range(count):
            last = appender.write_bytes(b"%d" % number)
            clock.advance(60_000)
        replica = Replica(tmp_path / "copy", {})
        sink = SinkSession(replica, name="b", peer="source", level="stored", now_ns=0)
        source = SourceSession(Original(queue), "b", 0)
        for _ in range(2):
            source.receive(sink.outgoing(), 0)
            sink.receive(source.outgoing(), 0)
        while source.pull(0, 0):
            pass
        steps, has_more = 0, sink.receive_some(source.outgoing(), 0)
        while source.acknowledged is None or source.acknowledged.next <= last:
            steps += 1
            source.receive(sink.outgoing(), 0)
            assert source.acknowledged is not None
            has_more = has_more and sink.receive_some(b"", 0)
        assert (steps, has_more) == (3, False)
        source.close()
        replica.close()


def test_the_vectors_of_the_page() -> None:
    assert vectors() == ENCODED
    for each in ENCODED.values():
        kind, body = each[4], each[5:]
        assert int.from_bytes(each[:4], "little") == len(each) - 4
        reference.decode(kind, body)
