"""
A server that makes queues available to Redis Streams clients in any language.

`quire serve DIRECTORY` runs it. Its protocol is described in ``docs/remote.md``.
"""

from quire.server.context import Limits
from quire.server.listening import Server
from quire.server.server_tls import Certificates, tls_context
from quire.server.tokens import Token, TokenFile

__all__ = ["Certificates", "Limits", "Server", "Token", "TokenFile", "tls_context"]
