"""A layout of your own: numbers and texts without names, and memory written in place."""

import struct
from tempfile import TemporaryDirectory

import quire

QUOTE = struct.Struct("<dd")


def main() -> None:
    with (
        TemporaryDirectory() as folder,
        quire.open(f"{folder}/quotes") as queue,
        queue.appender() as appender,
    ):
        with appender.writing_document() as document:
            document.raw.write_int64(1_700_000_000_000_000_000)
            document.raw.write_utf8("EURUSD")
            document.raw.write_stop_bit(300)
            QUOTE.pack_into(document.reserve(QUOTE.size), 0, 1.25, 1.26)

        with queue.tailer() as tailer, tailer.reading_document() as document:
            raw = document.raw
            print("time:", raw.read_int64(), "symbol:", raw.read_utf8())
            print("size:", raw.read_stop_bit())
            print("quote:", QUOTE.unpack_from(document.bytes, raw.position))
            print("bytes in all:", len(document.bytes))


if __name__ == "__main__":
    main()
