"""Where the checkout keeps what the tests read."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
SUPPORT = TESTS / "support"
GOLDEN = TESTS / "golden"
