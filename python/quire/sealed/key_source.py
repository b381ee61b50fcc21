"""Where each process that works on a queue takes its key from; the key itself is never sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quire.sealed.key_file import is_encrypted
from quire.sealed.key_ring import KeyRing


@dataclass(frozen=True, slots=True)
class KeySource:
    """
    A place that has the key on each machine, such as the driver's of Spark and those of executors.

    Attributes:
        file: The path of a key file; None: not there.
        variable: The name of an environment variable; None: not there.
        allow_plain: Whether messages that are not encrypted are read, too.

    """

    file: str | None = None
    variable: str | None = None
    allow_plain: bool = False

    @property
    def is_known(self) -> bool:
        """Whether there is such a place."""
        return self.file is not None or self.variable is not None

    def ring(self) -> KeyRing | None:
        """
        Return the key that the place has here; None if no place is known.

        Raises:
            EncryptionError: The file or variable holds no key on this machine.
            OSError: The file cannot be read.

        """
        if self.file is not None:
            return KeyRing.from_file(self.file)
        return None if self.variable is None else KeyRing.from_environment(self.variable)

    def opening(self, path: str) -> dict[str, Any]:
        """
        Return the options to open a queue with: its key, if it is encrypted and the place is known.

        Raises:
            EncryptionError: The file or variable holds no key on this machine.
            OSError: The file cannot be read.

        """
        ring = self.ring() if is_encrypted(path) else None
        if ring is None:
            return {}
        return {"key": ring, "allow_plain": True} if self.allow_plain else {"key": ring}
