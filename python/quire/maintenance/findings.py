"""The findings of a check, and the actions of a repair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quire.maintenance.kinds import ALL_KINDS, Severity


@dataclass(frozen=True, slots=True)
class Finding:
    """
    Something that breaks a rule of the format.

    Attributes:
        kind: Which rule, such as ``missing-end-mark``; see ``docs/operations.md``, and
            ``docs/integrity.md`` for those about seals.
        file: The path of the file.
        position: Where in the file; None where it is about the file as a whole.
        found: What the file has there.
        expected: What belongs there.

    Examples:
        >>> from pathlib import Path
        >>> with quire.open("trades") as trades:
        ...     index = trades.appender().write_text("hello")
        >>> Path("trades/metadata.cq4t").unlink()
        >>> [finding] = quire.verify("trades").findings
        >>> finding.kind, finding.severity
        ('no-table', 'warning')
        >>> finding.remedy
        'make a table with the roll cycle of the file names; positions of tailers are lost'
        >>> finding.meaning == finding.to_dict()["meaning"]
        True

    """

    kind: str
    file: str
    position: int | None
    found: str
    expected: str

    @property
    def severity(self) -> Severity:
        """``error``, ``warning`` or ``note``."""
        return ALL_KINDS[self.kind].severity

    @property
    def meaning(self) -> str:
        """What follows from the finding."""
        return ALL_KINDS[self.kind].meaning

    @property
    def remedy(self) -> str | None:
        """What :func:`quire.repair` does about the finding; None if nothing."""
        return ALL_KINDS[self.kind].remedy

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as in the JSON of ``quire verify``."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "file": self.file,
            "position": self.position,
            "found": self.found,
            "expected": self.expected,
            "meaning": self.meaning,
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """
    The result of :func:`quire.verify`.

    Attributes:
        path: What was checked.
        findings: What was found, file by file.
        files: How many files were examined.
        messages: How many messages are in them.
        bytes: How many bytes of messages and index were examined.

    Examples:
        >>> index = appender.write_text("hello")
        >>> report = quire.verify("orders")
        >>> report.ok, report.messages
        (True, 1)

    """

    path: str
    findings: tuple[Finding, ...]
    files: int
    messages: int
    bytes: int

    @property
    def ok(self) -> bool:
        """Whether there are no errors and warnings, only notes."""
        return all(finding.severity == "note" for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Action:
    """
    A change that a repair made.

    Attributes:
        kind: The kind of finding it is about.
        file: The path of the file.
        position: Where in the file; None where it is about the file as a whole.
        done: What was changed.

    Examples:
        >>> from pathlib import Path
        >>> with quire.open("trades") as trades:
        ...     index = trades.appender().write_text("hello")
        >>> Path("trades/metadata.cq4t").unlink()
        >>> [action] = quire.repair("trades", dry_run=False).actions
        >>> action.kind, action.done
        ('no-table', 'a table was made, with the roll cycle of the file names')

    """

    kind: str
    file: str
    position: int | None
    done: str


@dataclass(frozen=True, slots=True)
class RepairReport:
    """
    The result of :func:`quire.repair`, also of a dry run.

    Attributes:
        path: The queue, or the directory of queues.
        dry_run: Whether nothing was changed.
        before: What was found first.
        actions: What was done about each finding that a dry run lists, in the same order; empty in
            a dry run.
        after: What was found afterwards; in a dry run the same as *before*.

    Examples:
        >>> report = quire.repair("orders")
        >>> report.dry_run, report.ok, report.planned, report.actions
        (True, True, (), ())

    """

    path: str
    dry_run: bool
    before: VerifyReport
    actions: tuple[Action, ...]
    after: VerifyReport

    @property
    def ok(self) -> bool:
        """Whether no errors and warnings are left, only notes."""
        return self.after.ok

    @property
    def planned(self) -> tuple[Finding, ...]:
        """The findings that a repair can resolve."""
        left = _left_alone(self.before.findings)
        return tuple(it for it in self.before.findings if it.remedy is not None and it not in left)


def _left_alone(findings: tuple[Finding, ...]) -> set[Finding]:
    """Return findings with a remedy that another one in the same file rules out."""
    # The end of a file is not marked while messages in its middle are missing.
    gaps = {it.file for it in findings if it.kind == "gap"}
    # Where the first array of an index was cut off, the next append makes another.
    ends = {it.file: f"{it.position:#x}" for it in findings if it.kind == "lost-end"}
    cut = {it.file for it in findings if it.kind == "index-array" and it.found == ends.get(it.file)}
    return {
        it
        for it in findings
        if (it.kind == "missing-end-mark" and it.file in gaps)
        or (it.kind.startswith("index-") and it.file in cut)
    }
