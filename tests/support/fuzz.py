"""
Run the targets of `make fuzz`, those that ran for the shortest time first, and count that.

Usage: `python fuzz.py DIRECTORY [--seconds N] [TARGET ...]`; DIRECTORY has programs `fuzz-TARGET`.
The counts are added to tests/attack/tally.json.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
from collections import Counter
from pathlib import Path

from paths import ROOT
from tally import Tallies, Tried, write_page

CORPUS = ROOT / "crates" / "fuzz" / "corpus"
GROWN = ROOT / "target" / "fuzz" / "corpus"
LIMITS = ("-timeout=20", "-rss_limit_mb=1024", "-max_len=8192")
INPUTS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def processor_s() -> float:
    """Return the processor time of the programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(program: Path, target: str, seconds: int) -> None:
    """Run one target; exits if it finds something, which is then in the committed corpus."""
    grown = GROWN / target
    grown.mkdir(parents=True, exist_ok=True)
    corpus = CORPUS / target
    before = processor_s()
    ran = subprocess.run(
        [
            str(program),
            f"-max_total_time={seconds}",
            *LIMITS,
            "-print_final_stats=1",
            "-verbosity=0",
            f"-artifact_prefix={corpus}/",
            str(grown),
            str(corpus),
        ],
        check=False,
        stderr=subprocess.PIPE,
        text=True,
    )
    took, stats = processor_s() - before, INPUTS.search(ran.stderr)
    if ran.returncode or stats is None:
        raise SystemExit(f"{ran.stderr}\nfuzz: {target}: exit code {ran.returncode}")
    found = Tallies.load()
    found.targets.setdefault(target, Tried()).add(took, Counter(inputs=int(stats[1])))
    found.store()
    print(f"  {int(stats[1]):,} inputs in {took:.0f} s of processor time")  # noqa: T201


def main() -> None:
    """Run the targets asked for, or all."""
    parser = argparse.ArgumentParser(description="Feed made-up files to the kernel.")
    parser.add_argument("directory", type=Path, help="where the programs are")
    parser.add_argument("targets", nargs="*", help="all by default")
    parser.add_argument("--seconds", type=int, default=60, help="for each target; 60 by default")
    asked = parser.parse_intermixed_args()  # targets may follow options
    programs = {it.name.removeprefix("fuzz-"): it for it in asked.directory.glob("fuzz-*[!.d]")}
    if unknown := set(asked.targets) - set(programs):
        known = ", ".join(sorted(programs))
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {known}")
    before = Tallies.load().targets
    for target in sorted(
        asked.targets or programs, key=lambda name: before.get(name, Tried()).seconds
    ):
        print(f"· {target}", flush=True)  # noqa: T201
        run(programs[target], target, asked.seconds)
    write_page()


if __name__ == "__main__":
    main()
