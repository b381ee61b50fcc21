"""
All exceptions that Quire defines.

```text
QuireError
├── ClosedError              the handle was closed
├── ReadOnlyError            the queue was opened read-only
├── NotAQueueError           the path has no queue, or one of another format
│   ├── RingLostError        the ring of asynchronous appends was removed while it was in use
│   └── TableLostError       metadata.cq4t was removed or replaced while the queue was open
├── ClockAheadError          the clock is too far ahead of the newest cycle
├── RingFullError            the ring of asynchronous appends has no room
├── RollCycleMismatchError   the given roll cycle differs from that of the queue's data
├── SettingError             an option set from outside, or its file, is not valid; a ValueError
├── UnsupportedError         files, an option or a file system that Quire does not support
│   └── UnsupportedAttributeError  the format lacks this attribute; also an AttributeError
├── CorruptError             bytes violate docs/format.md (file, position, found, expected)
├── MessageTooLargeError     the message exceeds the limit of the queue; also a ValueError
├── IndexOutOfRangeError     an index that the roll cycle cannot number; also a LookupError
├── IndexNotAvailableError   a buffered document has no index yet
├── CycleFullError           the cycle has the most messages that its roll cycle allows
├── WriteAfterEofError       the cycle has ended: an end-of-file marker follows its last message
├── LockLostError            the write lock was taken by force; nothing was published
├── UnsafePathError          a link or another user's file instead of a file of Quire
├── ArchiveError             an archive differs from its queue, or cannot be used
├── WireError                bytes that cannot be decoded, or a value that cannot be encoded
├── EncryptionError          the queue is encrypted, or its keys are missing, wrong or damaged
│   ├── ForgedMessageError   an encrypted message was changed or moved
│   └── PlainMessageError    a message in an encrypted queue is not encrypted
├── DictionaryError          a dictionary of compressed messages is missing or damaged
├── DataLossError            messages were deleted before they were read
├── TailerInUseError         another tailer of this name is in use (pid, since)
├── WriterInUseError         the queue has another writer, or the producer's name is in use
├── ProducerDiedError        a producer died while it wrote a message (producer, index)
├── GroupError               a consumer group was reset, has members, or has another key
│   └── GroupLostError       the side file of a consumer group was removed or replaced
├── ConvertError             the destination has other messages, or its format cannot store one
├── ReplayError              the target of a replay has other messages or another writer
├── ReplicationError         a peer violated the protocol, or a replica differs from its source
│   ├── DivergedError        a replica and its source have different messages
│   ├── HandoverError        a sink did not confirm that it took over; the queue stays closed
│   ├── OldEpochError        another replica was promoted after this source started
│   ├── PeerLostError        the connection to a peer failed or was closed; also a ConnectionError
│   ├── PeerSilentError      a peer sent nothing, or took nothing, for too long; a TimeoutError
│   └── RegisterError        etcd cannot be used: it does not answer, or its keys conflict
│       ├── EtcdAwayError    etcd does not answer; also a ConnectionError
│       └── NameTakenError   another live node has this name
├── RefusedError             a server refused a command; the text begins with a code
│   └── MovedError           another server has the queue (address)
├── ServerLostError          the server of a remote queue cannot be reached; a ConnectionError
│   └── ServerSilentError    the server did not answer in time; also a TimeoutError
├── ForkedError              a handle of the parent was used in a forked child
├── LockTimeoutError         a lock was not free in time; also a TimeoutError
├── AppendLockedError        only a replication sink may append to the queue
│   └── LeaseExpiredError    the lease of this source has ended: another may be promoted
├── DocumentOpenError        this thread has a document open and would wait for itself
├── WaitTimeoutError         no message or acknowledgement in time; also a TimeoutError
├── LockHeldError            another process holds a lock file
├── SealError                a seal, its key, a checkpoint or a proof is invalid
├── MalformedInputError      text that cannot be parsed (`quire write`); also a ValueError
├── WhereError               an invalid `--where` condition; also a ValueError
├── OptionsError             invalid options or schema for Spark; also a ValueError
├── NoJavaError              there is no Java that Spark can use
├── UnfinishedWriteError     a batch of a Spark sink is partly written and cannot be completed
├── PipelineFileError        an invalid pipeline file; also a ValueError
├── PipelineError            a pipeline run failed
├── StepError                a step cannot be computed as declared; also a ValueError
└── StoppedError             a run is stopping: the next batch or cycle was not started
```

Failures of the operating system are raised as ``OSError``. All of these can be pickled.
"""

from quire.errors.queues import (
    AppendLockedError,
    ClockAheadError,
    ClosedError,
    CorruptError,
    CycleFullError,
    DataLossError,
    DictionaryError,
    DocumentOpenError,
    EncryptionError,
    ForgedMessageError,
    ForkedError,
    GroupError,
    GroupLostError,
    IndexNotAvailableError,
    IndexOutOfRangeError,
    LeaseExpiredError,
    LockHeldError,
    LockLostError,
    LockTimeoutError,
    MessageTooLargeError,
    NotAQueueError,
    PlainMessageError,
    ProducerDiedError,
    QuireError,
    ReadOnlyError,
    RingFullError,
    RingLostError,
    RollCycleMismatchError,
    SettingError,
    TableLostError,
    TailerInUseError,
    UnsafePathError,
    UnsupportedAttributeError,
    UnsupportedError,
    WaitTimeoutError,
    WireError,
    WriteAfterEofError,
    WriterInUseError,
)
from quire.errors.tools import (
    ArchiveError,
    ConvertError,
    DivergedError,
    EtcdAwayError,
    HandoverError,
    MalformedInputError,
    MovedError,
    NameTakenError,
    NoJavaError,
    OldEpochError,
    OptionsError,
    PeerLostError,
    PeerSilentError,
    PipelineError,
    PipelineFileError,
    RefusedError,
    RegisterError,
    ReplayError,
    ReplicationError,
    SealError,
    ServerLostError,
    ServerSilentError,
    StepError,
    StoppedError,
    UnfinishedWriteError,
    WhereError,
)

__all__ = [
    "AppendLockedError",
    "ArchiveError",
    "ClockAheadError",
    "ClosedError",
    "ConvertError",
    "CorruptError",
    "CycleFullError",
    "DataLossError",
    "DictionaryError",
    "DivergedError",
    "DocumentOpenError",
    "EncryptionError",
    "EtcdAwayError",
    "ForgedMessageError",
    "ForkedError",
    "GroupError",
    "GroupLostError",
    "HandoverError",
    "IndexNotAvailableError",
    "IndexOutOfRangeError",
    "LeaseExpiredError",
    "LockHeldError",
    "LockLostError",
    "LockTimeoutError",
    "MalformedInputError",
    "MessageTooLargeError",
    "MovedError",
    "NameTakenError",
    "NoJavaError",
    "NotAQueueError",
    "OldEpochError",
    "OptionsError",
    "PeerLostError",
    "PeerSilentError",
    "PipelineError",
    "PipelineFileError",
    "PlainMessageError",
    "ProducerDiedError",
    "QuireError",
    "ReadOnlyError",
    "RefusedError",
    "RegisterError",
    "ReplayError",
    "ReplicationError",
    "RingFullError",
    "RingLostError",
    "RollCycleMismatchError",
    "SealError",
    "ServerLostError",
    "ServerSilentError",
    "SettingError",
    "StepError",
    "StoppedError",
    "TableLostError",
    "TailerInUseError",
    "UnfinishedWriteError",
    "UnsafePathError",
    "UnsupportedAttributeError",
    "UnsupportedError",
    "WaitTimeoutError",
    "WhereError",
    "WireError",
    "WriteAfterEofError",
    "WriterInUseError",
]

# Tracebacks and pickles name the place where users find them.
for _name in __all__:
    globals()[_name].__module__ = __name__
