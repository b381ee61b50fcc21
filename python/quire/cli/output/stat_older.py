"""`quire stat` of Vanilla Chronicles and Quick-Queues."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from quire._common.units import size_text
from quire._native import QuickQueue, VanillaQueue
from quire.cli.output.stat_text import columns, hex_text, sizes_of, time_text
from quire.errors import CorruptError, UnsupportedError
from quire.formats.adapters import adapter_of, numbering_of, periods_of
from quire.formats.missing import article
from quire.formats.protocols import AnyQueue
from quire.ranges.cycles import count_of, cycles_of

_DATA_FILE: Final = re.compile(r"data-(\d+)-\d+")
_NAMES: Final = {
    "format": "format",
    "cycle_format": "cycle format",
    "cycle_length_ms": "cycle length, ms",
    "form": "writers",
    "page_bytes": "page bytes",
}
_WRITERS: Final = {"single": "one", "shared": "named producers", None: "none yet"}


def facts_of(queue: AnyQueue) -> dict[str, Any]:
    """
    Return everything that is shown about a queue, as in JSON.

    Raises:
        UnsupportedError: The queue is an Indexed Chronicle.

    """
    adapter, some = adapter_of(queue), cast("Any", queue)
    if not adapter.is_written:
        raise UnsupportedError(
            f"not supported for {article(adapter.title)}: stat path={queue.path}"
        )
    own, files = _vanilla(some) if adapter.is_folder else _quick_queue(some)
    return {
        "path": queue.path,
        **own,
        "messages": sum(file["messages"] or 0 for file in files),
        "first_index": _index(queue, "first_index"),
        "last_index": _index(queue, "last_index"),
        "size": sum(file["size"] for file in files),
        "on_disk": sum(file["on_disk"] for file in files),
        "files": files,
    }


def _index(queue: AnyQueue, name: str) -> str | None:
    """Return an index as it is shown; None if there is none, or damage hides it."""
    with suppress(CorruptError):
        index = getattr(queue, name)
        return None if index is None else hex_text(index)
    return None


def lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that show the facts of a queue."""
    files: list[dict[str, Any]] = facts["files"]
    on_disk, size = size_text(facts["on_disk"]), size_text(facts["size"])
    yield from columns(
        ("path", facts["path"]),
        *((name, _shown(key, facts[key])) for key, name in _NAMES.items() if key in facts),
        ("messages", f"{facts['messages']:,}"),
        ("first index", facts["first_index"] or "-"),
        ("last index", facts["last_index"] or "-"),
        ("files", f"{len(files)}, {on_disk} on disk of {size}"),
    )
    if files:
        yield ""
        extra = "from" if "from" in files[0] else "producer"
        yield from columns(
            ("file", extra, "messages", "on disk", "size", ""),
            *(_row(file, extra) for file in files),
        )


def _shown(key: str, value: Any) -> object:  # noqa: ANN401 - of JSON
    return _WRITERS[value] if key == "form" else value


def _row(file: dict[str, Any], extra: str) -> tuple[str, ...]:
    return (
        file["name"],
        file[extra] or "-",
        "-" if file["messages"] is None else f"{file['messages']:,}",
        size_text(file["on_disk"]),
        size_text(file["size"]),
        "damaged" if file["wrong"] else "",
    )


def _vanilla(queue: VanillaQueue) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    names = ("cycle_format", "cycle_length_ms", "entries_per_cycle")
    own = {"format": "vanilla", **{name: getattr(queue, name) for name in names}}
    return own, [_cycle(queue, cycle) for cycle in queue.cycles]


def _cycle(queue: VanillaQueue, cycle: int) -> dict[str, Any]:
    folder = Path(queue.directory_for_cycle(cycle))
    messages, wrong = 0, None
    try:
        messages = count_of(queue, cycle)
    except CorruptError as error:
        wrong = str(error)
    files = _files_of(folder)
    threads = {found[1] for file in files if (found := _DATA_FILE.fullmatch(file.name))}
    sizes = _summed(files)
    return {
        "name": folder.relative_to(queue.path).as_posix(),
        "cycle": cycle,
        "from": time_text(periods_of(queue).start_ms(cycle)),
        "messages": messages,
        "threads": len(threads),
        **sizes,
        "wrong": wrong,
    }


def _quick_queue(queue: QuickQueue) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    root, step = Path(queue.path), numbering_of(queue).step
    counts = {cycle: count_of(queue, cycle) for cycle in cycles_of(queue)}
    producers = sorted(file.stem for file in root.glob("*.qm"))
    pages = [
        file
        for pattern in ("*.qx", "*.qmx", "*.qd", "*/*.qd")
        for file in sorted(root.glob(pattern), key=lambda file: (file.parent, len(file.stem), file))
    ]
    own = {
        "format": "quick-queue",
        "form": queue.form,
        "page_bytes": queue.page_bytes,
        "entries_per_page": queue.page_bytes // step,
        "producers": producers,
    }
    return own, [_page(root, file, counts) for file in pages]


def _page(root: Path, file: Path, counts: dict[int, int]) -> dict[str, Any]:
    is_index = file.suffix != ".qd"
    number = int(file.stem) if file.stem.isdecimal() else -1
    return {
        "name": file.relative_to(root).as_posix(),
        "producer": None if file.parent == root else file.parent.name,
        "messages": counts.get(number, 0) if is_index else None,
        **_summed([file]),
        "wrong": None,
    }


def _files_of(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError, NotADirectoryError):  # removed a moment ago
        return [file for file in folder.iterdir() if file.is_file()]
    return []


def _summed(files: list[Path]) -> dict[str, int]:
    total = {"size": 0, "on_disk": 0}
    for file in files:
        with suppress(FileNotFoundError):  # removed a moment ago
            for name, value in sizes_of(file).items():
                total[name] += value
    return total
