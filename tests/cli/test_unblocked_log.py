"""The log of verbs that serve: whole, on one line, and never an error of who logs."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from quire.cli.unblocked_log import UnblockedLog


@pytest.fixture
def handler(capfd: pytest.CaptureFixture[str]) -> Iterator[UnblockedLog]:
    capfd.readouterr()
    handler = UnblockedLog()
    yield handler
    handler.close()


def record(
    name: str, message: str, *given: object, error: BaseException | None = None
) -> logging.LogRecord:
    found = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord(name, logging.ERROR, __file__, 1, message, given, found)


def test_errors_of_other_packages_come_with_their_tracebacks(
    handler: UnblockedLog, capfd: pytest.CaptureFixture[str]
) -> None:
    handler.emit(record("asyncio", "never retrieved", error=ValueError("why")))
    handler.emit(record("quire", "a sink is gone", error=ValueError("not shown")))
    handler.close()
    first, second = capfd.readouterr().err.splitlines()
    assert "never retrieved" in first
    assert "ValueError: why" in first
    assert second == "quire: a sink is gone"


def test_a_message_that_cannot_be_formatted_is_no_error_of_who_logs(handler: UnblockedLog) -> None:
    handler.emit(record("other", "%d", "not a number"))
