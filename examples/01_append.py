"""Append messages in each of the ways there are, and look at what the indexes say."""

from tempfile import TemporaryDirectory

import quire


def main() -> None:
    with (
        TemporaryDirectory() as folder,
        quire.open(f"{folder}/orders", roll_cycle="FAST_DAILY") as queue,
        queue.appender() as appender,
    ):
        print("bytes    ", hex(appender.write_bytes(b"\x01\x02\x03")))
        print("text     ", hex(appender.write_text("buy 100 EURUSD")))
        print("map      ", hex(appender.write_map({"symbol": "EURUSD", "price": 1.1})))

        last = appender.write_many([b"order %d" % number for number in range(100_000)]) or 0
        print("100,000  ", hex(last), "the last of them, all under one lock")

        cycle = queue.roll_cycle
        day, number = cycle.to_cycle(last), cycle.to_sequence(last)
        print(f"{hex(last)} is message {number:,} of cycle {day}: {cycle.file_name(day)}")
        print(f"{queue.entry_count:,} messages in {queue.path}")

        appender.sync()
        print("on the disk up to", hex(queue.table_value("chronicle.lastIndexMSynced") or 0))


if __name__ == "__main__":
    main()
