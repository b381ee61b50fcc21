"""Build messages step by step: whole when the block ends, absent when it raises."""

from tempfile import TemporaryDirectory

import quire


def main() -> None:
    with (
        TemporaryDirectory() as folder,
        quire.open(f"{folder}/trades") as queue,
        queue.appender() as appender,
    ):
        with appender.writing_document() as document:
            document.write("symbol", "EURUSD")
            document.write("legs", [{"price": 1.1, "size": 3}, {"price": 1.2, "size": 1}])
            print("this will be", hex(document.index))

        try:
            with appender.writing_document() as document:
                document.write("symbol", "GBPUSD")
                document.write("price", 1 / 0)
        except ZeroDivisionError:
            print("the half message is gone: messages =", queue.entry_count)

        with appender.writing_document() as document:
            document.write("symbol", "USDJPY")
            document.rollback_on_close()
        print("dropped on request: messages =", queue.entry_count)

        with queue.tailer() as tailer, tailer.reading_document() as document:
            print(len(document.bytes), "bytes in place, as a map:", document.map())


if __name__ == "__main__":
    main()
