"""A Spark cluster in this machine, and a Python for it that has no Quire."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import venv
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.metadata import distributions
from pathlib import Path

import pyspark

from ports import HOST, free_port
from quire.spark.sessions import java

SPARK = Path(pyspark.__file__).parent
STARTS_S = 300


def bare_python(folder: Path) -> Path:
    """Make an environment with all that this one has, but for Quire; return its interpreter."""
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    (own,) = folder.glob("lib/python*/site-packages")
    for place in {Path(str(it.locate_file(""))) for it in distributions()}:
        if place.name == "site-packages":
            for entry in place.iterdir():
                if "quire" not in entry.name and entry.suffix != ".pth":
                    with suppress(FileExistsError):
                        (own / entry.name).symlink_to(entry)
    found = subprocess.run(
        [python, "-c", "import pyspark, quire"], capture_output=True, check=False
    )
    assert b"No module named 'quire'" in found.stderr
    return python


@contextmanager
def cluster(folder: Path, python: Path, workers: int = 2) -> Generator[str]:
    """Start a master and some workers of one core each; give the master's address."""
    java.use()
    environment = os.environ | {
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "160m",
        "PYSPARK_PYTHON": str(python),
    }
    environment.pop("PYTHONPATH", None)
    port = free_port()
    running: list[subprocess.Popen[bytes]] = []

    def start(class_name: str, *arguments: object) -> None:
        program = (SPARK / "bin" / "spark-class", f"org.apache.spark.deploy.{class_name}")
        command = [*map(str, (*program, "--host", HOST, "--webui-port", 0, *arguments))]
        with Path(folder, f"{len(running)}.log").open("wb") as log:
            running.append(
                subprocess.Popen(
                    command, env=environment, stdout=log, stderr=log, start_new_session=True
                )
            )

    address = f"spark://{HOST}:{port}"
    try:
        start("master.Master", "--port", port)
        wait_for(port)
        for number in range(workers):
            home = Path(folder, f"worker{number}")
            size = ("--cores", 1, "--memory", "512m", "--port", 0)
            start("worker.Worker", *size, "--work-dir", home, address)
        yield address
    finally:
        for process in reversed(running):
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
    assert process.poll() is not None


def wait_for(port: int) -> None:
    """Return when somebody listens."""
    until_s = time.monotonic() + STARTS_S
    while True:
        try:
            socket.create_connection((HOST, port)).close()
        except ConnectionRefusedError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.1)
        else:
            return


def run_driver(python: Path, command: list[str]) -> str:
    """Run a program whose workers run on another interpreter; what it printed."""
    environment = os.environ | {"PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": HOST}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
