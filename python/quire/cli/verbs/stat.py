"""``quire stat``: what a queue is, what it holds, who reads it, and who holds its locks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

import quire
from quire import _native
from quire._common.terminal import escape_line
from quire._common.units import size_text
from quire.cli.exit_codes import error_text, print_error
from quire.cli.output import stat_older
from quire.cli.output.row_formats import print_rows
from quire.cli.output.stat_text import columns, hex_text, sizes_of, time_text
from quire.cli.parameters import PATH, value_errors_as_usage
from quire.cli.reading.sources import Source, sources_of
from quire.cli.shared_options import check_json, row_format_option
from quire.formats import detection
from quire.formats.adapters import adapter_named
from quire.formats.detection import is_compressed
from quire.maintenance.files import identities_of, users_of
from quire.maintenance.kinds import KINDS
from quire.opening import settings
from quire.opening.discovery import TABLE
from quire.opening.options import OPTIONS
from quire.ranges.stored_positions import OUTPUT_POSITION, stored_position
from quire.write_lock import lock_keys

_TAILER: Final = "index."
_ENDED: Final = {"eof", "compressed"}


# What is one value each: the columns of csv and arrow.
_COLUMNS: Final = (
    "path",
    "format",
    "roll_cycle",
    "messages",
    "first_index",
    "last_index",
    "files",
    "size",
    "on_disk",
    "tailers",
    "max_lag",
    "wrong",
)


@click.command()
@click.argument("path", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a queue, indented.")
@click.option("--config", is_flag=True, help="The options set from outside, and where.")
@row_format_option()
def stat(path: Path, *, as_json: bool, config: bool, style: str) -> None:
    """
    Describe a queue, one of its files, or each queue of a directory.

    Changes nothing and waits for no lock: the queue may be in use by Java or Quire, or be on a
    read-only disk. In a queue in use, files are described as of slightly different moments.

    yaml, json and jsonl have everything, an object a queue; csv and arrow have a row a queue.

    --config instead shows the options with which quire.open would open the queue, or create it, and
    where each was set: in an environment variable, such as QUIRE_TIMEOUT_S, in a quire.toml, or
    nowhere. What an existing queue was created with is not among them.

    \b
    Examples:
      quire stat orders
      quire stat orders --json | jq '.tailers[] | select(.lag > 1000)'
      quire stat /var/queues --format csv
      QUIRE_DURABILITY=batch quire stat orders --config
    """  # noqa: D301 - click reads the backspace
    check_json(style, as_json=as_json)
    if config:
        with value_errors_as_usage():
            rows = [*_options_of(path)]
        print_rows("json" if as_json else style, ("option", "value", "origin"), rows)
        _name_misspelt()
        return
    failed: list[str] = []
    found = _each(sources_of(path), failed)
    if as_json:
        import json

        for _, facts in found:
            click.echo(json.dumps(facts, indent=2))
    elif style == "text":
        _show(found)
    else:
        _print_rows(style, [facts for _, facts in found])
    if failed:
        for text in failed[:-1]:
            print_error(text)
        raise click.ClickException(failed[-1])


def _options_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what can be set for a queue, or a new one, as ``quire.open`` would take it."""
    kind = detection.format_of(str(path))
    exists, kind = kind is not None, adapter_named(kind).name
    found = settings.for_opening(kind, {}, settings.settings(), exists=exists)
    for name in sorted(settings.settable(kind, exists=exists)):
        value, origin = found.get(name, (OPTIONS[name].default, "default"))
        if name == "file_mode":
            value = f"{value:#o}"
        yield {"option": name, "value": value, "origin": origin}


def _name_misspelt() -> None:
    for variable, meant in sorted(settings.misspelt()):
        hint = "" if meant is None else f" (did you mean {meant}?)"
        print_error(f"ignored, as it names no option: variable={variable}{hint}")


def _each(sources: list[Source], failed: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the facts of each queue with its name; add what is wrong with it to *failed*."""
    for source in sources:
        try:
            with value_errors_as_usage():
                facts = _described(source)
        except (quire.QuireError, OSError) as error:
            if len(sources) == 1:
                raise
            failed.append(error_text(error))
            continue
        wrong = [file["wrong"] for file in facts["files"] if file["wrong"] is not None]
        failed.extend(wrong[:1])
        yield source.name, facts


def _described(source: Source) -> dict[str, Any]:
    with source.open() as queue:
        if isinstance(queue, quire.JournalQueue):
            return {**facts_of(queue), "processes": _processes(queue)}
        return stat_older.facts_of(queue)


def _show(found: Iterable[tuple[str, dict[str, Any]]]) -> None:
    between = ""
    for name, facts in found:
        if name:
            click.echo(f"{between}==> {escape_line(name)} <==")
        lines = _lines if "roll_cycle" in facts else stat_older.lines
        click.echo("\n".join(lines(facts)))
        between = "\n"


def _print_rows(style: str, found: list[dict[str, Any]]) -> None:
    if style in {"csv", "arrow"}:
        print_rows(style, _COLUMNS, map(_row_of, found))
        return
    names = [*dict.fromkeys(name for facts in found for name in facts)]
    print_rows(style, names, ({name: it.get(name) for name in names} for it in found))


def _row_of(facts: dict[str, Any]) -> dict[str, Any]:
    tailers: list[dict[str, Any]] = facts.get("tailers", [])
    wrong = (file["wrong"] for file in facts["files"] if file["wrong"] is not None)
    return {name: facts.get(name) for name in _COLUMNS} | {
        "files": len(facts["files"]),
        "tailers": len(tailers),
        "max_lag": max((it["lag"] for it in tailers), default=None),
        "wrong": next(wrong, None),
    }


def facts_of(queue: quire.JournalQueue) -> dict[str, Any]:
    """Return everything that is shown about a queue, as in JSON."""
    with queue.tailer() as tailer:
        files = [_file(queue, tailer, cycle) for cycle in queue.cycles]
    filled = [(file["cycle"], file["messages"]) for file in files if file["messages"]]
    entries = dict(queue.table_entries())
    named = [it for it in queue.named_tailers() if it[0] != OUTPUT_POSITION]
    table = Path(queue.path) / "metadata.cq4t"
    roll = queue.roll_cycle
    used_percent, is_almost_full = queue._table_used() or (None, False)  # noqa: SLF001 - the package's own
    return {
        "path": queue.path,
        "format": "chronicle",
        "roll_cycle": roll.name,
        "roll_length_ms": roll.length_ms,
        "epoch_ms": queue.epoch_ms,
        "time_zone": queue.roll_time_zone,
        "wire_type": queue.wire_type,
        "source_id": queue.source_id,
        "messages": sum(file["messages"] for file in files),
        "first_index": hex_text(roll.to_index(filled[0][0], 0)) if filled else None,
        "last_index": hex_text(roll.to_index(filled[-1][0], filled[-1][1] - 1)) if filled else None,
        "size": sum(file["size"] for file in files),
        "on_disk": sum(file["on_disk"] for file in files),
        "table": sizes_of(table) if table.exists() else None,
        "table_used_percent": used_percent,
        "table_is_almost_full": is_almost_full,
        "ring": _ring(queue),
        "files": files,
        "tailers": [_tailer(queue, name, index, files) for name, index in named],
        "locks": {key: _lock(queue, key) for key in lock_keys(queue)},
        "keys": entries,
    }


def _ring(queue: quire.JournalQueue) -> dict[str, Any] | None:
    """Return what waits in the ring of asynchronous appends; None without a ring."""
    if not Path(queue.path).is_dir():
        return None
    try:
        found = _native.ring_stats(queue.path)  # queue.metrics() imports more than stat needs
    except quire.QuireError as error:
        return {"pending": None, "used": None, "wrong": str(error)}
    if found is None:
        return None
    _, used, _, pending, _ = found
    return {"pending": pending, "used": used, "wrong": None}


def _waiting(ring: dict[str, Any] | None) -> Iterator[str]:
    """Yield what there is to say of messages that are not in the queue yet."""
    if ring is not None and ring["wrong"] is not None:
        yield escape_line(ring["wrong"])
    elif ring is not None and ring["pending"]:
        yield f"{ring['pending']:,} messages, {size_text(ring['used'])}, not appended yet"


def _processes(queue: quire.JournalQueue) -> list[dict[str, Any]] | None:
    """Return which other processes have files of the queue open; None where nothing says it."""
    files = [Path(queue.file_for_cycle(cycle)) for cycle in queue.cycles]
    try:
        users, _ = users_of(identities_of([*files, Path(queue.path) / TABLE]))
    except quire.errors.UnsupportedError:
        return None
    counts = Counter(user for found in users.values() for user in found)
    return [
        {"pid": user.pid, "command": user.command, "files": count}
        for user, count in sorted(counts.items())
        if user.pid != os.getpid()
    ]


def _file(queue: quire.JournalQueue, tailer: quire.JournalTailer, cycle: int) -> dict[str, Any]:
    path = Path(queue.file_for_cycle(cycle))
    length_ms = queue.roll_cycle.length_ms
    used, messages, state, rate, wrong = 0, 0, "not ready", None, None
    try:
        if (end := queue.end_of_cycle(cycle)) is not None:
            used, messages, has_eof = end
            state = "eof" if has_eof else "open"
            if is_compressed(path.name):
                state = "compressed"  # its times would take decompressing it
            else:
                rate = _rate(queue, tailer, cycle, messages)
    except quire.errors.CorruptError as error:
        state, wrong = "damaged", str(error)
    try:
        sizes = sizes_of(path)
    except FileNotFoundError:  # removed a moment ago
        sizes = {"size": 0, "on_disk": 0}
    return {
        "name": path.name,
        "cycle": cycle,
        "from": time_text(queue.cycle_start_ms(cycle)),
        "messages": messages,
        "per_second": rate,
        "mean_per_second": messages * 1000 / length_ms if state in _ENDED else None,
        "used": used,
        **sizes,
        "state": state,
        "wrong": wrong,
    }


def _rate(
    queue: quire.JournalQueue, tailer: quire.JournalTailer, cycle: int, messages: int
) -> float | None:
    """Return messages per second between the first and the last; None if they have no times."""
    if messages <= 1:
        return None
    roll = queue.roll_cycle
    if (first := written_ns(tailer, roll.to_index(cycle, 0))) is None:
        return None
    last = written_ns(tailer, roll.to_index(cycle, messages - 1))
    if last is None or first >= last:
        return None  # the clock was reset in between
    return (messages - 1) * 1e9 / (last - first)


def written_ns(tailer: quire.JournalTailer, index: int) -> int | None:
    """Return when a message was written, by its history."""
    with suppress(quire.errors.WireError):
        if tailer.move_to_index(index) and tailer.read_bytes() is not None:
            history = tailer.history
            return history.timings[-1] if history is not None and history.timings else None
    return None


def _tailer(
    queue: quire.JournalQueue, name: str, index: int, files: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a tailer's place, and how many messages it has not read."""
    cycle, sequence = stored_position(queue, index)
    lag = sum(file["messages"] for file in files if file["cycle"] > cycle)
    own = (file["messages"] for file in files if file["cycle"] == cycle)
    return {
        "name": name,
        "index": hex_text(index),
        "lag": lag + sum(max(0, messages - sequence) for messages in own),
    }


def _lock(queue: quire.JournalQueue, key: str) -> dict[str, Any] | None:
    """Return who holds a lock; None while nobody does."""
    holder = queue.lock_holder(key)
    return None if holder is None else {"pid": holder[0], "lives": holder[1]}


def _roll_text(facts: dict[str, Any]) -> str:
    text = f"{facts['roll_cycle']}, epoch {time_text(facts['epoch_ms'])}"
    # With a zone the epoch is a local time.
    zone = facts["time_zone"]
    return text if zone == "UTC" else f"{text.removesuffix('Z')} {zone}"


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    files: list[dict[str, Any]] = facts["files"]
    yield from columns(
        ("path", facts["path"]),
        ("roll cycle", _roll_text(facts)),
        ("wire type", facts["wire_type"]),
        ("source id", facts["source_id"]),
        ("messages", f"{facts['messages']:,}"),
        ("first index", facts["first_index"] or "-"),
        ("last index", facts["last_index"] or "-"),
        (
            "files",
            f"{len(files)}, {size_text(facts['on_disk'])} on disk of {size_text(facts['size'])}",
        ),
        *(("in the ring", it) for it in _waiting(facts["ring"])),
        *((_name(key), _holder_text(holder)) for key, holder in facts["locks"].items()),
        *(("open in", it) for it in _users(facts["processes"])),
        *(("table", it) for it in _table_text(facts)),
    )
    if files:
        yield ""
        yield from columns(
            ("file", "from", "messages", "per second", "on disk", "size", ""),
            *(_row(file) for file in files),
        )
    if facts["tailers"]:
        yield ""
        rows = ((it["name"], it["index"], f"{it['lag']:,}") for it in facts["tailers"])
        yield from columns(("tailer", "next index", "lag"), *rows)
    shown = {*facts["locks"], *(_TAILER + it["name"] for it in facts["tailers"])}
    keys = {key: value for key, value in facts["keys"].items() if key not in shown}
    if keys:
        yield ""
        yield from columns(("key", "value"), *keys.items())


def _users(processes: list[dict[str, Any]] | None) -> Iterator[str]:
    for it in processes or []:
        yield f"process {it['pid']} ({it['command']}), {it['files']} files"
    if processes == []:
        yield "no process"


def _table_text(facts: dict[str, Any]) -> Iterator[str]:
    if facts["table_is_almost_full"]:
        yield f"{facts['table_used_percent']} % full: {KINDS['table-full'].meaning}"


def _name(lock: str) -> str:
    return lock.removeprefix("chronicle.").replace(".lock", " lock")


def _holder_text(holder: dict[str, Any] | None) -> str:
    if holder is None:
        return "free"
    return f"held by process {holder['pid']}" + ("" if holder["lives"] else ", which is dead")


def _row(file: dict[str, Any]) -> tuple[str, ...]:
    rate = file["per_second"] or file["mean_per_second"]
    return (
        file["name"],
        file["from"],
        f"{file['messages']:,}",
        "-" if rate is None else f"{rate:.3g}",
        size_text(file["on_disk"]),
        size_text(file["size"]),
        file["state"],
    )
