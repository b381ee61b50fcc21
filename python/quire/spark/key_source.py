"""Where each of Spark's processes takes the key of encrypted queues from: never from the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quire.sealed.key_file import is_encrypted
from quire.sealed.key_ring import KeyRing


@dataclass(frozen=True, slots=True)
class KeySource:
    """
    A place that has the key on the driver's machine and on those of executors.

    Attributes:
        file: The path of a key file; None: not there.
        variable: The name of an environment variable; None: not there.

    """

    file: str | None = None
    variable: str | None = None

    def opening(self, path: str) -> dict[str, Any]:
        """
        Return the options to open a queue with: its key, if it is encrypted and the place is known.

        Raises:
            EncryptionError: The place has no key here.
            OSError: The file cannot be read.

        """
        if not is_encrypted(path):
            return {}
        if self.file is not None:
            return {"key": KeyRing.from_file(self.file)}
        return {} if self.variable is None else {"key": KeyRing.from_environment(self.variable)}
