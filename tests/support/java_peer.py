"""Drives the Java peers in interop/, on the Chronicle Queue release asked for.

What `run` runs shares one JVM for each release, unless it changes the JVM itself; what `start`
starts has one of its own.

    peer = JavaPeer("5.27ea11")
    indexes = peer.run("write", dir=path, count=3, kind="text", start=1_700_000_000_000)
    with peer.start("follow", dir=path, count=3) as follower:
        follower.expect("READY")
        ...

`JavaPeer(VANILLA_VERSION, mains=VANILLA)` runs the mains of interop/vanilla on a Vanilla Chronicle;
`jvm=["-Dos.max.pid.bits=16"]` sets how many bits of an index entry it has for a thread id.

Keyword arguments become options: `block_size=65536` is `--block-size 65536`, True a bare flag,
False and None nothing.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self, TypeAlias

from paths import ROOT

INTEROP = ROOT / "interop"
DEFAULT_VERSION = "5.27ea11"
VERSIONS = ("5.20.123", "5.22.28", "5.23.37", "5.26ea7", "5.27ea11", "2026.4")
VANILLA_VERSION = "3.6.4"
WEEKLY_VERSION = "3.4.4"  # the last that has cycles of a week
JEDIS_VERSION = "7.1.0"
KAFKA_VERSION = "4.1.1"

BUILD_TIMEOUT_S = 600.0
RUN_TIMEOUT_S = 300.0
LINE_TIMEOUT_S = 120.0
STDERR_CHARS = 4000


class Mains(NamedTuple):
    """
    A Maven module of interop/.

    `sharing` are the verbs that leave nothing in the JVM for those after them.
    """

    module: Path
    name: str
    version_property: str
    phase: str
    target: str
    sharing: frozenset[str]
    agent: str | None = None


JOURNAL = Mains(
    INTEROP,
    "quire.interop.Main",
    "chronicle.version",
    "compile",
    "",
    frozenset(["check", "list", "method-read", "method-write", "open", "table", "write"]),
)
VANILLA = Mains(
    INTEROP / "vanilla",
    "quire.interop.vanilla.Main",
    "vanilla.version",
    "process-classes",
    "vanilla-",
    frozenset(["list", "read-fields", "write", "write-fields"]),
    agent="peers.jar",
)
JEDIS = Mains(
    INTEROP / "jedis",
    "quire.interop.jedis.Main",
    "jedis.version",
    "compile",
    "jedis-",
    frozenset(["append", "consume", "cluster"]),
)
KAFKA = Mains(
    INTEROP / "kafka",
    "quire.interop.kafka.Main",
    "kafka.version",
    "compile",
    "kafka-",
    frozenset(),
)

# What Serve.java puts between the parts of a request, and before the exit code.
ARGUMENT_END, ARGUMENTS_END, ANSWER_END = "\x1f", "\x1e", "\x04"

Option: TypeAlias = str | int | float | Path | None


class JavaPeerError(RuntimeError):
    """A peer could not be built, failed, or did not answer in time."""


class JavaPeer:
    """The mains of interop/ on one release of the library; the first instance builds them."""

    def __init__(
        self,
        version: str = DEFAULT_VERSION,
        *,
        run_timeout_s: float = RUN_TIMEOUT_S,
        mains: Mains = JOURNAL,
        jvm: Sequence[str] = (),
    ) -> None:
        self.version = version
        self.run_timeout_s = run_timeout_s
        java, *arguments = _java(mains, version)
        self._java = (java, *jvm, *arguments, mains.name)
        self._sharing = mains.sharing

    def run(self, verb: str, /, **options: Option) -> list[str]:
        """Runs the verb to its end and returns its lines.

        Raises:
            JavaPeerError: it did not end in time, or with another exit code than 0.
        """
        return self.run_with_input(verb, "", **options)

    def run_with_input(self, verb: str, text: str, /, **options: Option) -> list[str]:
        """As `run`, with `text` on its stdin."""
        if verb in self._sharing:
            lines, code, errors = self._ask_server(verb, text, options)
        else:
            lines, code, errors = self._run_alone(verb, text, options)
        if code != 0:
            raise JavaPeerError(
                f"peer failed: version={self.version} verb={verb} exit={code}\n"
                f"{errors[-STDERR_CHARS:]}"
            )
        return lines

    def _run_alone(
        self, verb: str, text: str, options: Mapping[str, Option]
    ) -> tuple[list[str], int, str]:
        try:
            done = subprocess.run(
                self.command(verb, **options),
                input=text,
                capture_output=True,
                text=True,
                timeout=self.run_timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise JavaPeerError(f"no end: verb={verb} timeout_s={self.run_timeout_s}") from error
        return done.stdout.splitlines(), done.returncode, done.stderr

    def _ask_server(
        self, verb: str, text: str, options: Mapping[str, Option]
    ) -> tuple[list[str], int, str]:
        """Run the verb in an idle server; one that failed may hold locks, and is not used again."""
        idle = _idle_servers.setdefault(self._java, [])
        server = idle.pop() if idle else JavaProcess([*self._java, "serve"])
        arguments = ARGUMENT_END.join([verb, *_arguments(options)])
        try:
            server.send(f"{arguments}{ARGUMENTS_END}{text.encode().hex()}")
            lines = server.read_until(ANSWER_END, self.run_timeout_s, keep_last=True)
        except BaseException:
            server.close()
            raise
        code = int(lines.pop().removeprefix(ANSWER_END))
        if code == 0:
            idle.append(server)
            return lines, code, ""
        server.end()
        errors = server.stderr_text
        server.close()
        return lines, code, errors

    def check(self, directory: Path, /, **options: Option) -> dict[str, object]:
        """The JSON object of `check`."""
        (line,) = self.run("check", dir=directory, **options)
        found: dict[str, object] = json.loads(line)
        return found

    def start(self, verb: str, /, **options: Option) -> JavaProcess:
        """Starts the verb and returns at once."""
        return JavaProcess(self.command(verb, **options))

    def command(self, verb: str, /, **options: Option) -> list[str]:
        """The command line, for callers that start the JVM in their own way."""
        return [*self._java, verb, *_arguments(options)]


class JavaProcess:
    """A running peer. Its lines are read by a thread, so that waiting for one can time out."""

    def __init__(self, command: list[str]) -> None:
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            bufsize=1,
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._pump, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stderr_text(self) -> str:
        """What it has written to stderr so far."""
        self._stderr.seek(0)
        return self._stderr.read()

    def read_line(self, timeout_s: float = LINE_TIMEOUT_S) -> str | None:
        """The next line without its end, or None after the last one."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise JavaPeerError(f"no line: timeout_s={timeout_s}\n{self.stderr_text}") from None
        if line is None:
            self._lines.put(None)
        return line

    def read_until(
        self, last: str, timeout_s: float = LINE_TIMEOUT_S, *, keep_last: bool = False
    ) -> list[str]:
        """All lines before the one that starts with `last`, which is consumed, or kept."""
        deadline = time.monotonic() + timeout_s
        lines: list[str] = []
        while (line := self.read_line(max(0.0, deadline - time.monotonic()))) is not None:
            if line.startswith(last):
                return [*lines, line] if keep_last else lines
            lines.append(line)
        raise JavaPeerError(f"ended early: wanted={last} lines={lines[-3:]}\n{self.stderr_text}")

    def expect(self, line: str, timeout_s: float = LINE_TIMEOUT_S) -> None:
        """Waits for exactly this line."""
        found = self.read_line(timeout_s)
        if found != line:
            raise JavaPeerError(f"other line: wanted={line} found={found}\n{self.stderr_text}")

    def rest(self, timeout_s: float = RUN_TIMEOUT_S) -> list[str]:
        """All lines until it ends."""
        deadline = time.monotonic() + timeout_s
        lines: list[str] = []
        while (line := self.read_line(max(0.0, deadline - time.monotonic()))) is not None:
            lines.append(line)
        return lines

    def send(self, line: str) -> None:
        """Sends a line."""
        stdin = _piped(self._process.stdin)
        stdin.write(line + "\n")
        stdin.flush()

    def end(self) -> None:
        """Ends its stdin, and waits for its end."""
        _piped(self._process.stdin).close()
        self.wait()

    def ask(self, command: str, timeout_s: float = LINE_TIMEOUT_S) -> str:
        """Sends a line and returns the answer: the way to talk to `tailer-script`."""
        self.send(command)
        answer = self.read_line(timeout_s)
        if answer is None:
            raise JavaPeerError(f"no answer: command={command}\n{self.stderr_text}")
        return answer

    def wait(self, timeout_s: float = RUN_TIMEOUT_S) -> int:
        """The exit code, once it has ended."""
        return self._process.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL: nothing of what it was doing is finished; lines it had printed stay readable."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Kills it if it still runs and releases the pipes."""
        self.kill()
        self._reader.join()
        for stream in (_piped(self._process.stdin), _piped(self._process.stdout), self._stderr):
            with suppress(BrokenPipeError):  # a line for a process that is gone
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _pump(self) -> None:
        for line in _piped(self._process.stdout):
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


def build_all() -> None:
    """Builds the mains on every release."""
    for version in VERSIONS:
        JavaPeer(version)
    for version in (VANILLA_VERSION, WEEKLY_VERSION):
        JavaPeer(version, mains=VANILLA)
    JavaPeer(JEDIS_VERSION, mains=JEDIS)
    JavaPeer(KAFKA_VERSION, mains=KAFKA)


_idle_servers: dict[tuple[str, ...], list[JavaProcess]] = {}
_owner = os.getpid()  # a forked child must not end its parent's servers


@atexit.register
def close_servers() -> None:
    """Ends the shared JVMs of this process."""
    while _idle_servers and os.getpid() == _owner:
        for server in _idle_servers.popitem()[1]:
            server.close()


def _arguments(options: Mapping[str, Option]) -> Iterator[str]:
    for name, value in options.items():
        if value is None or value is False:
            continue
        yield "--" + name.replace("_", "-")
        if value is not True:
            yield str(value)


def _piped(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise JavaPeerError("the process was started without that pipe")
    return stream


@cache
def _java(mains: Mains, version: str) -> tuple[str, ...]:
    """The start of every command line, after the classes were built if need be."""
    java = shutil.which("java")
    if java is None:
        raise JavaPeerError("no java on the PATH: the peers need a JDK, 17 or newer")
    target = INTEROP / "target" / f"{mains.target}{version}"
    with _build_lock():
        stamp = target / "built-from"
        sources = _sources_digest(mains)
        if not stamp.is_file() or stamp.read_text() != sources:
            _build(mains, version)
            stamp.write_text(sources)
    class_path = f"{target / 'classes'}{os.pathsep}{(target / 'classpath.txt').read_text()}"
    agent = [f"-javaagent:{target / mains.agent}"] if mains.agent else []
    return (java, f"@{INTEROP / 'jvm.args'}", *agent, "-cp", class_path)


@contextmanager
def _build_lock() -> Generator[None]:
    """One build at a time, whichever the version: Maven's local repository is shared too."""
    lock = INTEROP / "target" / "build.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _sources_digest(mains: Mains) -> str:
    """Of the module, and of the command line in interop/src, which all modules have."""
    digest = hashlib.sha256()
    folders = {INTEROP / "src", mains.module / "src"}
    sources = sorted(path for folder in folders for path in folder.rglob("*.java"))
    for path in [mains.module / "pom.xml", *sources]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _build(mains: Mains, version: str) -> None:
    """Compiles with Maven: from its local repository if that has everything, else online."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaPeerError("no mvn on the PATH: it builds the peers")
    command = [maven, "-q", "-B", f"-D{mains.version_property}={version}", mains.phase]
    for attempt in ([*command, "--offline"], command):
        done = subprocess.run(
            attempt,
            cwd=mains.module,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
        if done.returncode == 0:
            return
    raise JavaPeerError(
        f"Maven cannot build the peers, nor fetch what they need: version={version}\n"
        f"{(done.stdout + done.stderr)[-STDERR_CHARS:]}"
    )
