"""The queue that batches are appended to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from quire.errors import EncryptionError
from quire.maintenance.sink_writes import FOLDER
from quire.opening.wire_types import stored_wire_type
from quire.sealed.key_file import is_encrypted
from quire.sealed.key_ring import KeyRing
from quire.sealed.key_source import KeySource
from quire.staged.staging import Staging

NO_KEY: Final = KeySource()


@dataclass(frozen=True, slots=True)
class Target:
    """
    A queue that batches are appended to.

    Attributes:
        path: The directory of the queue.
        options: The options to open or create the queue with.
        sync: Make each batch durable before it is recorded as done.
        location: Where tasks stage, as given by the user; None: in the queue's directory.
        lock_timeout_s: How long to wait while another process commits to the queue.
        key: The keys of an encrypted queue, or where each process finds them.

    """

    path: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sync: bool = True
    location: str | None = None
    lock_timeout_s: float = 600.0
    key: KeyRing | KeySource = NO_KEY

    @classmethod
    def existing(cls, path: str, **more: Any) -> Target:  # noqa: ANN401 - other attributes
        """Return an existing queue, with the wire type of its files."""
        return cls(path, {"create": False, "wire_type": stored_wire_type(path)}, **more)

    @property
    def folder(self) -> Path:
        """The folder with the records of its writers."""
        return Path(self.path, FOLDER)

    @property
    def staging(self) -> Staging:
        """The folder where tasks stage."""
        return Staging.of(self.path, self.location)

    def ring(self) -> KeyRing | None:
        """
        Return the keys of an encrypted queue; None if the queue is not encrypted.

        Raises:
            EncryptionError: The queue is encrypted, and no key is given or the key is not found.
            OSError: The key file cannot be read.

        """
        found = self.key.ring() if isinstance(self.key, KeySource) else self.key
        if found is None and is_encrypted(self.path):
            raise EncryptionError(
                f"the queue is encrypted: path={self.path} (a write from Spark takes its key by the"
                " option keyFile or keyVariable, quire.spark.finish by key=)"
            )
        return found
