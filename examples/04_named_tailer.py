"""A named tailer goes on where it stopped, and gets a message again that it did not finish."""

from contextlib import suppress
from tempfile import TemporaryDirectory

import quire


def main() -> None:
    with TemporaryDirectory() as folder:
        path = f"{folder}/orders"
        with quire.open(path) as queue, queue.appender() as appender:
            appender.write_many([b"one", b"two", b"three", b"four"])

        with quire.open(path) as queue, queue.tailer("risk") as tailer:
            print("first run reads", tailer.read_bytes())
            print("and            ", tailer.read_bytes())
            tailer.commit()

        with suppress(ValueError), quire.open(path) as queue, queue.tailer("risk") as tailer:
            excerpt = next(tailer)
            print("second run gets", excerpt.data, "and fails before it is done")
            print(int(excerpt.data))

        with quire.open(path) as queue, queue.tailer("risk") as tailer:
            print("third run gets ", list(tailer.payloads()))
            stored = queue.table_value("index.risk")
            print("stored position", hex(stored or 0))


if __name__ == "__main__":
    main()
