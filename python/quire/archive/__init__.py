"""Archives: the finished cycles of queues as plain Parquet files, made and verified by pyarrow."""

from quire.archive.entry import Entry
from quire.archive.manifest import Archive
from quire.archive.report import Failure, Progress, Report, Verified
from quire.archive.run import archive
from quire.archive.verification import verify

__all__ = ["Archive", "Entry", "Failure", "Progress", "Report", "Verified", "archive", "verify"]
