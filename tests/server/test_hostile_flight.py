"""What clients of Flight may do wrong: tickets, tokens, certificates, batches, and not reading."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import trustme
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import flight

import quire
from cli_runs import run, run_here
from flown import bearer, client_of, flying, path_of, put, ticket

ROWS = pa.record_batch({"payload": [b"one", b"two"]})

TICKETS = {
    "empty": b"",
    "no JSON": b"\xff\x00",
    "a number": b"1",
    "no queue": b"{}",
    "a queue that is a number": b'{"queue": 1}',
    "a path that leaves": b'{"queue": "../q"}',
    "a path that leaves in the middle": b'{"queue": "a/../../q"}',
    "an absolute path": b'{"queue": "/etc"}',
    "a hidden path": b'{"queue": ".quire-server"}',
    "half a character": b'{"queue": "\\ud800"}',
    "an unknown field": b'{"queue": "q", "command": "rm"}',
    "a field twice": b'{"queue": "q", "queue": "q"}',
    "an index below zero": b'{"queue": "q", "from": -1}',
    "a huge index": b'{"queue": "q", "from": 9223372036854775808}',
    "a number of many digits": b'{"queue": "q", "from": ' + b"9" * 5000 + b"}",
    "an endless time": b'{"queue": "q", "from": 1e400}',
    "no time": b'{"queue": "q", "from": "now or never"}',
    "a flag as index": b'{"queue": "q", "to": true}',
    "a class as schema": b'{"queue": "q", "schema": "os:system"}',
    "an unknown type": b'{"queue": "q", "schema": {"n": "matrix"}}',
    "a schema that is no text of one": b'{"queue": "q", "schema": "{\\"shape\\": 1}"}',
    "a column that is not there": b'{"queue": "q", "columns": ["n"]}',
    "no columns": b'{"queue": "q", "columns": []}',
    "a method of no interface": b'{"queue": "q", "schema": {"n": "int64"}, "method": "run"}',
    "deep": b"[" * 100_000,
    "a deep schema": b'{"queue": "q", "schema": ' + b'{"n":' * 200 + b'"int64"' + b"}" * 201,
    "huge": b'{"queue": "' + b"q" * (1 << 20) + b'"}',
}


@pytest.mark.parametrize("given_ticket", TICKETS.values(), ids=TICKETS)
def test_hostile_tickets_are_refused(server: str, given_ticket: bytes) -> None:
    with client_of(server) as client:
        asks: list[Callable[[], object]] = [
            lambda: client.do_get(flight.Ticket(given_ticket)).read_all(),
            lambda: client.get_flight_info(flight.FlightDescriptor.for_command(given_ticket)),
        ]
        for ask in asks:
            with pytest.raises(flight.FlightServerError) as refused:
                ask()
            assert "Traceback" not in str(refused.value)
            assert refused.value.extra_info in {b"RefusedError", b"NotAQueueError"}
        assert client.do_get(ticket(queue="q")).read_all().num_rows == 2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401 - a generator's value
    root = tmp_path_factory.mktemp("hostile") / "queues"
    with quire.open(root / "q") as queue, queue.appender() as appender:
        appender.write_many([b"one", b"two"])
    with flying(root) as ((address,), _):
        yield address


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["from", "to", "schema", "columns", "time_field", "errors", "method", "payload", "subtopic"]
)


@pytest.mark.check
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values=st.dictionaries(FIELDS, JSON))
def test_any_json_is_read_or_refused(server: str, values: dict[str, object]) -> None:
    with client_of(server) as client:
        try:
            assert client.do_get(ticket(queue="q", **values)).read_all().num_rows <= 2
        except flight.FlightServerError as error:
            refused = error
        else:
            return
    assert refused.extra_info
    assert "Traceback" not in str(refused)


@pytest.mark.parametrize("path", [["..", "q"], ["a", ".."], [""], ["/etc"], ["a/b", "../.."], []])
def test_paths_that_leave_are_refused(server: str, path: list[str]) -> None:
    to = flight.FlightDescriptor.for_path(*path)
    with client_of(server) as client:
        with pytest.raises(flight.FlightServerError, match="invalid name"):
            client.get_flight_info(to)
        with pytest.raises(flight.FlightServerError, match="invalid name"):
            put(client, to, ROWS)


def test_batches_that_lie_are_refused(server: str) -> None:
    offsets = pa.array([0, 1 << 30, 4], pa.int32()).buffers()[1]
    lie: Any = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"four")])
    rows = pa.RecordBatch.from_arrays([lie], names=["payload"])
    with client_of(server) as client:
        with pytest.raises(flight.FlightServerError, match="offset"):
            put(client, path_of("lies"), rows)
        for wrong in (
            pa.record_batch({"payload": pa.array([None], pa.binary())}),
            pa.record_batch({"payload": [b""]}),
            pa.record_batch({"payload": [b"x" * (65 << 20)]}),
        ):
            with pytest.raises(flight.FlightServerError):
                put(client, path_of("lies"), wrong)
        assert client.get_flight_info(path_of("lies")).total_records == 0


def test_what_no_token_allows(tmp_path: Path) -> None:
    file = tmp_path / "tokens"

    known: dict[str, str] = {}

    def added(name: str, *options: str) -> flight.FlightCallOptions:
        ran = run_here("token", "add", name, "--tokens", str(file), *options)
        assert ran.code == 0, ran.err
        known[name] = ran.out.strip()
        return bearer(known[name])

    root, audit = tmp_path / "queues", tmp_path / "audit"
    reader = added("reader", "--read", "prices/*")
    writer = added("writer", "--append", "prices/*", "--append", "orders", "--create", "prices/*")
    short = added("short", "--read", "*", "--expires", "1s")
    with (
        flying(root, "--tokens", file, "--audit", audit) as ((address,), process),
        client_of(address) as client,
    ):
        for options in (None, bearer("wrong"), bearer("x" * 5000)):
            for ask in everything(client, options):
                # pyarrow's get_schema raises an OSError.
                with pytest.raises(
                    (flight.FlightUnauthenticatedError, OSError), match="a valid token"
                ) as raised:
                    ask()
                assert '"/' not in str(raised.value)  # no trace of the server
        put(client, path_of("prices/eur"), ROWS, options=writer)
        for refused in (
            lambda: put(client, path_of("orders"), ROWS, options=writer),
            lambda: put(client, path_of("prices/eur"), ROWS, options=reader),
            lambda: client.do_get(ticket(queue="orders"), reader).read_all(),
            lambda: client.do_get(ticket(queue="prices/eur"), writer).read_all(),
        ):
            with pytest.raises(flight.FlightUnauthorizedError):
                refused()
        assert client.do_get(ticket(queue="prices/eur"), reader).read_all().num_rows == 2
        assert [it.descriptor.path for it in client.list_flights(options=reader)] == [
            [b"prices", b"eur"]
        ]
        assert [*client.list_flights(options=writer)] == []
        password = client.authenticate_basic_token("anyone", known["reader"])
        again = flight.FlightCallOptions(headers=[password])
        assert client.do_get(ticket(queue="prices/eur"), again).read_all().num_rows == 2
        expires = json.loads(file.read_text().splitlines()[3])["expires"]
        while time.time() < expires:
            time.sleep(0.05)
        with pytest.raises(flight.FlightUnauthenticatedError):
            client.do_get(ticket(queue="prices/eur"), short).read_all()
        process.terminate()
        assert process.wait() == 0
    with quire.open(audit) as queue, queue.tailer() as tailer:
        rows = [it.to_dict() for it in tailer]
    seen = {(it["what"], it["who"], it["about"]) for it in rows}
    assert {
        *(("authenticated", "reader", ""), ("wrong token", "", "")),
        *(("append", "writer", "prices/eur"), ("create", "writer", "prices/eur")),
        *(("refused", "reader", "read orders"), ("read", "reader", "prices/eur")),
    } <= seen
    assert any(str(it["from"]).startswith("127.0.0.1:") for it in rows)


def everything(
    client: Any,  # noqa: ANN401 - its stubs are incomplete
    options: flight.FlightCallOptions | None,
) -> list[Callable[[], object]]:
    return [
        lambda: [*client.list_flights(options=options)],
        lambda: client.get_flight_info(path_of("prices/eur"), options),
        lambda: client.get_schema(path_of("prices/eur"), options),
        lambda: client.do_get(ticket(queue="prices/eur"), options).read_all(),
        lambda: put(client, path_of("prices/eur"), ROWS, options=options),
    ]


ROUND = 1001  # messages of 2 MB


def large(path: Path, rounds: int = 64) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for _ in range(rounds):
            appender.write_many([bytes(1_000_000)] * 1)
            appender.write_many([b"x" * 1000] * 1000)


# gRPC reads ahead without a limit, so a client that reads nothing is one that is stopped.
STOPPED = """if True:
    import os, signal, sys
    import pyarrow as pa
    from pyarrow import flight
    address, *headers = sys.argv[1:]
    options = flight.FlightCallOptions(headers=[(b"authorization", it.encode()) for it in headers])
    client = flight.connect(f"grpc://{address}")
    streams = [client.do_get(flight.Ticket(b'{"queue": "q"}'), options) for _ in range(20)]
    rows = [streams[0].read_chunk().data.num_rows] + [0] * 19
    os.kill(os.getpid(), signal.SIGSTOP)
    for stream, first in zip(streams, rows):
        try:
            print(first + stream.read_all().num_rows)
        except flight.FlightUnauthenticatedError as error:
            print("revoked" if "revoked" in str(error) else error)
        except (flight.FlightError, pa.ArrowException):
            print("broken")
"""


@contextmanager
def not_reading(address: str, *headers: str) -> Generator[list[str]]:
    """Have a client begin to read 20 streams and stop; then it says how each of them ended."""
    said: list[str] = []
    command = [sys.executable, "-c", STOPPED, address, *headers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as slow:
        try:
            _, status = os.waitpid(slow.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            yield said
        finally:
            slow.send_signal(signal.SIGCONT)
        said += slow.communicate()[0].splitlines()
    assert len(said) == 20


@pytest.mark.slow
def test_a_token_that_is_revoked_ends_a_stream(tmp_path: Path) -> None:
    file, root = tmp_path / "tokens", tmp_path / "queues"
    ran = run_here("token", "add", "reader", "--tokens", str(file), "--read", "*")
    large(root / "q")
    with flying(root, "--tokens", file) as ((address,), _):
        with not_reading(address, f"Bearer {ran.out.strip()}") as said:
            assert run_here("token", "revoke", "reader", "--tokens", str(file)).code == 0
        assert "revoked" in said
        assert {*said} <= {"revoked", str(64 * ROUND)}


@pytest.mark.slow
def test_one_that_does_not_read_holds_up_nobody_and_no_ending(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    large(root / "q")
    with flying(root) as ((address,), process):
        with not_reading(address) as said:
            with client_of(address) as client:
                assert client.do_get(ticket(queue="q")).read_all().num_rows == 64 * ROUND
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
        assert "broken" in said
        assert {*said} <= {"broken", str(64 * ROUND)}  # none ends early as if it were whole


def test_a_stream_that_is_read_ends_before_the_server(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    large(root / "q", rounds=2)  # a busy machine sends it in the time that streams have
    with flying(root) as ((address,), process), client_of(address) as client:
        stream = client.do_get(ticket(queue="q"))
        first = stream.read_chunk().data.num_rows
        process.terminate()
        assert first + stream.read_all().num_rows == 2 * ROUND
        assert process.wait() == 0


def test_a_queue_that_is_deleted_underneath(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    for name in ("gone", "stays"):
        with quire.open(root / name) as queue, queue.appender() as appender:
            appender.write_bytes(b"one")
    with flying(root) as ((address,), _), client_of(address) as client:
        part = client.get_flight_info(path_of("gone")).endpoints[0].ticket
        assert client.do_get(part).read_all().num_rows == 1
        shutil.rmtree(root / "gone")
        asks: list[Callable[[], object]] = [
            lambda: client.get_flight_info(path_of("gone")),
            lambda: client.do_get(part).read_all(),
        ]
        for ask in asks:
            with pytest.raises(flight.FlightServerError, match="no such queue") as refused:
                ask()
            assert refused.value.extra_info == b"NotAQueueError"
        assert client.do_get(ticket(queue="stays")).read_all().num_rows == 1
        put(client, path_of("gone"), ROWS)
        assert client.get_flight_info(path_of("gone")).total_records == 2


def test_a_link_is_no_queue(tmp_path: Path) -> None:
    with quire.open(tmp_path / "elsewhere") as queue, queue.appender() as appender:
        appender.write_bytes(b"secret")
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues" / "link").symlink_to(tmp_path / "elsewhere")
    with flying(tmp_path / "queues") as ((address,), _), client_of(address) as client:
        assert [*client.list_flights()] == []
        with pytest.raises(flight.FlightServerError, match="no such queue"):
            client.do_get(ticket(queue="link")).read_all()


@pytest.mark.check
def test_certificates_on_both_sides(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    node, client_pair, foreign = (
        authority.issue_cert("127.0.0.1"),
        authority.issue_cert("client"),
        other.issue_cert("client"),
    )
    files = {"certificate": tmp_path / "node.pem", "key": tmp_path / "node.key"}
    node.cert_chain_pems[0].write_to_path(files["certificate"])
    node.private_key_pem.write_to_path(files["key"])
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with quire.open(tmp_path / "queues" / "q") as queue, queue.appender() as appender:
        appender.write_bytes(b"one")

    def ask(address: str, roots: trustme.CA, pair: trustme.LeafCert | None) -> int:
        own = (
            {}
            if pair is None
            else {
                "cert_chain": pair.cert_chain_pems[0].bytes(),
                "private_key": pair.private_key_pem.bytes(),
            }
        )
        options = flight.FlightCallOptions(timeout=20)
        with client_of(address, "grpc+tls", tls_root_certs=roots.cert_pem.bytes(), **own) as client:
            rows: int = client.do_get(ticket(queue="q"), options).read_all().num_rows
            return rows

    options = [f"--{name}={path}" for name, path in files.items()]
    with flying(tmp_path / "queues", *options) as ((address,), _):
        assert ask(address, authority, None) == 1
        with pytest.raises(flight.FlightUnavailableError):
            ask(address, other, None)
        with client_of(address) as plain, pytest.raises(flight.FlightError):
            plain.do_get(ticket(queue="q"), flight.FlightCallOptions(timeout=5)).read_all()
    with flying(tmp_path / "queues", *options, "--authority", tmp_path / "ca.pem") as (
        (address,),
        _,
    ):
        assert ask(address, authority, client_pair) == 1
        for pair in (None, foreign):
            with pytest.raises(flight.FlightUnavailableError):
                ask(address, authority, pair)


def test_beyond_this_machine_certificates_and_tokens_are_needed(tmp_path: Path) -> None:
    (tmp_path / "queues").mkdir()
    ran = run("serve", tmp_path / "queues", "--flight", "0.0.0.0:0")
    assert ran.code == 2
    assert "needs TLS and tokens: host=0.0.0.0" in ran.err


@pytest.mark.check
def test_an_address_that_is_taken(tmp_path: Path) -> None:
    with flying(tmp_path / "queues") as ((address,), _):
        (tmp_path / "others").mkdir()
        ran = run("serve", tmp_path / "others", "--flight", address)
        reason = "Address already in use"
        said = f"quire: cannot listen: address={address} reason={reason}\n"
        assert (ran.code, ran.out, ran.err) == (1, "", said)
