"""Move columns in and out with pyarrow: no Python object for each message."""

from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc

import quire


def main() -> None:
    prices = pa.array([f"price {number % 97}" for number in range(200_000)])
    with (
        TemporaryDirectory() as folder,
        quire.open(f"{folder}/prices") as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        last = appender.write_batch(prices.cast(pa.binary()))
        print("wrote", len(prices), "messages, the last is", hex(last or 0))

        count = 0
        while (batch := tailer.read_batch(65_536)).num_rows:
            count += batch.num_rows
            distinct = pc.count_distinct(batch["payload"]).as_py()
            print("read ", batch.num_rows, "rows,", distinct, "different:", batch.schema.names)
        print("in all", count)


if __name__ == "__main__":
    main()
