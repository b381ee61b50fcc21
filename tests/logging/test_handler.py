"""Log records in a queue: what is kept, and that logging never hurts the program."""

from __future__ import annotations

import io
import logging
import logging.config
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import quire
import quire.logging
from cli_runs import Cli
from queues import DAY_MS, START_MS, exit_code, fork


@pytest.fixture
def handler(path: Path) -> Iterator[quire.logging.Handler]:
    found = quire.logging.Handler(path)
    yield found
    found.close()


@pytest.fixture
def logger(handler: quire.logging.Handler) -> logging.Logger:
    return logger_of(handler)


def logger_of(handler: logging.Handler) -> logging.Logger:
    """Return a logger that the rest of the process does not know."""
    found = logging.Logger("orders.eu")  # noqa: LOG001
    found.addHandler(handler)
    return found


def records(path: Path) -> list[quire.logging.Record]:
    with quire.open(path, read_only=True) as queue:
        return [it.to_message(quire.logging.Record) for it in queue.tailer()]


class Kept(logging.Handler):
    """Keeps what the standard library makes of each record."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record)


def test_every_attribute_of_a_record_is_kept(path: Path, logger: logging.Logger) -> None:
    logger.addHandler(kept := Kept())
    logger.warning("order %s at %.2f", 17, 1.5)
    (found,), (expected,) = records(path), kept.found
    assert (found.time, found.level, found.severity) == (
        int(expected.created * 1e9),
        "WARNING",
        30,
    )
    assert (found.logger, found.message, found.args) == ("orders.eu", "order %s at %.2f", [17, 1.5])
    assert (found.file, found.line) == (expected.pathname, expected.lineno)
    assert (found.function, found.thread, found.process) == (
        expected.funcName,
        threading.current_thread().name,
        expected.process,
    )
    assert (found.exception, found.stack, found.extra) == (None, None, None)


@pytest.mark.parametrize(
    ("template", "args"),
    [
        ("plain", ()),
        ("100 %", ()),
        ("%s %r %d", ("text", "text", True)),
        ("%(side)s %(size)d", ({"side": "buy", "size": 3},)),
        ("%s", ([1, 2],)),
        ("%s", (None,)),
        ("%r", (Path("x"),)),
        ("%(a)s", ({"a": Path("x")},)),
        (Path("not/text"), ()),
        ("%s", (1.5e300,)),
        ("%s", ("naïve ☃",)),
    ],
)
def test_the_text_is_that_of_the_standard_library(
    template: object, args: tuple[object, ...], path: Path, logger: logging.Logger
) -> None:
    logger.addHandler(kept := Kept())
    logger.info(template, *args)
    (found,), (expected,) = records(path), kept.found
    assert found.text == expected.getMessage()
    lines = [
        logging.Formatter(
            "%(asctime)s.%(msecs)d %(levelname)s %(filename)s:%(lineno)d"
            " %(funcName)s %(threadName)s %(process)d %(name)s %(message)s"
        ).format(it)
        for it in (found.to_log_record(), expected)
    ]
    assert lines[0] == lines[1]


def test_arguments_that_change_later_are_formatted_at_once(
    path: Path, logger: logging.Logger
) -> None:
    seen = [1]
    logger.info("seen %s", seen)
    seen.append(2)
    (found,) = records(path)
    assert (found.message, found.args) == ("seen [1]", None)


def test_arguments_that_do_not_fit_are_shown_beside_the_text(
    path: Path, logger: logging.Logger
) -> None:
    logger.info("%d of %d", "one")  # noqa: PLE1206
    assert records(path)[0].text == "%d of %d ['one']"


def test_exceptions_are_kept_with_their_causes(path: Path, logger: logging.Logger) -> None:
    try:
        try:
            int("x")
        except ValueError as error:
            raise quire.errors.ConvertError("no number") from error
    except quire.QuireError:
        logger.exception("refused")
    (found,) = records(path)
    assert found.exception
    assert (found.exception.type, found.exception.message) == (
        "quire.errors.ConvertError",
        "no number",
    )
    assert "ValueError: invalid literal" in found.exception.traceback
    shown = logging.Formatter("%(message)s").format(found.to_log_record())
    assert shown == f"refused\n{found.exception.traceback}"


def test_the_stack_and_extra_fields_are_kept(path: Path, logger: logging.Logger) -> None:
    logger.info("filled", extra={"order": 17, "where": {"book": ["a", None]}}, stack_info=True)
    (found,) = records(path)
    assert found.extra == {"order": 17, "where": {"book": ["a", None]}}
    assert found.stack
    assert "test_the_stack_and_extra_fields_are_kept" in found.stack
    assert found.to_log_record().__dict__["order"] == 17


def test_an_extra_field_may_have_any_key(path: Path, logger: logging.Logger) -> None:
    extra: dict[Any, Any] = {5: "five", ("a", 1): "pair", "plain": 1}
    logger.info("filled", extra=extra)
    (found,) = records(path)
    assert found.extra == {"5": "five", "('a', 1)": "pair", "plain": 1}


def test_a_formatter_before_adds_nothing(path: Path, logger: logging.Logger) -> None:
    shown = logging.StreamHandler(io.StringIO())
    shown.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.handlers.insert(0, shown)
    logger.info("once")
    assert records(path)[0].extra is None


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("args", "extra", "text"),
    [
        ((2**80,), {}, str(2**80)),
        (("a lone \ud800",), {}, "a lone \\ud800"),
        ((1,), {"it": 2**80}, "1"),
        ((1,), {"it": Path("x")}, "1"),
        ((1,), {"\ud800": "\ud800"}, "1"),
    ],
)
def test_what_has_no_encoding_is_written_as_text(
    args: tuple[object, ...],
    extra: dict[str, object],
    text: str,
    path: Path,
    logger: logging.Logger,
) -> None:
    logger.info("%s", *args, extra=extra)
    (found,) = records(path)
    assert found.text == text
    assert len(found.extra or {}) == len(extra)


class Order:
    def __repr__(self) -> str:
        return "Order(7)"


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Order(), "Order(7)"),
        ([1, Order()], "[1, Order(7)]"),
        ("a lone \ud800", "a lone \\ud800"),
        (2**80, str(2**80)),
        (Unprintable(), "<unprintable Unprintable>"),
    ],
    ids=["object", "list", "surrogate", "huge number", "unprintable"],
)
def test_only_a_value_without_an_encoding_becomes_text(
    value: object, stored: str, path: Path, logger: logging.Logger
) -> None:
    logger.info("a", extra={"account": "A7", "qty": 3, "order": value, "tags": ["x"]})
    (found,) = records(path)
    assert found.extra == {"account": "A7", "qty": 3, "order": stored, "tags": ["x"]}


def test_a_text_without_an_encoding_leaves_the_values(path: Path, logger: logging.Logger) -> None:
    logger.info("a lone \ud800", extra={"account": "A7", "qty": 3})
    (found,) = records(path)
    assert (found.text, found.extra) == ("a lone \\ud800", {"account": "A7", "qty": 3})


def test_nothing_is_raised_into_the_program(
    handler: quire.logging.Handler,
    logger: logging.Logger,
    path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    logger.info("%s", Unprintable())
    logger.info("x" * 2**25)
    handler.close()
    logger.info("late")
    errors = capsys.readouterr().err
    assert errors.count("--- Logging error ---") == 3
    assert "quire.errors" in errors
    assert records(path) == []


def test_one_that_could_not_be_opened_is_closed_at_exit_without_a_word(tmp_path: Path) -> None:
    program = """
import logging.handlers, sys, quire, quire.logging
buffer = logging.handlers.MemoryHandler(10, target=logging.FileHandler(sys.argv[1]))
buffer.emit(logging.makeLogRecord({"msg": "buffered", "levelno": 20}))
try:
    quire.logging.Handler("nowhere/at/all", create=False)
except quire.QuireError as error:
    kept = error  # and with it the handler, by its traceback
"""
    log = tmp_path / "log"
    command = [sys.executable, "-c", program, str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert log.read_text("utf-8") == "buffered\n"


def test_a_forked_child_logs_to_the_same_queue(path: Path, logger: logging.Logger) -> None:
    logger.info("before")

    def child() -> None:
        for number in range(10):
            logger.info("child %d", number)
        logger.handlers[0].close()

    assert exit_code(fork(child)) == 0
    logger.info("after")
    texts = [it.text for it in records(path)]
    assert texts == ["before", *(f"child {number}" for number in range(10)), "after"]
    assert len({it.process for it in records(path)}) == 2


def test_a_forked_child_opens_the_queue_of_the_program_again(queue: quire.JournalQueue) -> None:
    logger = logger_of(quire.logging.Handler(queue))
    assert exit_code(fork(lambda: logger.info("child"))) == 0
    logger.info("parent")
    found = [it.to_message(quire.logging.Record).text for it in queue.tailer()]
    assert found == ["child", "parent"]
    logger.handlers[0].close()
    assert not queue.closed


@pytest.mark.parametrize("key", [None, b"k" * 32])
def test_a_queue_that_was_renamed_is_begun_again(path: Path, key: bytes | None) -> None:
    clock = quire.ManualClock(START_MS)
    handler = quire.logging.Handler(path, key=key, clock=clock, roll_cycle="DAILY")
    logger, moved = logger_of(handler), path.with_name("moved")
    logger.info("before")
    path.rename(moved)
    clock.now_ms += DAY_MS
    logger.info("\udc80")
    logger.info("after")
    assert handler.queue.roll_cycle.name == "DAILY"
    handler.close()
    with quire.KeyRing({"a": key or b"k" * 32}, current="a").as_default():
        assert [it.text for it in records(moved)] == ["before"]
        assert [it.text for it in records(path)] == ["\\udc80", "after"]


@pytest.mark.parametrize("how", ["create", "open"])
def test_a_queue_that_is_not_to_be_made_is_not_begun_again(
    path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock) as queue:
        handler = quire.logging.Handler(path, create=False, clock=clock)
        logger = logger_of(handler if how == "create" else quire.logging.Handler(queue))
        logger.info("before")
        path.rename(path.with_name("moved"))
        clock.now_ms += DAY_MS
        logger.info("after")
        assert not path.exists()
        assert "--- Logging error ---" in capsys.readouterr().err
        handler.close()


def test_a_forked_child_has_the_key(path: Path) -> None:
    ring = quire.KeyRing({"a": b"k" * 32}, current="a")
    given = quire.logging.Handler(path, key=b"k" * 32, allow_plain=True)
    with ring.as_default():
        by_default = quire.logging.Handler(path.with_name("default"), key=None)
    for handler in (given, by_default):
        logger = logger_of(handler)
        logger.info("parent")
        assert exit_code(fork(partial(logger.info, "child"))) == 0
        handler.close()

    with ring.as_default(allow_plain=True):
        assert [it.text for it in records(path)] == ["parent", "child"]
    assert [it.text for it in records(path.with_name("default"))] == ["parent", "child"]


def test_threads_log_whole_records(path: Path, logger: logging.Logger) -> None:
    def log(name: int) -> None:
        for number in range(200):
            logger.info("%d %d", name, number)

    threads = [threading.Thread(target=log, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [it.args for it in records(path)]
    assert sorted(found) == [[name, number] for name in range(4) for number in range(200)]


def test_warnings_of_the_queue_itself_may_go_into_it(path: Path) -> None:
    handler = quire.logging.Handler(path, layout=quire.LayoutOptions(low_space_percent=100))
    own = logging.getLogger("quire")
    own.addHandler(handler)
    try:
        handler.handle(logging.makeLogRecord({"msg": "first"}))
    finally:
        own.removeHandler(handler)
        handler.close()
    texts = [it.text for it in records(path)]
    assert texts[0] == "first"
    assert any("space" in text for text in texts[1:])


def test_a_dictionary_configures_it(path: Path) -> None:
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {
                "queue": {
                    "class": "quire.logging.Handler",
                    "level": "WARNING",
                    "queue": str(path),
                    "roll_cycle": "HOURLY",
                }
            },
            "loggers": {"test.configured": {"level": "DEBUG", "handlers": ["queue"]}},
        }
    )
    logger = logging.getLogger("test.configured")
    (handler,) = logger.handlers
    assert isinstance(handler, quire.logging.Handler)
    assert handler.queue.roll_cycle.name == "HOURLY"
    logger.info("too low")
    logger.error("written")
    logger.removeHandler(handler)
    handler.close()
    assert handler.queue.closed
    assert [it.text for it in records(path)] == ["written"]


@pytest.mark.parametrize("kind", ["vanilla", "quick-queue"])
def test_queues_without_documents_are_refused(kind: str, path: Path) -> None:
    opened: Any = quire.open
    with (
        opened(path, format=kind) as queue,
        pytest.raises(TypeError, match="invalid queue: expected a path, or a Chronicle queue"),
    ):
        quire.logging.Handler(queue)


def test_wrong_arguments_are_named(path: Path, queue: quire.JournalQueue) -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="invalid queue"):
        quire.logging.Handler(wrong)
    with pytest.raises(TypeError, match="takes no options: options=\\['roll_cycle'\\]"):
        quire.logging.Handler(queue, roll_cycle="DAILY")
    with pytest.raises(TypeError, match="unexpected keyword"):
        quire.logging.Handler(path / "x", color="red")


def test_the_command_line_finds_records(path: Path, logger: logging.Logger, cli: Cli) -> None:
    logger.info("fine")
    logger.error("order %s rejected", 17, extra={"order": 17})
    try:
        int("x")
    except ValueError:
        logger.exception("broken")
    for where, expected in (
        ("severity >= 40 and extra.order = 17", "order %s rejected"),
        ("exception.type = 'ValueError'", "broken"),
    ):
        shown = cli("read", str(path), "--where", where, "--columns", "message")
        assert expected in shown.out, shown
        assert "fine" not in shown.out


def test_records_become_columns(path: Path, logger: logging.Logger) -> None:
    logger.info("order %s", 17, extra={"order": 17})
    schema = quire.logging.schema(extra={"order": "int64"})
    with quire.open(path, read_only=True) as queue:
        (row,) = queue.tailer().read_batch(schema=schema).to_pylist()
    assert (row["level"], row["message"], row["args"], row["extra"]) == (
        "INFO",
        "order %s",
        ["17"],
        {"order": 17},
    )
    assert row["time"].value == records(path)[0].time


def test_a_name_that_messages_cannot_have_is_escaped(path: Path, logger: logging.Logger) -> None:
    """Such a record was dropped."""
    name, surrogate = "\N{CYRILLIC SMALL LETTER I}d", "\ud800"
    logger.info("sent", extra={name: 1, surrogate: 2, "caf\N{LATIN SMALL LETTER E WITH ACUTE}": 3})
    logger.info("nested", extra={"kept": {name: 1}})
    logger.info("by %(\N{CYRILLIC SMALL LETTER I}d)s", {name: "name"})
    sent, nested, by_name = records(path)
    assert sent.extra == {"\\u0438d": 1, "\\ud800": 2, "caf\N{LATIN SMALL LETTER E WITH ACUTE}": 3}
    assert nested.extra == {"kept": repr({name: 1})}
    assert by_name.text == "by name"
