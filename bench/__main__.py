"""
Measure Quire beside Java's Chronicle Queue and other ways to pass messages.

Results at full volume go to bench/results/PART.json, others to build/bench; a complete run also
writes docs/performance/measurements.md. Needs a release build, a JDK and Maven; other systems are
skipped where they are not installed. See bench/METHOD.md.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import time
from dataclasses import replace
from pathlib import Path

from bench import parts, report
from bench.harness import ROOT, Failed, Result
from bench.scenarios import FULL, PARTS, QUICK

TRIALS = ROOT / "build" / "bench"


def main() -> int:
    """Measure, store, print, and write the page."""
    asked = _arguments()
    quick: bool = asked.quick or os.environ.get("QUICK") == "1"
    volume = QUICK if quick else FULL
    if asked.pairs:
        # Asked for, they are measured, whatever time that takes.
        volume = replace(volume, pairs=asked.pairs, budget_s=math.inf)
    out = asked.out or (report.RESULTS if volume == FULL else TRIALS)
    random.seed(asked.seed)
    begin = time.monotonic()

    def say(line: str) -> None:
        print(f"· {time.monotonic() - begin:4.0f} s  {line}", file=sys.stderr, flush=True)

    say(f"seed of the order: {asked.seed}")
    found = parts.load(out) if asked.resume else {}
    results: dict[str, Result] = {}
    try:
        for part in asked.only:
            if part in found and parts.is_of_now(found[part], volume):
                results[part] = found[part]
                say(f"kept: {part} of {found[part]['date']}")
                continue
            results[part] = parts.run(part, volume, quick=quick, say=say) | {"seed": asked.seed}
            say(f"written: {parts.store(results[part], out)}")
    except Failed as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(report.text(results))
    if quick or set(asked.only) != set(PARTS):
        say("the pages in docs/performance stay as they are: write them by python -m bench.report")
    else:
        report.write(results)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only",
        type=_part_names,
        default=list(PARTS),
        metavar="PARTS",
        help=f"some of {','.join(PARTS)} (all of them)",
    )
    parser.add_argument(
        "--pairs",
        type=int,
        metavar="N",
        help=f"rounds that count ({FULL.pairs}; quick {QUICK.pairs})",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer rounds and messages, about twenty minutes; as QUICK=1 in the environment",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=time.time_ns() % 1_000_000,
        help="of the random order; printed, and stored with the results",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="keep parts that were measured with the same programs and volume",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIRECTORY",
        help="where the results go (full volume: bench/results, else build/bench)",
    )
    return parser.parse_args()


def _part_names(text: str) -> list[str]:
    names = text.split(",")
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        raise argparse.ArgumentTypeError(f"no such part: {','.join(unknown)}")
    return [part for part in PARTS if part in names]


if __name__ == "__main__":
    sys.exit(main())
