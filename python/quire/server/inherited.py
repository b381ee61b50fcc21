"""Sockets on which systemd listens, and which it passes to the service that it starts."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from typing import Final

from quire.errors import OptionsError

_FIRST: Final = 3
_NAMES: Final = ("listen", "web")
_NO_FLIGHT: Final = "gRPC cannot use an inherited socket: give --flight"


def inherited_sockets(
    environment: MutableMapping[str, str] = os.environ,
) -> dict[str, socket.socket]:
    """
    Take the sockets of ``LISTEN_FDS``, by name; child processes do not inherit them.

    A single socket without a name (``FileDescriptorName=``) is ``listen``.

    Raises:
        OptionsError: A name is unknown or occurs twice, or a socket is not a listening TCP socket.

    """
    given = {name: environment.pop(f"LISTEN_{name}", "") for name in ("PID", "FDS", "FDNAMES")}
    if given["PID"] != str(os.getpid()) or not given["FDS"].isdecimal():
        return {}
    count, found = int(given["FDS"]), dict[str, socket.socket]()
    names = given["FDNAMES"].split(":") if given["FDNAMES"] else [""] * count
    for number, name in enumerate(names[:count]):
        key = "listen" if count == 1 and name not in {*_NAMES, "flight"} else name
        if key not in _NAMES or key in found:
            why = (
                _NO_FLIGHT
                if key == "flight"
                else f"FileDescriptorName={'|'.join(_NAMES)}, each once"
            )
            raise OptionsError(f"not a socket that quire serve takes: name={name!r:.80} ({why})")
        found[key] = _checked(key, socket.socket(fileno=_FIRST + number))
    return found


def _checked(name: str, found: socket.socket) -> socket.socket:
    is_stream = (
        found.family in {socket.AF_INET, socket.AF_INET6} and found.type == socket.SOCK_STREAM
    )
    if not is_stream or not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise OptionsError(f"not a TCP socket that listens: name={name} (ListenStream=HOST:PORT)")
    found.settimeout(0.0)  # none blocks in an event loop
    os.set_inheritable(found.fileno(), False)  # noqa: FBT003 - its one argument
    return found
