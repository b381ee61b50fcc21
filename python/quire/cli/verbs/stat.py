"""``quire stat``: what a queue is, what it holds, who reads it, and who holds its locks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import click

import quire
from quire._common.terminal import escape_line
from quire._common.units import duration_text, size_text
from quire.cli.exit_codes import error_text, print_error
from quire.cli.output.group_facts import members_text
from quire.cli.output.remote_facts import facts_of_remote
from quire.cli.output.row_formats import counted, json_text, number_text, print_rows
from quire.cli.output.stat_facts import facts_of
from quire.cli.output.stat_text import columns, time_text
from quire.cli.parameters import QUEUE, value_errors_as_usage
from quire.cli.reading.sources import Source, sources_of
from quire.cli.remote_options import Place
from quire.cli.shared_options import check_json, row_format_option
from quire.formats import detection
from quire.formats.adapters import adapter_named
from quire.maintenance.kinds import KINDS
from quire.opening import settings
from quire.opening.options import OPTIONS
from quire.opening.resolving import applied_to

_TAILER: Final = "index."
_HELD_SINCE: Final = "quire.heldSince"  # shown beside the lock
_NAMES: Final = {
    "format": "format",
    "roll_cycle": "roll cycle",
    "cycle_format": "cycle format",
    "cycle_length_ms": "cycle length, ms",
    "form": "writers",
    "page_bytes": "page bytes",
    "wire_type": "wire type",
    "source_id": "source id",
}
_WRITERS: Final = {"single": "one", "shared": "named producers", None: "none yet"}


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
    "groups",
    "max_group_lag",
    "wrong",
)


@click.command()
@click.argument("path", type=QUEUE)
@click.option("--json", "as_json", is_flag=True, help="One indented JSON object per queue.")
@click.option(
    "--config", is_flag=True, help="Show the options set from outside, and where each was set."
)
@row_format_option()
def stat(path: Place, *, as_json: bool, config: bool, style: str) -> None:
    """
    Describe a queue, one of its files, or each queue of a directory.

    For a quire:// address it shows what the server reports: no files, processes or locks.

    Changes nothing and waits for no lock: the queue may be in use by Java or Quire, or be on a
    read-only disk. If it is in use, its files are described as of slightly different moments.

    yaml, json and jsonl print everything, one object per queue; csv and arrow print one row per
    queue.

    --config instead shows the options with which quire.open would open the queue, or create it, and
    where each was set: in an environment variable, such as QUIRE_TIMEOUT_S, in a quire.toml, or
    nowhere. Options stored in an existing queue at its creation are not included.

    \b
    Examples:
      quire stat orders
      quire stat orders --json | jq '.tailers[] | select(.lag > 1000)'
      quire stat /var/queues --format csv
      QUIRE_DURABILITY=batch quire stat orders --config
    """  # noqa: D301 - click reads the backspace
    check_json(style, as_json=as_json)
    if config:
        if not isinstance(path, Path):
            raise click.UsageError(f"--config works only for local queues: path={path}")
        with value_errors_as_usage():
            rows = [*_options_of(path)]
        print_rows("json" if as_json else style, ("option", "value", "origin"), rows)
        _name_misspelt()
        return
    failed: list[str] = []
    found = _each(sources_of(path), failed)
    if as_json:
        for _, facts in found:
            click.echo(json_text(facts, indent=2))
    elif style == "text":
        _show(found)
    else:
        _print_rows(style, [facts for _, facts in found])
    if failed:
        for text in failed[:-1]:
            print_error(text)
        raise click.ClickException(failed[-1])


def _options_of(path: Place) -> Iterator[dict[str, Any]]:
    """Yield what can be set for a queue, or a new one, as ``quire.open`` would take it."""
    kind = detection.format_of(str(path))
    exists, kind = kind is not None, adapter_named(kind).name
    outside = settings.settings()
    found = applied_to(kind, str(path), {}, outside, exists=exists)
    found |= {name: it for name, it in outside.items() if not OPTIONS[name].opens}
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
        return facts_of(queue) if isinstance(source.path, Path) else facts_of_remote(queue)


def _show(found: Iterable[tuple[str, dict[str, Any]]]) -> None:
    between = ""
    for name, facts in found:
        if name:
            click.echo(f"{between}==> {escape_line(name)} <==")
        click.echo("\n".join(_lines(facts)))
        between = "\n"


def _print_rows(style: str, found: list[dict[str, Any]]) -> None:
    if style in {"csv", "arrow"}:
        print_rows(style, _COLUMNS, map(_row_of, found))
        return
    names = [*dict.fromkeys(name for facts in found for name in facts)]
    print_rows(style, names, ({name: it.get(name) for name in names} for it in found))


def _row_of(facts: dict[str, Any]) -> dict[str, Any]:
    tailers: list[dict[str, Any]] = facts.get("tailers", [])
    groups: list[dict[str, Any]] = facts.get("groups", [])
    wrong = (it["wrong"] for it in (*facts["files"], *groups) if it["wrong"] is not None)
    return {name: facts.get(name) for name in _COLUMNS} | {
        "files": None if facts["size"] is None else len(facts["files"]),
        "tailers": len(tailers),
        "max_lag": max((it["lag"] for it in tailers), default=None),
        "groups": len(groups),
        "max_group_lag": max((it["lag"] or 0 for it in groups), default=None),
        "wrong": next(wrong, None),
    }


def _waiting(ring: dict[str, Any] | None) -> Iterator[str]:
    """Yield what there is to say of messages that are not in the queue yet."""
    if ring is not None and ring["wrong"] is not None:
        yield escape_line(ring["wrong"])
    elif ring is not None and ring["pending"]:
        yield f"{counted(ring['pending'], 'message')}, {size_text(ring['used'])}, not appended yet"


def _replicated(found: dict[str, Any] | None) -> Iterator[str]:
    """Yield the queue's role in a replication, and up to where it is acknowledged."""
    if found is not None and found["wrong"] is not None:
        yield escape_line(found["wrong"])
    elif found is not None:
        acknowledged = found["acknowledged_index"]
        known = "" if acknowledged is None else f", acknowledged up to {acknowledged}"
        yield f"{found['role']} of epoch {found['epoch']}{known}"


def _roll_text(facts: dict[str, Any]) -> str:
    text = f"{facts['roll_cycle']}, epoch {time_text(facts['epoch_ms'])}"
    # With a zone the epoch is a local time.
    zone = facts["time_zone"]
    return text if zone == "UTC" else f"{text.removesuffix('Z')} {zone}"


def _shown(key: str, facts: dict[str, Any]) -> object:
    if key == "roll_cycle":
        return _roll_text(facts)
    return _WRITERS[facts[key]] if key == "form" else facts[key]


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    files: list[dict[str, Any]] = facts["files"]
    yield from columns(
        ("path", facts["path"]),
        *((name, _shown(key, facts)) for key, name in _NAMES.items() if key in facts),
        ("messages", number_text(facts["messages"])),
        ("first index", facts["first_index"] or "-"),
        ("last index", facts["last_index"] or "-"),
        *(("files", it) for it in _files_text(facts)),
        *(("in the ring", it) for it in _waiting(facts.get("ring"))),
        *(("replication", it) for it in _replicated(facts.get("replication"))),
        *((_name(key), _holder_text(it)) for key, it in facts.get("locks", {}).items()),
        *(("open in", it) for it in _users(facts.get("processes"))),
        *(("table", it) for it in _table_text(facts)),
    )
    if files:
        yield ""
        names = [name for name in ("from", "producer") if any(name in it for it in files)]
        rates = ["per second"] if "state" in files[0] else []
        yield from columns(
            ("file", *names, "messages", *rates, "on disk", "size", ""),
            *(_row(file, names, has_rate=bool(rates)) for file in files),
        )
    if cycles := facts.get("cycles"):
        yield ""
        rows = ((f"{it['cycle']}", it["from"] or "-", it["messages"]) for it in cycles)
        heading = ("cycle", "from", "messages")
        yield from columns(heading, *((*two, number_text(count)) for *two, count in rows))
    yield from _tables_of(facts)


def _files_text(facts: dict[str, Any]) -> Iterator[str]:
    """Yield how many files there are, and how large; nothing where only a server knows."""
    if facts["size"] is not None:
        on_disk, size = size_text(facts["on_disk"]), size_text(facts["size"])
        yield f"{len(facts['files'])}, {on_disk} on disk of {size}"


def _tables_of(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the named tailers, and the keys of the table that stand nowhere else."""
    tailers: list[dict[str, Any]] = facts.get("tailers", [])
    if tailers:
        yield ""
        rows = ((it["name"], it["index"], number_text(it["lag"])) for it in tailers)
        yield from columns(("tailer", "next index", "lag"), *rows)
    replication: dict[str, Any] = facts.get("replication") or {}
    replicas: list[dict[str, Any]] = replication.get("replicas", [])
    if replicas:
        yield ""
        yield from columns(
            ("replica", "acknowledged", "lag", "level", "address", ""), *map(_replica_row, replicas)
        )
    groups: list[dict[str, Any]] = facts.get("groups", [])
    if groups:
        yield ""
        yield from columns(
            ("group", "next index", "lag", "pending", "oldest", "members"), *map(_group_row, groups)
        )
    shown = {*facts.get("locks", ()), _HELD_SINCE, *(_TAILER + it["name"] for it in tailers)}
    keys = {key: value for key, value in facts.get("keys", {}).items() if key not in shown}
    if keys:
        yield ""
        yield from columns(("key", "value"), *keys.items())


def _replica_row(replica: dict[str, Any]) -> tuple[str, ...]:
    states = ("in sync" if replica["in_sync"] else "", "" if replica["connected"] else "away")
    return (
        escape_line(replica["name"]),
        replica["acknowledged_index"] or "-",
        number_text(replica["lag_messages"]),
        replica["level"],
        escape_line(replica["address"]),
        ", ".join(filter(None, states)),
    )


def _group_row(group: dict[str, Any]) -> tuple[str, ...]:
    if group["wrong"] is not None:
        return group["name"], escape_line(group["wrong"]), "-", "-", "-", "-"
    return (
        group["name"],
        group["next_index"],
        number_text(group["lag"]),
        number_text(group["pending"]),
        duration_text(group["oldest_s"]),
        escape_line(members_text(group["members"])) or "-",
    )


def _users(processes: list[dict[str, Any]] | None) -> Iterator[str]:
    for it in processes or []:
        yield f"process {it['pid']} ({it['command']}), {it['files']} files"
    if processes == []:
        yield "no process"


def _table_text(facts: dict[str, Any]) -> Iterator[str]:
    if facts.get("table_is_almost_full"):
        yield f"{facts['table_used_percent']} % full: {KINDS['table-full'].meaning}"


def _name(lock: str) -> str:
    return lock.removeprefix("chronicle.").replace(".lock", " lock")


def _holder_text(holder: dict[str, Any] | None) -> str:
    if holder is None:
        return "free"
    dead = "" if holder["lives"] else ", which is dead"
    return f"held by process {holder['pid']}{_since(holder['since'])}{dead}"


def _since(time: str | None) -> str:
    return "" if time is None else f" since {time}"


def _row(file: dict[str, Any], names: list[str], *, has_rate: bool) -> tuple[str, ...]:
    rate = file.get("per_second") or file.get("mean_per_second")
    rates = ["-" if rate is None else f"{rate:.3g}"] if has_rate else []
    return (
        file["name"],
        *(file[name] or "-" for name in names),
        "-" if file["messages"] is None else number_text(file["messages"]),
        *rates,
        size_text(file["on_disk"]),
        size_text(file["size"]),
        file.get("state") or ("damaged" if file["wrong"] else ""),
    )
