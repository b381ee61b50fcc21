"""The parts of a run: which scenarios each has, and how its results are kept."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from bench import (
    claims,
    contention,
    growth,
    harness,
    idle,
    latency,
    life,
    machine,
    messages,
    older,
    replicated,
    replicated_scenarios,
    scaling,
    scenarios,
    sealed,
    served,
    spark,
    tools,
)
from bench.harness import Measure, Result, Scenario
from bench.life import Described
from bench.scenarios import Operation, Volume

_Part: TypeAlias = Callable[[Sequence[Operation], Volume, Callable[[str], None]], Iterator[Result]]
_FEW_ROUNDS = 5
"""Rounds that count of the parts `serve` and `spark`, which take minutes each."""
_MOST_BYTES_PER_MS = 1_000_000
_SHM = Path("/dev/shm")  # noqa: S108 - the memory file system, not a place for secrets


def places() -> list[Path]:
    """Return a directory in memory, where there is one, and one on a disk."""
    found = [_SHM] if _SHM.is_dir() else []
    disk = Path(tempfile.gettempdir())
    if machine.file_system(disk) == "tmpfs":
        disk = harness.ROOT / "build"
        disk.mkdir(exist_ok=True)
    return [*found, disk]


def run(part: str, volume: Volume, *, quick: bool, say: Callable[[str], None]) -> Result:
    """Measure one part and return what is stored of it."""
    started = dt.datetime.now(dt.UTC)
    wanted = _OPERATIONS[part]
    _, missing = harness.versions(["quire"])  # others may have to be built to know theirs
    if missing:
        raise harness.Failed(f"nothing to compare: {missing['quire']}")
    found, missing = harness.versions(_systems(part))
    for system, reason in missing.items():
        say(f"skipped: {harness.adapter(system).NAME}: {reason}")
    present = [one for one in wanted if one.system in found]
    binaries = _digests(found)
    measured = list(_PARTS[part](present, volume, say))
    if _digests(found) != binaries:
        raise harness.Failed("a measured program was built again meanwhile")
    return {
        "part": part,
        "date": started.isoformat(timespec="seconds"),
        "commit": _commit(),
        "quick": quick,
        "volume": asdict(volume),
        "machine": machine.describe(),
        "versions": {harness.adapter(system).NAME: text for system, text in found.items()},
        "missing": {harness.adapter(system).NAME: text for system, text in missing.items()},
        "binaries": binaries,
        "scenarios": measured,
    }


def _digests(systems: Iterable[str]) -> dict[str, str]:
    """Return what tells one build of a system from another."""
    modules = {system: harness.adapter(system) for system in systems}
    return {
        system: hashlib.sha256(module.binary().read_bytes()).hexdigest()[:12]
        for system, module in modules.items()
        if hasattr(module, "binary")
    }


def _systems(part: str) -> list[str]:
    """Return the systems of a part. Quire is one of each, whichever adapter measures it."""
    return ["quire", *(one.system for one in _OPERATIONS[part])]


def is_of_now(result: Result, volume: Volume) -> bool:
    """Whether a stored part was measured with these programs, and as much."""
    found, _ = harness.versions(_systems(result["part"]))
    as_stored = json.loads(json.dumps(asdict(volume)))
    return bool(result["binaries"] == _digests(found) and result["volume"] == as_stored)


def store(result: Result, directory: Path) -> Path:
    """Write a part's results beside those of the other parts."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{result['part']}.json"
    path.write_text(json.dumps(result, separators=(",", ":")) + "\n", "utf-8")
    return path


def load(directory: Path) -> dict[str, Result]:
    """Read the results of every part that was measured."""
    paths = {part: directory / f"{part}.json" for part in scenarios.PARTS}
    return {
        part: json.loads(path.read_text("utf-8")) for part, path in paths.items() if path.exists()
    }


def _commit() -> str:
    command = ["git", "-c", "safe.directory=*", "describe", "--always", "--dirty"]
    ran = subprocess.run(command, cwd=harness.ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "unknown"


def _scenario(
    scenario: Scenario,
    setting: Callable[[], AbstractContextManager[Measure]],
    operations: Sequence[Operation],
    volume: Volume,
    say: Callable[[str], None],
) -> Result:
    described = scenario.describe()
    say(f"{described['file_system']}, {scenario.size} B: {', '.join(o.key for o in operations)}")
    found = harness.rounds(setting, operations, volume)
    return {**described, "rounds": found}


def _rates(
    part: str,
    setting: Callable[[Scenario], AbstractContextManager[Measure]],
    operations: Sequence[Operation],
    volume: Volume,
    say: Callable[[str], None],
) -> Iterator[Result]:
    for place in places():
        for size in scenarios.SIZES if _is_memory(place) else volume.sizes_on_disk:
            scenario = Scenario(place, size, *volume.of(part, size))
            yield _scenario(scenario, partial(setting, scenario), operations, volume, say)


def _is_memory(place: Path) -> bool:
    return place == _SHM


def _latency(
    operations: Sequence[Operation], volume: Volume, say: Callable[[str], None]
) -> Iterator[Result]:
    for place in places():
        for rate in scenarios.LATENCY_RATES if _is_memory(place) else volume.rates_on_disk:
            scenario = Scenario(place, scenarios.LATENCY_SIZE, *volume.at_rate(rate))
            setting = partial(latency.tailing_live, scenario, rate)
            yield {"rate": rate, **_scenario(scenario, setting, operations, volume, say)}


def _contention(
    sizes: Sequence[int],
    counts: Sequence[int],
    operations: Sequence[Operation],
    volume: Volume,
    say: Callable[[str], None],
) -> Iterator[Result]:
    place = places()[0]
    for size in sizes:
        for writers in counts:
            if writers > volume.most_writers:
                continue
            # Room for what may be written in the time; nobody appends so much.
            most = volume.contention_ms * _MOST_BYTES_PER_MS // size
            scenario = Scenario(place, size, most, volume.contention_warm_up // writers)
            setting = partial(contention.contending, scenario, writers, volume.contention_ms)
            say(f"{writers} writers")
            yield {"writers": writers, **_scenario(scenario, setting, operations, volume, say)}


def _growth(
    operations: Sequence[Operation], volume: Volume, say: Callable[[str], None]
) -> Iterator[Result]:
    place = places()[0]
    for kind in scenarios.GROWTH:
        wanted = [one for one in scenarios.aged(kind) if one in operations]
        say(f"growth in {kind}")
        found = harness.rounds(partial(growth.aging, place, kind), wanted, volume)
        yield {**growth.describe(place, kind), "rounds": found}


def _by_kind(
    operations_of: Mapping[str, Sequence[Operation]],
    settings: Callable[[Volume], Iterable[Described]],
    pairs: Callable[[Volume], int] | None = None,
) -> _Part:
    """
    Measure a part whose scenarios are of several kinds, each with operations of its own.

    *pairs* says how many rounds count, if these are fewer than elsewhere.
    """

    def measure(
        operations: Sequence[Operation], volume: Volume, say: Callable[[str], None]
    ) -> Iterator[Result]:
        if pairs:
            volume = _fewer(volume, pairs(volume))
        for what, scenario, setting in settings(volume):
            wanted = [it for it in operations_of[what["kind"]] if it in operations]
            yield {**what, **_scenario(scenario, setting, wanted, volume, say)}

    return measure


def _fewer(volume: Volume, pairs: int) -> Volume:
    """Return a volume with fewer rounds, none of which is measured again."""
    return replace(
        volume,
        pairs=min(volume.pairs, pairs),
        retries=0,
        patience_s=min(volume.patience_s, 1),
    )


def _peers(
    operations: Sequence[Operation], volume: Volume, say: Callable[[str], None]
) -> Iterator[Result]:
    """Give each system as many messages as it can do in about a second."""
    appending = [one for one in operations if one in scenarios.PEERS_APPEND]
    streaming = [one for one in operations if one in scenarios.PEERS_STREAM]
    for place in places():
        yield {"kind": "append", **_peer_scenario(place, appending, volume, say)}
    yield {"kind": "stream", **_peer_scenario(places()[0], streaming, volume, say)}


def _peer_scenario(
    place: Path, operations: Sequence[Operation], volume: Volume, say: Callable[[str], None]
) -> Result:
    base = Scenario(place, scenarios.PEER_SIZE, *volume.peer)

    def scaled(one: Operation) -> Result:
        times, warm_up_times = scenarios.PEER_SCALE.get(one.key, (1, 1))
        counts = base.count * times, base.warm_up * warm_up_times
        scenario = replace(base, count=counts[0], warm_up=counts[1])
        chosen = scenario.streaming if one.name == "stream" else scenario.appending
        with chosen() as measure:
            return measure(one)

    return _scenario(base, lambda: nullcontext(scaled), operations, volume, say)


_OPERATIONS: dict[str, Sequence[Operation]] = {
    "append": scenarios.APPEND,
    "tail": scenarios.TAIL,
    "latency": scenarios.LATENCY,
    "contention": scenarios.CONTENTION,
    "buffering": scenarios.BUFFERING,
    "growth": [one for kind in scenarios.GROWTH for one in scenarios.aged(kind)],
    "scaling": [one for wanted in scenarios.SCALING.values() for one in wanted],
    "messages": [one for wanted in scenarios.MESSAGES.values() for one in wanted],
    "older": [one for wanted in scenarios.OLDER.values() for one in wanted],
    "tools": [one for wanted in scenarios.TOOLS.values() for one in wanted],
    "life": [one for wanted in scenarios.LIFE.values() for one in wanted],
    "idle": [one for wanted in scenarios.IDLE.values() for one in wanted],
    "replication": [one for wanted in replicated_scenarios.REPLICATION.values() for one in wanted],
    "sealed": [one for wanted in scenarios.SEALED.values() for one in wanted],
    "serve": [one for wanted in scenarios.SERVED.values() for one in wanted],
    "claims": [one for wanted in scenarios.CLAIMS.values() for one in wanted],
    "spark": [one for wanted in scenarios.SPARK.values() for one in wanted],
    "peers": (*scenarios.PEERS_APPEND, *scenarios.PEERS_STREAM),
}
_PARTS: dict[str, _Part] = {
    "append": partial(_rates, "append", Scenario.appending),
    "tail": partial(_rates, "tail", Scenario.tailing),
    "latency": _latency,
    "contention": partial(_contention, [scenarios.CONTENTION_SIZE], scenarios.WRITERS),
    "buffering": partial(_contention, scenarios.BUFFERING_SIZES, scenarios.BUFFERING_WRITERS),
    "growth": _growth,
    "scaling": _by_kind(
        scenarios.SCALING,
        lambda volume: scaling.settings(places()[0], volume),
        lambda volume: volume.scaling.pairs,
    ),
    "messages": _by_kind(scenarios.MESSAGES, lambda volume: messages.settings(places()[0], volume)),
    "older": _by_kind(scenarios.OLDER, lambda volume: older.settings(places()[-1], volume)),
    "tools": _by_kind(scenarios.TOOLS, lambda volume: tools.settings(places()[0], volume)),
    "life": _by_kind(scenarios.LIFE, lambda volume: life.settings(places(), volume)),
    "idle": _by_kind(scenarios.IDLE, lambda volume: idle.settings(places(), volume)),
    "replication": _by_kind(
        replicated_scenarios.REPLICATION,
        lambda volume: replicated.settings(places(), volume),
        lambda volume: volume.replication.pairs,
    ),
    "sealed": _by_kind(scenarios.SEALED, lambda volume: sealed.settings(places(), volume)),
    "serve": _by_kind(
        scenarios.SERVED,
        lambda volume: served.settings(places(), volume),
        lambda _: _FEW_ROUNDS,
    ),
    "claims": _by_kind(
        scenarios.CLAIMS,
        lambda volume: claims.settings(places()[0], volume),
        lambda volume: volume.claims.pairs,
    ),
    "spark": _by_kind(
        scenarios.SPARK,
        lambda volume: spark.settings(places()[-1], volume),
        lambda _: _FEW_ROUNDS,
    ),
    "peers": _peers,
}
