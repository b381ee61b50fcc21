"""A producer as a process: writes `PRODUCER NUMBER` messages and says each index it was given."""

import sys

import quire


def main(path: str, producer: str, count: str) -> None:
    with quire.open(path, format="quick-queue") as queue:
        appender = queue.appender(None if producer == "-" else producer)
        for number in range(int(count)):
            index = appender.write_bytes(b"%s %d" % (producer.encode(), number))
            sys.stdout.write(f"{index}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
