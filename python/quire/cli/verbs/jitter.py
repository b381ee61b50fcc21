"""``quire jitter``: how long the machine pauses a thread, and where a late program is."""

from __future__ import annotations

import gc
import os
import runpy
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from quire._common.terminal import escape_line
from quire.cli.exit_codes import FAILED, INTERRUPTED
from quire.cli.output.progress import Progress
from quire.cli.output.row_formats import counted, number_text, print_rows
from quire.cli.parameters import NumberRange
from quire.cli.shared_options import row_format_option
from quire.testing.stacks import LEAST_INTERVAL_US, Stack, StackSampler

_COLUMNS: Final = ("from_us", "to_us", "pauses", "per_second", "longest_us")
_STACK_COLUMNS: Final = ("samples", "share", "stack")
_TURNS: Final = 20_000  # between looks at whether the time is over
_SECOND_NS: Final = 10**9


class Pauses(NamedTuple):
    """
    The pauses of a spinning loop.

    Attributes:
        seconds: How long it spun.
        found_ns: Each pause, in nanoseconds.

    """

    seconds: float
    found_ns: list[int]


@click.command()
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[-- PROGRAM [ARGUMENT]...]")
@click.option(
    "--seconds",
    type=NumberRange(0.01, 86_400),
    default=10.0,
    show_default=True,
    help="How long to spin.",
)
@click.option(
    "--least",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="MICROSECONDS",
    help="Leave out shorter pauses.",
)
@click.option("--cpu", type=click.IntRange(0), metavar="N", help="Spin on this CPU alone.")
@click.option(
    "--interval",
    type=click.IntRange(LEAST_INTERVAL_US),
    default=1_000,
    show_default=True,
    metavar="MICROSECONDS",
    help="With PROGRAM: the time after which it is late, and between samples.",
)
@row_format_option()
def jitter(  # noqa: PLR0913 - its options
    program: tuple[str, ...],
    *,
    seconds: float,
    least: int,
    cpu: int | None,
    interval: int,
    style: str,
) -> int:
    """
    Measure the pauses of a spinning loop, or where a program is when it is late.

    Without PROGRAM, the loop only reads the clock, so the machine causes each pause: another
    process, an interrupt, the hypervisor. A queue cannot be faster than that.

    PROGRAM, a Python file or -m and a module, runs in this process. The stack of its main thread is
    sampled while it is late: while it has not called quire.testing.beat() for the interval. If it
    never calls beat(), all samples count.

    \b
    Examples:
      quire jitter --seconds 60 --cpu 3
      quire jitter --interval 200 -- reader.py orders
    """  # noqa: D301 - click reads the backspace
    if program:
        return _run(program, interval, style)
    if cpu is not None:
        _pin(cpu)
    print_rows(style, _COLUMNS, _rows(spin(seconds, least)))
    return 0


def spin(seconds: float, least_us: int) -> Pauses:
    """Read the clock again and again; return each time that took *least_us* or longer."""
    found, least_ns = list[int](), least_us * 1000
    clock = time.perf_counter_ns
    start = clock()
    end = start + round(seconds * _SECOND_NS)
    was_enabled = gc.isenabled()
    gc.disable()  # a pause of this program, not of the machine
    try:
        with Progress() as progress:
            while (last := clock()) < end:
                progress.show("spinning", (last - start) // _SECOND_NS, round(seconds))
                last = clock()
                for _ in range(_TURNS):
                    now = clock()
                    if now - last >= least_ns:
                        found.append(now - last)
                    last = now
    finally:
        if was_enabled:
            gc.enable()
    return Pauses((clock() - start) / _SECOND_NS, found)


def _rows(pauses: Pauses) -> Iterator[dict[str, Any]]:
    """Yield a row for each power of two, in microseconds, from the shortest to the longest."""
    buckets: dict[int, list[int]] = {}
    for pause_ns in pauses.found_ns:
        buckets.setdefault((pause_ns // 1000).bit_length() - 1, []).append(pause_ns)
    if not buckets:
        return
    for power in range(min(buckets), max(buckets) + 1):
        found = buckets.get(power, [])
        yield {
            "from_us": 1 << power,
            "to_us": 2 << power,
            "pauses": len(found),
            "per_second": len(found) / pauses.seconds,
            "longest_us": max(found) / 1000 if found else None,
        }


def _pin(cpu: int) -> None:
    if not hasattr(os, "sched_setaffinity"):
        raise click.UsageError("--cpu is not supported by this system")
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError as error:
        usable = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        raise click.UsageError(f"this CPU cannot be used: cpu={cpu} usable={usable}") from error


def _run(program: tuple[str, ...], interval_us: int, style: str) -> int:
    """Run a program, print its late stacks, and return its exit code."""
    sampler = StackSampler(interval_us=interval_us)
    with sampler:
        code = _exit_code_of(program)
    sys.stdout.flush()  # what the program printed comes first
    if style == "text":
        click.echo("\n".join(_text(sampler)))
    else:
        print_rows(style, _STACK_COLUMNS, (_row(it, sampler) for it in _stacks_of_program(sampler)))
    return code


def _exit_code_of(program: tuple[str, ...]) -> int:
    """Run a program as `python` would; return its exit code."""
    module = program[1:2] if program[0] == "-m" else ()
    if program[0] == "-m" and not module:
        raise click.UsageError("-m needs the name of a module")
    if not module and not Path(program[0]).is_file():
        raise click.UsageError(f"no such Python program: path={program[0]}")
    arguments, path = sys.argv, sys.path[0]
    try:
        if module:
            sys.argv, sys.path[0] = [*program[1:]], ""
            runpy.run_module(module[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = [*program], str(Path(program[0]).resolve().parent)
            runpy.run_path(program[0], run_name="__main__")
    except SystemExit as error:
        return _code(error.code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - of the program, shown as python would
        traceback.print_exc()
        return FAILED
    finally:
        sys.argv, sys.path[0] = arguments, path
    return 0


def _code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    sys.stderr.write(f"{code}\n")
    return FAILED


def _stacks_of_program(sampler: StackSampler) -> Iterator[Stack]:
    """Yield the stacks of the program, without the frames of this verb and of runpy."""
    for stack in sampler.stacks:
        names = [name for _, _, name in stack.frames]
        if "_exit_code_of" not in names and any(file == __file__ for file, _, _ in stack.frames):
            continue  # before the program began, or after its end
        end = names.index("_exit_code_of") if "_exit_code_of" in names else len(names)
        frames = tuple(it for it in stack.frames[:end] if "runpy" not in it[0])
        if frames:
            yield Stack(stack.samples, frames)


def _row(stack: Stack, sampler: StackSampler) -> dict[str, Any]:
    share = stack.samples / max(1, sampler.samples)
    return {"samples": stack.samples, "share": share, "stack": str(stack)}


def _text(sampler: StackSampler) -> Iterator[str]:
    stacks = [*_stacks_of_program(sampler)]
    late = sum(it.samples for it in stacks)
    yield f"late in {number_text(late)} of {counted(sampler.samples, 'sample')}"
    for stack in stacks:
        share = 100 * stack.samples / sampler.samples
        yield f"\n{counted(stack.samples, 'sample')}, {share:.1f} %"
        yield from (f"  {escape_line(it)}" for it in str(stack).splitlines())
