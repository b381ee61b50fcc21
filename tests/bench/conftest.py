"""Parts of bench/ at a tiny volume."""

import pytest
from bench import latency


@pytest.fixture(autouse=True)
def unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no machine that places its threads: here no latency is held against another."""
    monkeypatch.setattr(latency, "SETTLE_S", 0)
