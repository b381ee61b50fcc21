"""Exceptions of archives, conversions, replays, replication, verbs, Spark and pipelines."""

from __future__ import annotations

from quire.errors.queues import QuireError


class ArchiveError(QuireError):
    """
    An archive differs from its queue, or cannot be read or written.

    Examples:
        >>> import quire.archive
        >>> quire.archive.verify("nowhere")
        Traceback (most recent call last):
        quire.errors.ArchiveError: ...

    """


class ConvertError(QuireError):
    """A conversion cannot begin, continue or be verified: the text names the message or file."""


class ReplayError(QuireError):
    """
    The destination of a replay holds other messages, or has another writer.

    Examples:
        >>> _ = appender.write_text("hello")
        >>> with quire.open("other") as other, other.appender() as writer:
        ...     _ = writer.write_text("another text")
        >>> quire.replay(queue, "other")
        Traceback (most recent call last):
        quire.errors.ReplayError: ...

    """


class ReplicationError(QuireError):
    """A peer broke the protocol, or a copy does not hold what its source holds."""


class DivergedError(ReplicationError):
    """
    A replica and its source hold different messages; the replica was left as it is.

    Attributes:
        index: The index of the first different message.
        was_same: Whether both had the same message, so that one of the two files was damaged.

    """

    def __init__(self, message: str, index: int | None = None, *, was_same: bool = False) -> None:
        super().__init__(message, index)
        self.index, self.was_same = index, was_same


class OldEpochError(ReplicationError):
    """
    A source of an older epoch than its sink knows: another replica was promoted since.

    Attributes:
        epoch: The later epoch; None if the peer did not say.
        queue: The identity of the queue; None if the peer did not say.

    """

    def __init__(self, message: str, epoch: int | None = None, queue: str | None = None) -> None:
        super().__init__(message, epoch, queue)
        self.epoch, self.queue = epoch, queue


class HandoverError(ReplicationError):
    """A sink did not confirm that it took over a queue: the queue stays closed."""


class PeerLostError(ReplicationError, ConnectionError):
    """The connection to the peer was lost: a message in transit may or may not be appended."""


class PeerSilentError(ReplicationError, TimeoutError):
    """The peer of a replication sent nothing, or took nothing, for too long."""


class SealError(QuireError):
    """
    Seals, a key, a checkpoint or a proof are invalid; the text names the file.

    Examples:
        >>> quire.maintenance.check_proof(b"no proof")
        Traceback (most recent call last):
        quire.errors.SealError: ...

    """


class RegisterError(ReplicationError):
    """etcd does not answer, has keys of another program, or has another node of the same name."""


class EtcdAwayError(RegisterError, ConnectionError):
    """etcd does not answer now, or has no leader."""


class NameTakenError(RegisterError):
    """Another living node has this name, or the lease of a dead one has not ended yet."""


class RefusedError(QuireError):
    """
    A server refused a command: the text begins with a code, such as ``NOPERM`` or ``ERR``.

    Examples:
        >>> def code_of(error: quire.errors.RefusedError) -> str:
        ...     return str(error).partition(" ")[0]

    """


class MovedError(RefusedError):
    """
    The queue is served by another server.

    Attributes:
        address: That server's address, as ``quire://HOST:PORT``.

    Examples:
        >>> def moved_to(error: quire.errors.MovedError) -> str:
        ...     return f"{error.address}/orders"

    """

    address: str = ""


class ServerLostError(QuireError, ConnectionError):
    """
    The server of a remote queue was not reached in time, or the connection was lost.

    Examples:
        >>> quire.open("quire://127.0.0.1:1/orders", timeout_s=1)
        Traceback (most recent call last):
        quire.errors.ServerLostError: ...

    """


class ServerSilentError(ServerLostError, TimeoutError):
    """The server of a remote queue did not answer within ``timeout_s``."""


class MalformedInputError(QuireError, ValueError):
    """
    Text that does not parse.

    Attributes:
        line: How many lines precede the error.
        column: Its column.

    """

    def __init__(self, message: str, line: int = 0, column: int = 1) -> None:
        super().__init__(message, line, column)
        self.line = line
        self.column = column


class WhereError(QuireError, ValueError):
    """A condition of ``quire read --where`` is malformed, or does not fit the fields it names."""


class OptionsError(QuireError, ValueError):
    """Invalid options or an invalid schema for Spark; the text lists every problem."""


class NoJavaError(QuireError):
    """Spark needs Java 17 or newer, and none was found; the text says what was found."""


class UnfinishedWriteError(QuireError):
    """
    A batch is partly in the queue, and its rest cannot be appended.

    Examples:
        >>> import quire.spark
        >>> try:
        ...     count = quire.spark.finish("orders")
        ... except quire.spark.UnfinishedWriteError as error:
        ...     print(error)

    """


class PipelineFileError(QuireError, ValueError):
    """
    A pipeline file is invalid; the text has one line for each problem.

    Attributes:
        file: The file.
        problems: What is wrong, each with its line number first.

    Examples:
        >>> import quire.pipeline
        >>> from pathlib import Path
        >>> _ = Path("empty.yaml").write_text("pipeline: trades")
        >>> try:
        ...     quire.pipeline.load("empty.yaml")
        ... except quire.pipeline.PipelineFileError as error:
        ...     print(len(error.problems) > 0)
        True

    """

    def __init__(self, file: str, problems: tuple[str, ...]) -> None:
        super().__init__(file, problems)
        self.file = file
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(f"{self.file}:{problem}" for problem in self.problems)


class PipelineError(QuireError):
    """A pipeline run failed; the text names pipeline, step, file and line."""


class StepError(QuireError, ValueError):
    """A step of a pipeline cannot be computed as its file asks."""


class StoppedError(QuireError):
    """A run is stopping: the next batch of a pipeline, or cycle of a retention, was not begun."""
