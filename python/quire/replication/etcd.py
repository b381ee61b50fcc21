"""etcd 3.4 or newer, through the client etcd3gw."""

from __future__ import annotations

import base64
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from quire.errors import EtcdAwayError, OptionsError, RegisterError
from quire.replication.register import Compare, Entry, Put
from quire.replication.tls import Tls

if TYPE_CHECKING:
    from etcd3gw import Etcd3Client
    from requests import Session

_DEFAULT_PORT: Final = 2379
_REVISIONS: Final[Mapping[str, str]] = {"CREATE": "create_revision", "MOD": "mod_revision"}


class Etcd:
    """
    A client of etcd, for :class:`Node`.

        etcd = Etcd("https://10.0.0.9:2379", timeout_s=2.5, tls=tls)

    Args:
        url: The address of etcd: ``http://HOST:PORT`` or ``https://HOST:PORT``.
        timeout_s: How long an answer may take.
        tls: The certificate that this side shows with ``https``.

    Raises:
        OptionsError: *url* is not the URL of an etcd, or the package etcd3gw is missing.

    """

    def __init__(self, url: str, *, timeout_s: float, tls: Tls | None = None) -> None:
        self.url = url
        self._client = _client_of(url, timeout_s, tls)

    def read(self, prefix: str) -> Mapping[str, Entry]:
        """
        Return the keys with a prefix, as of one revision.

            etcd.read("/quire/")
        """
        with self._failures():
            found = self._client.get_prefix(prefix)
        return {
            it["key"].decode(): Entry(
                value.decode(errors="replace"),
                int(it.get("create_revision", 0)),
                int(it.get("mod_revision", 0)),
                int(it.get("lease", 0)),
            )
            for value, it in found
        }

    def commit(self, compares: Sequence[Compare], puts: Sequence[Put]) -> bool:
        """
        Make all changes if all conditions hold; return whether they did.

            etcd.commit([Compare(key, "CREATE", 0)], [Put(key, "a")])
        """
        conditions = [
            {
                "key": _encoded(it.key),
                "target": it.what,
                "result": "EQUAL",
                _REVISIONS[it.what]: it.revision,
            }
            for it in compares
        ]
        with self._failures():
            found = self._client.transaction(
                {"compare": conditions, "success": [_request(it) for it in puts], "failure": []}
            )
        return bool(found.get("succeeded", False))

    def grant(self, ttl_s: int) -> int:
        """
        Return a new lease.

            lease = etcd.grant(10)
        """
        with self._failures():
            return int(self._client.lease(ttl_s).id)

    def keep_alive(self, lease: int) -> int:
        """
        Renew a lease; return its remaining seconds, 0 if it is over.

            etcd.keep_alive(lease)
        """
        from etcd3gw.lease import Lease

        with self._failures():
            return max(0, Lease(lease, client=self._client).refresh())

    def revoke(self, lease: int) -> None:
        """
        End a lease, and its keys.

            etcd.revoke(lease)
        """
        from etcd3gw.lease import Lease

        with self._failures():
            Lease(lease, client=self._client).revoke()

    @contextmanager
    def _failures(self) -> Generator[None]:
        """Turn the client's exceptions into errors that name the address."""
        from etcd3gw import exceptions
        from requests import RequestException

        text = f"url={self.url}"
        try:
            yield
        except (exceptions.ConnectionFailedError, exceptions.ConnectionTimeoutError) as error:
            raise EtcdAwayError(f"etcd does not answer: {text}") from error
        except exceptions.Etcd3Exception as error:
            reason = str(error.detail_text or error)[:200]
            if "etcdserver:" in reason or "grpc" in reason or "rpc error" in reason:
                found = f"etcd cannot serve now: {text} reason={reason!r}"
                raise EtcdAwayError(found) from error
            raise RegisterError(f"no etcd answers: {text} reason={reason!r}") from error
        except (RequestException, KeyError, ValueError, TypeError) as error:
            raise RegisterError(f"no etcd answers: {text} reason={error!r}") from error


def _client_of(url: str, timeout_s: float, tls: Tls | None) -> Etcd3Client:
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORT
    except ValueError:
        raise _refused(url) from None
    is_plain = not (parts.path.strip("/") or parts.query or parts.username)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not is_plain:
        raise _refused(url)
    try:
        import etcd3gw
    except ImportError:
        text = "the package etcd3gw is missing: pip install quire[etcd]"
        raise OptionsError(text) from None
    return etcd3gw.Etcd3Client(
        host=parts.hostname,
        port=port,
        protocol=parts.scheme,
        timeout=timeout_s,
        api_path="/v3/",
        session=_session_of(tls if parts.scheme == "https" else None),
    )


def _session_of(tls: Tls | None) -> Session:
    """Return a session that ignores authorities and proxies set in the environment."""
    from requests import Session

    session = Session()
    session.trust_env = False
    if tls is not None:
        session.verify = str(tls.authority)
        session.cert = str(tls.certificate), str(tls.key)
    return session


def _refused(url: str) -> OptionsError:
    return OptionsError(f"not the URL of an etcd: expected http://HOST:PORT, found {url!r}")


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _request(put: Put) -> dict[str, Any]:
    if put.value is None:
        return {"request_delete_range": {"key": _encoded(put.key)}}
    body: dict[str, Any] = {"key": _encoded(put.key), "value": _encoded(put.value)}
    if put.lease:
        body["lease"] = put.lease
    return {"request_put": body}
