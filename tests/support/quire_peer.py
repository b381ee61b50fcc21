"""Quire processes, for tests that need several or a dead one: the twin of java_peer.

    with start("produce", dir=path, id=1, count=100, ack=True) as producer:
        producer.expect("READY")

The verbs take the options of Java's (interop/README.md) and print the same lines, but for this:

- `hold` is `lock` or `document`: a document is opened behind the last message, `HOLDING` printed
  and a line on stdin waited for; then the document is closed, and its index or error printed.
- `burst` is after how many messages a producer pauses; with `inside_us` it writes each through a
  document that is open for so long.
- `limit_s` and `timeout_s` are seconds; `block_bytes` and `force_unlock` are `quire.open`'s.
"""

from __future__ import annotations

import json
import random
import struct
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quire
from java_peer import JavaProcess, Option

PAYLOAD = struct.Struct("<IIq")  # CRC-32 of the rest, producer, counter; then padding
CRC_BYTES = 4
OPENING = ("roll_cycle", "block_bytes", "timeout_s", "force_unlock")


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a producer, as followers print it."""

    index: int
    producer: int
    counter: int

    @classmethod
    def of_line(cls, line: str) -> Message:
        """Parse `index producer counter`."""
        index, producer, counter = line.split()
        return cls(int(index, 16), int(producer), int(counter))

    @classmethod
    def of_excerpt(cls, excerpt: quire.Excerpt) -> Message:
        """Decode the payload, whose checksum must match."""
        return cls.of_payload(excerpt.index, excerpt.data)

    @classmethod
    def of_payload(cls, index: int, data: bytes | memoryview) -> Message:
        """Decode a payload, whose checksum must match."""
        crc, producer, counter = PAYLOAD.unpack_from(data)
        assert crc == zlib.crc32(data[CRC_BYTES:]), f"torn: index={index:x}"
        return cls(index, producer, counter)


def encode(producer: int, counter: int, length: int, rng: random.Random) -> bytes:
    """Build a producer's payload of this length, at least that of its fixed part."""
    padding = rng.randbytes(max(0, length - PAYLOAD.size))
    body = PAYLOAD.pack(0, producer, counter)[CRC_BYTES:] + padding
    return struct.pack("<I", zlib.crc32(body)) + body


def start(verb: str, /, **options: Option) -> JavaProcess:
    """Start the verb in a process of its own and return at once."""
    arguments = json.dumps({k: str(v) if isinstance(v, Path) else v for k, v in options.items()})
    return JavaProcess([sys.executable, str(Path(__file__).resolve()), verb, arguments])


def open_queue(options: Mapping[str, Any]) -> quire.JournalQueue:
    """Open the queue that the options describe."""
    given = {k: options[k] for k in OPENING if k in options}
    queue: quire.JournalQueue = quire.open(options["dir"], format="chronicle", **given)
    return queue


def produce(options: Mapping[str, Any]) -> None:
    """Append messages, and hold one back if asked to."""
    with open_queue(options) as queue, queue.appender(wait=options.get("wait")) as appender:
        say("READY")
        producer = options.get("id", 0)
        rng = random.Random(producer)  # noqa: S311 - padding
        for counter in range(options["count"]):
            length = rng.randint(PAYLOAD.size, options.get("max_length", 200))
            index = write(appender, encode(producer, counter, length, rng), options)
            if options.get("ack"):
                say(f"{index:x} {counter}")
            if (counter + 1) % options.get("burst", 1) == 0 and "pause_us" in options:
                time.sleep(options["pause_us"] / 1e6)
        if "hold" in options:
            hold(appender, options["hold"])
    say("DONE")


def write(appender: quire.JournalAppender, payload: bytes, options: Mapping[str, Any]) -> int:
    """Append in one go, or through a document that stays open for a while."""
    if "inside_us" not in options:
        return appender.write_bytes(payload)
    with appender.writing_document() as document:
        document.write_bytes(payload)
        time.sleep(options["inside_us"] / 1e6)
    return document.index


def hold(appender: quire.JournalAppender, what: str) -> None:
    """Keep a document open until told to close it."""
    document = appender.writing_document()
    if what == "document":
        document.write_bytes(b"half a message")
    say("HOLDING")
    sys.stdin.readline()
    try:
        document.close()
        say(f"{document.index:x}")
    except quire.QuireError as error:
        say(f"! {type(error).__name__} {error}")


def follow(options: Mapping[str, Any]) -> None:
    """Print what the producers write."""
    seen = 0
    with open_queue(options) as queue, queue.tailer() as tailer:
        say("READY")
        for excerpt in tailer.follow(options.get("limit_s", 60)):
            message = Message.of_excerpt(excerpt)
            say(f"{message.index:x} {message.producer} {message.counter}")
            seen += 1
            if seen == options.get("count"):
                break
    say(f"DONE {seen}")


def say(line: str) -> None:
    """Print a line at once: its reader may be waiting, and this process about to be killed."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


VERBS: dict[str, Callable[[Mapping[str, Any]], None]] = {"produce": produce, "follow": follow}

if __name__ == "__main__":
    VERBS[sys.argv[1]](json.loads(sys.argv[2]))
