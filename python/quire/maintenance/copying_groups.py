"""
Consumer groups in a copy of a queue.

The side file of a group changes at every claim, so a copy of its bytes could show a position that
moved on without the claim that moved it. A group of the copy begins with the first message that was
not acknowledged when the copy began: nothing is lost, and what was acknowledged after that message
comes again.
"""

from __future__ import annotations

from pathlib import Path

from quire import _native
from quire._common.durable import SafeFolder
from quire.errors import UnsafePathError
from quire.formats.adapters import end_index_of, numbering_of
from quire.groups.states import side_file
from quire.opening.opener import open_without_key as open_queue


def put_groups(source: Path, folder: SafeFolder, positions: dict[str, int]) -> None:
    """
    Make the groups of a queue in its copy, which is complete otherwise.

    Args:
        source: The queue.
        folder: The copy.
        positions: Where each group begins, as `lowest_needed` returned before the copy began: no
            group is ahead of the copy then.

    """
    if not positions:
        return
    with open_queue(folder.path, read_only=True, create=False) as copy:
        end, step = end_index_of(copy), numbering_of(copy).step
    for name, lowest in positions.items():
        file = side_file(source, name).name
        try:
            with SafeFolder.at(source) as around:
                folder.replace(file, around.read(file))  # it says whether the group has a key
        except (FileNotFoundError, UnsafePathError):
            continue  # deleted meanwhile, or none of ours
        mode = folder.access.mode & 0o666
        group = _native.Group(folder.path, name, step=step, file_mode=mode)
        group._reset(min(lowest, end), end)  # noqa: SLF001 - the package's own
