"""What a power cut leaves, on images: see docs/durability.md and crates/kernel/tests/power_loss."""

import os
import re
import subprocess

import pytest

from paths import ROOT
from tally import Tally, limit_s, scaled

COMMAND = "cargo test --quiet --locked --release -p quire-kernel --features power-loss"
OLDER = re.compile(r"older_images=(\d+)")
DONE = re.compile(r"images=(\d+) second_cuts=(\d+) kept=(\d+) lost=(\d+)")


@pytest.mark.slow
@pytest.mark.timeout(limit_s(1_800, 86_400))
def test_a_power_cut_keeps_what_was_synced_and_invents_nothing(
    tally: Tally,
) -> None:
    wanted = scaled(20_000, 1_000_000)
    command = [*COMMAND.split(), "--target-dir", "target/power", "--test", "power_loss"]
    quick = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
    env = os.environ | quick | {"POWER_LOSS_IMAGES": str(wanted)}

    done = subprocess.run(
        [*command, "--", "--nocapture"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found = DONE.search(done.stdout)
    assert found, done.stdout
    images, again, kept, lost = map(int, found.groups())
    assert images >= wanted
    assert min(again, kept, lost) > 0
    older = OLDER.search(done.stdout)
    assert older, done.stdout
    tally(
        "What the older formats synced is whole after a power cut, and nothing is invented",
        int(older[1]),
        "images of the disk (older formats)",
    )
    promise = "What `sync()` covered is whole after a power cut, and nothing is invented"
    tally(promise, images, "images of the disk")
    tally(promise, again, "images of an interrupted recovery")
