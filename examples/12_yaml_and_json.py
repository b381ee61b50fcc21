"""Messages as text: YAML and JSON in, YAML, JSON and a dump out."""

import sys
from tempfile import TemporaryDirectory

import quire

CALL = """
say: !Greeting {
  text: hello,
  times: !short 3
}
"""


def main() -> None:
    with (
        TemporaryDirectory() as folder,
        quire.open(f"{folder}/greetings") as queue,
        queue.appender() as appender,
    ):
        appender.write_yaml(CALL)
        appender.write_json('{"say": {"@Greeting": {"text": "hello again"}}}')

        with queue.tailer() as tailer:
            for excerpt in tailer:
                print(excerpt.to_json())
                print(excerpt.to_yaml())
                print(excerpt.to_dict())

        queue.dump(sys.stdout)


if __name__ == "__main__":
    main()
