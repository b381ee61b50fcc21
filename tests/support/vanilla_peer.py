"""
A process that writes to a Vanilla Chronicle, or claims from it: VERB PATH ARGS.

    with start("produce", path, 7, 100, 0, tid_bits=22) as producer:
        producer.expect("READY")

What `start` starts prints the lines of the Java peer's verbs.
"""

from __future__ import annotations

import json
import random
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import quire
from java_peer import JavaProcess
from quire_peer import encode, say

RECORD = struct.Struct("<II")


def start(verb: str, path: Path, *arguments: int, **options: Any) -> JavaProcess:  # noqa: ANN401
    """Start `produce`, `claim_live`, `add_live` or `count_locked` on a queue opened with these."""
    command = [sys.executable, str(Path(__file__).resolve()), verb, str(path)]
    return JavaProcess([*command, *map(str, arguments), json.dumps(options)])


def produce(path: str, producer: str, count: str, pause_us: str, options: str) -> None:
    """Append checksummed payloads: `index producer counter` after each."""
    rng = random.Random(int(producer))  # noqa: S311 - padding
    with (
        quire.vanilla.VanillaQueue(path, **json.loads(options)) as queue,
        queue.appender() as appender,
    ):
        say("READY")
        for counter in range(int(count)):
            payload = encode(int(producer), counter, rng.randint(16, 200), rng)
            say(f"{appender.write_bytes(payload):x} {producer} {counter}")
            if pause_us != "0":
                time.sleep(int(pause_us) / 1e6)
    say("DONE")


def claim_live(path: str, owner: str, options: str) -> None:
    """Claim what there is once a line came, and print the index of each message."""
    with quire.vanilla.VanillaQueue(path, consumption="queue", **json.loads(options)) as queue:
        tailer = queue.tailer()
        say("READY")
        sys.stdin.readline()
        while (excerpt := tailer.claim(int(owner))) is not None:
            say(f"{excerpt.index:x}")


def add_live(path: str, offset: str, count: str, options: str) -> None:
    """Add 1 to a word of the first message so many times, once a line came."""
    excerpt = first_message(path, options)
    for _ in range(int(count)):
        value = word(excerpt, int(offset))
        while not excerpt.compare_and_swap_int32(int(offset), value, value + 1):
            value = word(excerpt, int(offset))
    say("DONE")


def count_locked(path: str, offset: str, owner: str, count: str, options: str) -> None:
    """Lock the first word, and change the one at *offset* as if nobody else did."""
    excerpt = first_message(path, options)
    for _ in range(int(count)):
        while not excerpt.try_lock(0, int(owner)):
            pass
        excerpt.write_int32_at(int(offset), word(excerpt, int(offset)) + 1)
        excerpt.unlock(0, int(owner))
    say("DONE")


def first_message(path: str, options: str) -> quire.vanilla.VanillaExcerpt:
    """Return the first message of the queue, once a line came."""
    excerpt = quire.vanilla.VanillaQueue(path, **json.loads(options)).tailer().read()
    assert excerpt is not None
    say("READY")
    sys.stdin.readline()
    return excerpt


def word(excerpt: quire.vanilla.VanillaExcerpt, offset: int) -> int:
    return int.from_bytes(excerpt.view[offset : offset + 4], "little", signed=True)


def write(path: str, writer: str, count: str) -> None:
    """Write numbered records, and print each index once it is appended."""
    with quire.open(path, format="vanilla") as queue, queue.appender() as appender:
        for number in range(int(count)):
            index = appender.write_bytes(RECORD.pack(int(writer), number))
            sys.stdout.write(f"{index}\n")
            sys.stdout.flush()


def claim(path: str, owner: str) -> None:
    """Claim what there is, and print the number of each message."""
    with quire.vanilla.open(path, consumption="queue") as queue:
        tailer = queue.tailer()
        while (excerpt := tailer.claim(int(owner))) is not None:
            sys.stdout.write(f"{excerpt.read_int32()}\n")
            sys.stdout.flush()


VERBS: dict[str, Callable[..., None]] = {
    "add_live": add_live,
    "claim": claim,
    "claim_live": claim_live,
    "count_locked": count_locked,
    "produce": produce,
    "write": write,
}

if __name__ == "__main__":
    VERBS[sys.argv[1]](*sys.argv[2:])
