"""Servers of tests with Arrow Flight, and pyarrow's own client of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

import quire
from cli_runs import started

WAIT_S = 60.0
DAY_MS = 86_400_000
START_MS = 1_705_276_800_000  # 2024-01-15


@contextmanager
def flying(
    root: Path, *options: object, listen: bool = False
) -> Generator[tuple[list[str], subprocess.Popen[bytes]]]:
    """Run `quire serve` with Flight on a free port; its addresses, that of --listen first."""
    root.mkdir(exist_ok=True)
    given = [str(it) for it in options]
    given += ["--listen", "127.0.0.1:0"] if listen else []
    with started("serve", root, "--flight", "127.0.0.1:0", *given) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().decode() for _ in range(1 + listen)]
        assert all(it.startswith("listening 127.0.0.1:") for it in lines), lines
        yield [it.split()[1] for it in lines], process


@contextmanager
def client_of(address: str, scheme: str = "grpc", **options: Any) -> Generator[Any]:  # noqa: ANN401
    with flight.FlightClient(f"{scheme}://{address}", **options) as client:
        yield client


def bearer(token: str) -> flight.FlightCallOptions:
    header: Any = [(b"authorization", f"Bearer {token}".encode())]
    return flight.FlightCallOptions(headers=header, timeout=WAIT_S)


def path_of(topic: str) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_path(*topic.split("/"))


def ticket(**values: object) -> flight.Ticket:
    return flight.Ticket(json.dumps(values))


def put(
    client: Any,  # noqa: ANN401 - see client_of
    to: flight.FlightDescriptor,
    *batches: pa.RecordBatch,
    options: flight.FlightCallOptions | None = None,
) -> list[dict[str, int]]:
    """Append batches, one after the other; what each was answered with."""
    writer, reader = client.do_put(to, batches[0].schema, options)
    answers = list[dict[str, int]]()
    with writer:
        for batch in batches:
            writer.write_batch(batch)
            answers.append(json.loads(reader.read().to_pybytes()))
        writer.done_writing()
    return answers


def days(path: Path, count: int = 3, of_each: int = 4) -> None:
    """Make a queue of one message after the other, some on each day."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        for number in range(count * of_each):
            appender.write_map({"n": number, "symbol": "EURUSD"})
            if number % of_each == of_each - 1:
                clock.advance(DAY_MS)
