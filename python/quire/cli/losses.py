"""Whether a verb's readers skipped messages that were deleted before they were read."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

LOST: Final = "messages were deleted before they were read"
"""How the line begins that a tailer leaves in the log; `DataLossError` has the same text."""


class Losses(logging.Filter):
    """Lets every record of the log through, and notes those of a loss."""

    def __init__(self) -> None:
        """Note nothing yet."""
        super().__init__()
        self.found = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True."""
        self.found = self.found or record.getMessage().startswith(LOST)
        return True


@contextmanager
def noted() -> Generator[Losses]:
    """Note the losses that are logged meanwhile."""
    logger, losses = logging.getLogger("quire"), Losses()
    logger.addFilter(losses)
    try:
        yield losses
    finally:
        logger.removeFilter(losses)
