"""Makes the golden files of what Java answers: `python tests/support/java_golden.py [NAME …]`."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Callable

from java_peer import JavaPeer
from paths import GOLDEN

LONGEST_IN_FULL = 4096
OTHER_HISTORY = "5.26ea7"  # its histories end with the name of the service

HOUR = 3_600_000_000_000
MILLISECOND = 1_000_000


def running_minimum() -> str:
    """Pairs of (start, end), and what Java's class, last seen in 5.23, makes of them."""
    peer = JavaPeer("5.23.37")
    cases: list[dict[str, object]] = []
    for name, (actual_minimum, drift, pairs) in _clock_cases().items():
        lines = "".join(f"{start} {end}\n" for start, end in pairs)
        answers = peer.run_with_input(
            "running-minimum", lines, actual_minimum=actual_minimum, drift=drift
        )
        rows = [[start, end, int(one)] for (start, end), one in zip(pairs, answers, strict=True)]
        cases.append(
            {"name": name, "actual_minimum": actual_minimum, "drift": drift, "samples": rows}
        )
    return _lines_of(cases)


def _clock_cases() -> dict[str, tuple[int, int, list[tuple[int, int]]]]:
    return {
        "an hour apart": (0, 100_000, _between_clocks(offset=HOUR, ppm=0)),
        "an hour apart and 50 ppm faster": (1_000, 20_000, _between_clocks(offset=HOUR, ppm=50)),
        "50 ppm slower": (1_000, 20_000, _between_clocks(offset=-HOUR, ppm=-50)),
        "more drift than is made up for": (0, 100_000, _between_clocks(offset=0, ppm=200)),
        "starts out of order": (0, 100_000, _between_clocks(offset=7, ppm=0)[::-1]),
        "negative starts": (5, 100_000, [(-HOUR, 0), (-HOUR + 250_000, 9), (-1, -2), (0, 0)]),
        "a step just short of the drift": (0, 100, [(0, 5), (99, 105), (100, 105), (299, 399)]),
        "overflow": (0, 100, [(2**63 - 1, 2**63 - 1), (-(2**63), -1), (2**63 - 50, 5), (0, 1)]),
    }


def _between_clocks(*, offset: int, ppm: int, count: int = 120) -> list[tuple[int, int]]:
    """One start about each millisecond, and latencies with a long tail above a microsecond."""
    dice = random.Random(offset ^ ppm)  # noqa: S311 - the same pairs each time
    pairs: list[tuple[int, int]] = []
    start = HOUR
    for _ in range(count):
        start += dice.randrange(2 * MILLISECOND)
        latency = 1_000 + int(dice.expovariate(1 / 3_000))
        end = start + latency
        pairs.append((start, end + offset + end * ppm // 1_000_000))
    return pairs


def conversions() -> str:
    """Every wire code read as every declared type: see tests/golden/wire/README.md."""
    return _lines_of([json.loads(line) for line in JavaPeer().run("conversions")])


def probes() -> str:
    """What the library writes for every scalar and shape: see tests/golden/wire/README.md."""
    rows = [_short(json.loads(line)) for line in JavaPeer().run("probes")]
    written = {row["name"]: row["bytes"] for row in rows if "bytes" in row}
    for line in JavaPeer(OTHER_HISTORY).run("probes", of="history"):
        row = json.loads(line)
        if row["bytes"] != written[row["name"]]:
            rows.append(row | {"name": f"{row['name']} of {OTHER_HISTORY}"})
    return _lines_of(rows)


def _short(row: dict[str, object]) -> dict[str, object]:
    """A blob of many kilobytes by its digest."""
    payload = bytes.fromhex(str(row.get("bytes", "")))
    if len(payload) <= LONGEST_IN_FULL:
        return row
    digest = hashlib.sha256(payload).hexdigest()
    return {"name": row["name"], "how": row["how"], "length": len(payload), "sha256": digest}


def _lines_of(rows: list[dict[str, object]]) -> str:
    """A JSON list of one row a line: small, and a change shows as a line."""
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows) + "\n]\n"


FILES: dict[str, Callable[[], str]] = {
    "running_minimum.json": running_minimum,
    "wire/conversions.json": conversions,
    "wire/probes.json": probes,
}


def main(names: list[str]) -> None:
    """Writes the files of these names, or all."""
    for name in names or FILES:
        (GOLDEN / name).write_text(FILES[name](), encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])
