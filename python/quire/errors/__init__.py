"""
Every exception Quire raises on purpose.

```text
QuireError
├── ClosedError              the handle was closed
├── ReadOnlyError            the queue was opened read-only
├── NotAQueueError           the path holds no Chronicle Queue 5 files
│   ├── RingLostError        the ring of asynchronous appends was removed while it was in use
│   └── TableLostError       metadata.cq4t was removed or replaced while the queue was open
├── ClockAheadError          the clock is too far ahead of the newest cycle
├── RingFullError            there was no room in the ring of asynchronous appends
├── RollCycleMismatchError   the caller named a roll cycle that differs from the queue's data
├── SettingError             an option set from outside, or its file, is not valid; a ValueError
├── UnsupportedError         the files, the option or the file system are known and not supported
│   └── UnsupportedAttributeError  the format lacks what was asked for; also an AttributeError
├── CorruptError             bytes break a rule of docs/format.md (file, position, found, expected)
├── MessageTooLargeError     also a ValueError
├── IndexOutOfRangeError     also a LookupError
├── IndexNotAvailableError   a buffered document has no index yet
├── CycleFullError           the roll cycle cannot number another message
├── WriteAfterEofError       the cycle was closed by an end-of-file marker
├── LockLostError            the write lock was taken away; nothing was published
├── UnsafePathError          a link, or another user's file, where one of Quire's own belongs
├── ArchiveError             an archive is not what the queue holds, or cannot be worked on
├── WireError                bytes that do not decode, or a value that has no encoding
├── EncryptionError          the queue is encrypted, or its keys are missing, wrong or damaged
│   ├── ForgedMessageError   an encrypted message was changed, or moved from another place
│   └── PlainMessageError    a message in an encrypted queue is not encrypted
├── DictionaryError          a dictionary that messages are compressed with is missing or damaged
├── DataLossError            messages were deleted before they were read
├── TailerInUseError         another tailer reads with this name (pid, since)
├── WriterInUseError         the queue has another writer, or the producer's name is in use
├── ProducerDiedError        a producer died while it wrote a message (producer, index)
├── GroupError               a group of consumers was reset, has members, or another key
│   └── GroupLostError       the side file of a group was removed or replaced
├── ConvertError             the destination holds other messages, or the format cannot hold one
├── ReplayError              the queue to replay into holds other messages, or has another writer
├── ReplicationError         a peer broke the protocol, or a copy is not what its source holds
│   ├── DivergedError        a replica and its source hold different messages
│   ├── HandoverError        a sink did not say that it took over; the queue stays closed
│   ├── OldEpochError        another replica was promoted since this source was one
│   ├── PeerLostError        the connection to a peer failed or was closed; also a ConnectionError
│   ├── PeerSilentError      a peer sent nothing, or took nothing, for too long; a TimeoutError
│   └── RegisterError        no etcd answers, or it has another node of this name, or other keys
│       ├── EtcdAwayError    etcd does not answer; also a ConnectionError
│       └── NameTakenError   another living node has this name
├── RefusedError             a server refused a command; the text begins with a code
│   └── MovedError           another server has the queue (address)
├── ServerLostError          the server of a remote queue is not reached; also a ConnectionError
│   └── ServerSilentError    it did not answer in time; also a TimeoutError
├── ForkedError              a handle was carried into a forked child
├── LockTimeoutError         also a TimeoutError
├── AppendLockedError        only a replication sink may write to the queue now
│   └── LeaseExpiredError    the lease of this source is over: another machine may be the source
├── DocumentOpenError        this thread has a document open and would wait for itself
├── WaitTimeoutError         also a TimeoutError
├── LockHeldError            another process holds a lock file
├── SealError                a seal, its key, a checkpoint or a proof is invalid
├── MalformedInputError      text that does not parse; also a ValueError (`quire write`)
├── WhereError               an invalid condition of `quire read --where`; also a ValueError
├── OptionsError             invalid options or schema for Spark; also a ValueError
├── NoJavaError              no Java that Spark can use
├── UnfinishedWriteError     a batch of a sink is partly in the queue and cannot be completed
├── PipelineFileError        an invalid pipeline file; also a ValueError
├── PipelineError            a pipeline run failed
├── StepError                a step cannot be computed as declared; also a ValueError
└── StoppedError             a run is stopping, and the next batch or cycle was not begun
```

Failures of the operating system stay ``OSError``. All of these pickle.
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
