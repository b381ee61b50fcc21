"""Progress on stderr: a bar on a terminal, that leaves nothing; lines elsewhere, seldom."""

from __future__ import annotations

import io
import sys

import pytest

from quire.cli.output.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock's time."""
    time_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: time_s[0])
    return time_s


def test_elsewhere_there_is_a_plain_line_a_minute(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", out := io.StringIO())
    with Progress() as shown:
        shown.show("trades \x1b[31m", 1, 9)
        assert out.getvalue() == ""
        now[0] += 60
        shown.show("trades \x1b[31m", 2000, 9000)
        shown.show("trades", 3000, 9000)
        now[0] += 59
        shown.count(100_000)
        now[0] += 1
        shown.count(200_000)
    assert out.getvalue() == "quire: trades \\x1b[31m 2,000 of 9,000\nquire: 200,000 messages\n"


def test_a_terminal_has_a_bar_after_a_moment(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", out := Terminal())
    with Progress() as shown:
        shown.show("trades", 1, 4)
        assert out.getvalue() == ""
        now[0] += 1
        shown.show("trades", 1, 4)
        shown.clear()
        assert "trades" in out.getvalue()
        assert "25%" in out.getvalue()
        assert out.getvalue().endswith("\x1b[2K")
        before = len(out.getvalue())
        shown.clear()
        shown.count(1000)
        assert len(out.getvalue()) == before
        now[0] += 1
        shown.count(2000)
    assert "2,000 messages" in out.getvalue()[before:]
