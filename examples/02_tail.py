"""Read forward, from the middle, and backward; then follow another thread as it appends."""

import threading
from tempfile import TemporaryDirectory

import quire


def produce(queue: quire.JournalQueue) -> None:
    with queue.appender() as appender:
        for number in range(5):
            appender.write_text(f"live {number}")


def main() -> None:
    with TemporaryDirectory() as folder, quire.open(f"{folder}/ticks") as queue:
        with queue.appender() as appender:
            indexes = [appender.write_text(f"tick {number}") for number in range(10)]

        tailer = queue.tailer()
        print("first    ", tailer.read_text())
        print("the rest ", len(list(tailer)), "then", tailer.read_text())

        tailer.move_to_index(indexes[7])
        print("moved to ", tailer.read_text())
        tailer.direction = "backward"
        tailer.to_end()
        print("backward ", [tailer.read_text() for _ in range(3)])

        tailer.direction = "forward"
        tailer.to_end()
        producer = threading.Thread(target=produce, args=(queue,))
        producer.start()
        for excerpt in tailer.follow(timeout_s=0.5):
            print("followed ", hex(excerpt.index), excerpt.data)
        producer.join()


if __name__ == "__main__":
    main()
