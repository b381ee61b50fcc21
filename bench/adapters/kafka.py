"""Kafka: a broker in KRaft mode, and clients in Java, through the programs in interop/kafka."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bench.adapters import tcp_echo
from bench.adapters.redis_streams import free_port
from bench.task import DISTINCT, Missing, Outcome, Task

if TYPE_CHECKING:
    from java_peer import JavaPeer

NAME = "Kafka, one broker"
_ROOT = Path(__file__).resolve().parents[2]
_SUPPORT = _ROOT / "tests" / "support"
_START_S = 60.0
_HEAP = ("-Xms1G", "-Xmx1G")  # as Kafka's own script starts it
_LINGER_MS = 5
"""How long a message waits for others where the rate counts; that is also the default."""
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={directory}
offsets.topic.replication.factor=1
"""


def version() -> str:
    """Return the release; the first call builds the clients."""
    return _peer().version


def binary() -> Path:
    """Return a file that changes when the programs are built again."""
    return _ROOT / "interop" / "target" / f"kafka-{version()}" / "built-from"


@contextmanager
def services(task: Task) -> Generator[None]:
    """Run the broker of a latency."""
    with _broker(Path(task.directory)) as port:
        tcp_echo.write_ports(task, [port])
        yield


def run(task: Task) -> Outcome | None:
    """Run one end of a latency, or pass messages through a broker as fast as it takes them."""
    if task.operation != "stream":
        port = int((Path(task.directory) / "ports").read_text())
        subprocess.run(_end(task, port), check=True)
        return None
    with _broker(Path(task.directory)) as port:
        line = _peer().command(
            "stream",
            port=port,
            size=task.size,
            count=task.count,
            warm_up=task.warm_up,
            distinct=DISTINCT,
            linger_ms=_LINGER_MS,
        )
        ran = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(ran.stdout.splitlines()[-1])
    return Outcome(found["nanos"], None, found["count"], found["checksum"])


def _end(task: Task, port: int) -> list[str]:
    writes = task.operation == "produce"
    return _peer().command(
        "latency",
        role="produce" if writes else "tail",
        port=port,
        count=task.total,
        size=task.size if writes else None,
        rate=task.rate if writes else None,
        out=task.out,
    )


@contextmanager
def _broker(directory: Path) -> Generator[int]:
    """Format a directory and run a broker that keeps its messages there; give its port."""
    port, controller = free_port(), free_port()
    settings, kept = directory / "server.properties", directory / "kafka"
    settings.write_text(_SETTINGS.format(port=port, controller=controller, directory=kept))
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    formatting = _main(
        "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(settings)
    )
    subprocess.run(formatting, check=True, capture_output=True)
    line = _main("kafka.Kafka", str(settings))
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_it_listens(process, port)
        yield port
    finally:
        process.kill()  # what it kept goes with the directory
        process.wait()


def _main(name: str, *arguments: str) -> list[str]:
    """Return the command line of one of Kafka's own mains."""
    java, *options, _main, _verb = _peer().command("none")
    return [java, *options, *_HEAP, name, *arguments]  # the last size holds


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no broker starts: exit={process.returncode}") from None
            time.sleep(0.1)
        else:
            return


@cache
def _peer() -> JavaPeer:
    if str(_SUPPORT) not in sys.path:
        sys.path.append(str(_SUPPORT))
    import java_peer

    try:
        return java_peer.JavaPeer(java_peer.KAFKA_VERSION, mains=java_peer.KAFKA)
    except java_peer.JavaPeerError as error:
        raise Missing(str(error).splitlines()[0]) from error
