"""Where the checkout keeps what the tests read."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
SUPPORT = TESTS / "support"
SUPPORT_FOLDERS = [SUPPORT, *sorted(SUPPORT.glob("[a-z]*/"))]
"""Programs that tests start, and what these import, are in the first alone."""
GOLDEN = TESTS / "golden"
