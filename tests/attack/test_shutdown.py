"""Interpreters that end with handles open: the right exit code, no crash, and a free lock."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import quire
from queues import payloads, problems_of
from tally import Tally

pytestmark = pytest.mark.slow

PRELUDE = """
import atexit, os, signal, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import quire
queue = quire.open(sys.argv[1], block_bytes=1)
appender, tailer, named = queue.appender(), queue.tailer(), queue.tailer("risk")
appender.write_many([b"one", b"two"])
assert tailer.read_bytes() == named.read_bytes() == b"one"
def forever(write):
    while True:
        write()
def daemon(write):
    threading.Thread(target=forever, args=(write,), daemon=True).start()
    time.sleep(0.05)
def in_document():
    with appender.writing_document() as document:
        document.write_bytes(b"inside")
"""


@dataclass(frozen=True)
class End:
    """How a program ends, its exit code, what it wrote behind the first two messages."""

    program: str
    code: int = 0
    written: tuple[bytes, ...] | None = ()  # None: whatever its threads got to


ENDS = {
    "open handles": End(
        "iterator = iter(tailer); next(iterator); view = tailer.reading_document()"
    ),
    "a held document": End("document = appender.writing_document(); document.write_bytes(b'x')"),
    "a held buffered document": End("""
        wait = quire.WaitOptions(double_buffer=True)
        other = quire.open(sys.argv[1], block_bytes=1, wait=wait).appender()
        held = appender.writing_document()
        document = other.writing_document(); document.write_bytes(b'x')
    """),
    "a document in a cycle of garbage": End("""
        class Node: pass
        node = Node(); node.document = appender.writing_document(); node.node = node
    """),
    "sys.exit in a document": End(
        """
        with appender.writing_document() as document:
            document.write_bytes(b'x')
            sys.exit(4)
    """,
        4,
    ),
    "an exception in a document": End(
        """
        with appender.writing_document() as document:
            document.write_bytes(b'x')
            raise RuntimeError('on purpose')
    """,
        1,
    ),
    "os._exit in a document": End(
        """
        document = appender.writing_document(); document.write_bytes(b'x'); os._exit(3)
    """,
        3,
    ),
    "abort in a document": End(
        """
        document = appender.writing_document(); document.write_bytes(b'x'); os.abort()
    """,
        -signal.SIGABRT,
    ),
    "SIGTERM in a document": End(
        """
        document = appender.writing_document(); document.write_bytes(b'x')
        os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)
    """,
        -signal.SIGTERM,
    ),
    "SIGINT in a document": End(
        """
        with appender.writing_document() as document:
            document.write_bytes(b'x')
            os.kill(os.getpid(), signal.SIGINT); time.sleep(60)
    """,
        -signal.SIGINT,
    ),
    "atexit appends": End("atexit.register(lambda: appender.write_bytes(b'last'))", 0, (b"last",)),
    "atexit closes first": End("atexit.register(queue.close)"),
    "a thread outlives main": End(
        """
        threading.Thread(target=lambda: (time.sleep(0.1), appender.write_bytes(b'last'))).start()
    """,
        0,
        (b"last",),
    ),
    "an executor outlives main": End(
        """
        ThreadPoolExecutor(1).submit(lambda: (time.sleep(0.1), appender.write_bytes(b'last')))
    """,
        0,
        (b"last",),
    ),
    "a daemon thread appends": End("daemon(lambda: appender.write_bytes(b'x'))", 0, None),
    "a daemon thread bulk writes": End(
        "daemon(lambda: appender.write_many([b'x'] * 999))", 0, None
    ),
    "a daemon thread in documents": End("daemon(in_document)", 0, None),
    "a daemon thread waits for the lock": End(
        """
        document = appender.writing_document()
        daemon(lambda: queue.appender().write_bytes(b'x'))
    """,
        0,
        None,
    ),
    "daemon threads tail": End("""
        daemon(lambda: list(queue.tailer().follow(1)))
        daemon(lambda: queue.tailer().read_many(9))
        daemon(lambda: queue.tailer('other').wait())
    """),
    "daemon threads of all kinds": End(
        """
        for work in (in_document, lambda: appender.write_bytes(b'x'), lambda: tailer.read(),
                     lambda: quire.open(sys.argv[1]).close(), lambda: queue.refresh()):
            daemon(work)
    """,
        0,
        None,
    ),
    "__del__ appends": End(
        """
        class Late:
            def __del__(self, write=appender.write_bytes):
                write(b'last')
        late = Late()
    """,
        0,
        (b"last",),
    ),
    "a child that exits by itself": End(
        """
        if (pid := os.fork()) == 0:
            sys.exit(5)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
        appender.write_bytes(b'last')
    """,
        0,
        (b"last",),
    ),
}


def dedented(program: str) -> str:
    lines = [line for line in program.splitlines() if line.strip()]
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join(line[margin:] for line in lines)


@pytest.mark.parametrize("name", ENDS)
def test_an_interpreter_ends_as_it_should(name: str, path: Path, tally: Tally) -> None:
    end = ENDS[name]
    program = PRELUDE + dedented(end.program)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program, str(path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == end.code, done.stderr
    if end.code == 0:
        assert "Error" not in done.stderr
    # The lock was let go, or is taken from the dead at once: a living holder would be an error.
    with quire.open(path, block_bytes=1, timeout_s=10) as queue:
        queue.appender().write_bytes(b"next")
        found = payloads(queue)
        assert (found[:2], found[-1]) == ([b"one", b"two"], b"next")
        if end.written is None:
            assert set(found[2:-1]) <= {b"x", b"inside"}
        else:
            assert found[2:-1] == [*end.written]
        with queue.tailer("risk") as tailer:
            assert tailer.read_bytes() in (b"one", b"two")
    problems = problems_of(path)
    if end.written is None:  # a thread that ended within an append leaves what it had stored
        problems = [it for it in problems if not it.startswith("bytes behind the end")]
    assert problems == []
    tally("An interpreter may exit with open handles", 1, "ways for an interpreter to end")


def test_a_subinterpreter_works_or_is_refused(path: Path) -> None:
    program = """
        import sys
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        import quire
        code = '''
        try:
            import quire
        except ImportError as error:
            assert "subinterpreter" in str(error), error
        else:
            with quire.open(%r) as queue:
                queue.appender().write_bytes(b"inner")
        '''
        code %= sys.argv[1]
        with quire.open(sys.argv[1]) as queue:
            queue.appender().write_bytes(b"outer")
            inner = interpreters.create()
            failed = interpreters.run_string(inner, code)
            assert failed is None, failed
            interpreters.destroy(inner)
            queue.appender().write_bytes(b"outer again")
    """
    done = subprocess.run(
        [sys.executable, "-c", dedented(program), str(path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with quire.open(path) as queue:
        found = payloads(queue)
    assert [it for it in found if it != b"inner"] == [b"outer", b"outer again"]
