"""
Work in threads that a cancelled task waits for.

A thread cannot be stopped: what is undone or closed while it still runs is changed once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def in_thread(work: Callable[_P, _T], /, *given: _P.args, **named: _P.kwargs) -> asyncio.Future[_T]:
    """Begin to do something in a thread."""
    loop = asyncio.get_running_loop()
    return loop.run_in_executor(None, partial(work, *given, **named))


async def until_end(work: asyncio.Future[Any]) -> None:
    """
    Wait until something has ended, well or not.

    Raises:
        CancelledError: This was cancelled meanwhile, and it has ended.

    """
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not work.cancelled():
            work.exception()  # it was heard
        raise cancelled


async def result_of(work: asyncio.Future[_T]) -> _T:
    """
    Return what something returns, or raise what it raises.

    Raises:
        CancelledError: This was cancelled meanwhile, and it has ended.

    """
    await until_end(work)
    return work.result()
