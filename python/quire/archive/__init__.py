"""
Archives: the finished cycles of queues as plain Parquet files, written and verified by pyarrow.

>>> import quire.archive
>>> def show(what: str, done: int, total: int) -> None:
...     print(what, done, total)
>>> progress: quire.archive.Progress = show
>>> report = quire.archive.archive("orders", "archive", progress=progress)
>>> report.is_complete
True
"""

from quire.archive.archive_report import Failure, Progress, Report, Rewritten, Verified
from quire.archive.archiving import archive
from quire.archive.checking import verify
from quire.archive.cycle_entry import Entry
from quire.archive.manifest import Archive
from quire.archive.rewriting import rewrite

__all__ = [
    "Archive",
    "Entry",
    "Failure",
    "Progress",
    "Report",
    "Rewritten",
    "Verified",
    "archive",
    "rewrite",
    "verify",
]
