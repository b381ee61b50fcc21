"""Archives: the finished cycles of queues as plain Parquet files, made and verified by pyarrow."""

from quire.archive.entries import Entry
from quire.archive.folders import Archive
from quire.archive.reports import Failure, Progress, Report, Verified
from quire.archive.running import archive
from quire.archive.verifying import verify

__all__ = ["Archive", "Entry", "Failure", "Progress", "Report", "Verified", "archive", "verify"]
