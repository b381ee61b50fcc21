"""Verbs that serve until a signal comes, with what they log on stderr."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable

from quire.cli.exit_codes import INTERRUPTED, OK
from quire.cli.unblocked_log import UnblockedLog


def run_until_signal(
    work: Callable[[], Awaitable[None]],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> int:
    """Run until it ends or a signal comes; what is under way is finished first."""
    handler = UnblockedLog()
    log = logging.getLogger()  # of all: what other packages log holds up nobody, either
    log.addHandler(handler)
    logging.getLogger("quire").setLevel(logging.INFO)
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(_until_signal(work))
    finally:
        log.removeHandler(handler)
        handler.close()


async def _until_signal(work: Callable[[], Awaitable[None]]) -> int:
    loop, codes = asyncio.get_running_loop(), list[int]()
    task = asyncio.ensure_future(work())

    def leave(code: int) -> None:
        codes.append(code)
        task.cancel()

    for number, code in ((signal.SIGTERM, OK), (signal.SIGINT, INTERRUPTED)):
        loop.add_signal_handler(number, leave, code)
    try:
        await task
    except asyncio.CancelledError:
        if not codes:
            raise
    return codes[0] if codes else OK
