"""
Work in threads for which a cancelled task still waits.

A thread cannot be stopped: if it still ran, it could change what has been undone or closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def in_thread(work: Callable[_P, _T], /, *given: _P.args, **named: _P.kwargs) -> asyncio.Future[_T]:
    """Start to run a function in a thread."""
    loop = asyncio.get_running_loop()
    return loop.run_in_executor(None, partial(work, *given, **named))


async def until_end(work: asyncio.Future[Any]) -> None:
    """
    Wait until a task has ended, successfully or not.

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
    Return the result of a task, or raise its exception.

    Raises:
        CancelledError: This was cancelled meanwhile, and it has ended.

    """
    await until_end(work)
    return work.result()
