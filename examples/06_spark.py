"""A queue as a Spark table: one row for each message, one column for each field."""

from tempfile import TemporaryDirectory

import quire
import quire.spark

DAY_MS = 86_400_000
SYMBOLS = ("EURUSD", "GBPUSD", "USDJPY")


def main() -> None:
    with TemporaryDirectory() as folder:
        path = f"{folder}/trades"
        clock = quire.ManualClock(1_700_000_000_000)
        with quire.open(path, clock=clock, block_bytes=1 << 20) as queue:
            appender = queue.appender()
            for _ in range(3):
                for number in range(1000):
                    symbol = SYMBOLS[number % len(SYMBOLS)]
                    appender.write_map({"symbol": symbol, "price": 1 + number / 1000})
                clock.advance(DAY_MS)
            print("recorded", queue.entry_count, "trades in", len(queue.cycles), "daily files")

        spark = quire.spark.session("example", cores=2)
        columns = "_cycle, symbol string, price double"
        trades = quire.spark.scan(spark, path, columns=columns)
        trades.groupBy("_cycle").pivot("symbol").avg("price").orderBy("_cycle").show()
        spark.stop()


if __name__ == "__main__":
    main()
