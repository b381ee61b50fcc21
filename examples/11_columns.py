"""Decode messages straight into Arrow columns: only those asked for, no Python object for each."""

from dataclasses import dataclass
from tempfile import TemporaryDirectory

import quire


@quire.message(alias="Trade")
@dataclass
class Trade:
    symbol: str
    price: float
    size: quire.types.int32
    note: str | None = None


def main() -> None:
    with (
        TemporaryDirectory() as folder,
        quire.open(f"{folder}/trades") as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        for number in range(10_000):
            appender.write_message(Trade(f"S{number % 7}", 100 + number % 50 / 4, number))
        appender.write_map({"symbol": "S0", "price": "none"})  # does not fit

        schema = quire.Schema.from_message(Trade)
        print(schema)
        batch = tailer.read_batch(schema=schema, columns=["symbol", "price"], errors="column")
        frame = batch.to_pandas()  # or polars.from_arrow(batch), or DuckDB, which sees `batch`
        print(frame.groupby("symbol")["price"].mean().round(2).head(3))
        print("misfits:", frame["_error"].dropna().to_list())

        print(quire.Schema.infer(queue))


if __name__ == "__main__":
    main()
