"""Who may look at the page, and do something there; and what it answers to what is no request."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
import trustme

import quire
from browsing import Visit, showing
from cli_runs import run, run_here, started
from quire.server import TokenFile
from served import WAIT_S, talk

_HOSTILE = {
    "script": b"<script>document.title='taken'</script>",
    "attribute": b'"\' onmouseover=alert(1) x="',
    "terminal": "\x1b[2J\x07\u202etxt.exe\u2028".encode(),
    "template": b"{{ 7 * 7 }}{% raw %}${7*7}",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shown") / "queues"
    with quire.open(root / "hostile") as queue, queue.appender() as appender:
        for text in _HOSTILE.values():
            appender.write_text(text.decode())
            name = text.decode().encode("latin-1", "ignore").decode("latin-1")
            appender.write_map({name: text.decode()})
        appender.write_bytes(b"\xff\xfe\x80 broken")
        appender.write_bytes(b"\x00" * 100)
        appender.write_text("x" * 1_000_000)
        appender.write_text("a" * 100_000 + "!")
    with quire.open(root / "<b>&amp;\"'") as queue:
        queue.appender().write_text("hello")
    with quire.open(root / "prices" / "eur") as queue:
        queue.appender().write_text("hello")
    return root


@pytest.fixture(scope="module")
def port(root: Path) -> Generator[int]:
    with showing(root) as port:
        yield port


def added(file: Path, name: str, *options: str) -> str:
    ran = run_here("token", "add", name, "--tokens", str(file), *options)
    assert ran.code == 0, ran.err
    return ran.out.strip()


def test_a_token_is_taken_by_a_form_and_kept_in_a_cookie(root: Path, tmp_path: Path) -> None:
    file, audit = tmp_path / "tokens", tmp_path / "audit"
    token = added(file, "reader", "--read", "prices/*")
    with showing(root, "--tokens", file, "--audit", audit) as port:
        visit = Visit(port)
        first = visit.ask("/queue/prices/eur")
        assert (first.status, first.headers["location"]) == (
            303,
            "/sign-in?next=%2Fqueue%2Fprices%2Feur",
        )
        visit.ask(first.headers["location"])
        assert "not valid" in visit.ask("/sign-in", {"token": "wrong"}).alert
        assert visit.ask("/").status == 303
        signed = visit.ask(first.headers["location"], {"token": f" {token} "})
        cookie = signed.headers["set-cookie"]
        assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert token not in cookie
        assert signed.headers["location"] == "/queue/prices/eur"
        assert visit.ask("/queue/prices/eur").status == 200
        assert "1 queue" in visit.ask("/").words
        assert "hostile" not in visit.ask("/").words
        assert "may not read" in visit.ask("/messages/hostile").alert
        assert "Append a message" not in visit.ask("/queue/prices/eur").words
        assert "may not append" in visit.ask("/append/prices/eur", {"message": "a"}).alert
        old = dict(visit.cookies)
        assert visit.ask("/sign-out", {}).status == 303
        assert visit.ask("/").status == 303
        assert Visit(port, cookies=old).ask("/").status == 303  # it is forgotten here, too
    with quire.open(audit, read_only=True) as queue, queue.tailer() as tailer:
        rows = [it.to_dict() for it in tailer]
    assert [(it["what"], it["who"], it["about"]) for it in rows] == [
        ("wrong token", "", ""),
        ("authenticated", "reader", ""),
        ("read", "reader", "prices/eur"),
        ("refused", "reader", "read hostile"),
        ("refused", "reader", "append prices/eur"),
    ]


def test_a_token_in_a_header_works_until_it_is_revoked(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    token = added(file, "writer", "--read", "*", "--append", "prices/*")
    with showing(root, "--tokens", file) as port:
        with_token = Visit(port, headers={"Authorization": f"Bearer {token}"})
        assert with_token.ask("/").status == 200
        assert with_token.ask("/append/prices/eur", {"message": "n: 1"}).status == 303
        wrong = Visit(port, headers={"Authorization": "Bearer wrong"}).ask("/")
        assert (wrong.status, wrong.headers["www-authenticate"]) == (401, "Bearer")
        browser = Visit(port)
        browser.ask("/sign-in")
        browser.ask("/sign-in", {"token": token})
        assert browser.ask("/").status == 200
        assert run_here("token", "revoke", "writer", "--tokens", str(file)).code == 0
        assert with_token.ask("/").status == 401
        assert browser.ask("/").status == 303
        assert browser.ask("/live").status == 401


def test_a_token_that_is_revoked_ends_what_is_kept_up_to_date(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    tokens = TokenFile(tmp_path / "tokens")
    headers = {"Authorization": f"Bearer {tokens.add('reader', {'read': ('*',)})}"}
    with (
        quire.open(root / "watched") as queue,
        showing(root, "--tokens", tokens.path) as port,
        queue.appender() as appender,
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)) as connection,
    ):
        connection.request("GET", "/live/watched", headers=headers)
        stream = connection.getresponse()
        assert stream.status == 200
        said = b""
        while b"event: following" not in said:
            said = stream.readline()
        appender.write_text("meant for the reader")
        while b"meant for the reader" not in said:
            said = stream.readline()
        tokens.revoke("reader")
        appender.write_text("meant for others")
        assert b"meant for others" not in stream.read()  # it ends


def test_a_form_of_another_site_is_refused(port: int, root: Path) -> None:
    visit = Visit(port)
    visit.ask("/queue/prices/eur")
    form = {"kind": "text", "message": "forged"}
    forged = Visit(port, form_key=visit.form_key)
    other = Visit(port)
    other.ask("/sign-in")
    stolen = Visit(port, cookies=dict(other.cookies), form_key=visit.form_key)
    for it in (Visit(port), forged, stolen):
        assert "load the page again" in it.ask("/append/prices/eur", form).alert
    across = {"Sec-Fetch-Site": "cross-site"}
    assert "another site" in visit.ask("/append/prices/eur", form, across).alert
    plain = {"Content-Type": "text/plain"}
    assert "not a form" in visit.ask("/append/prices/eur", form, plain).alert
    assert visit.ask("/append/prices/eur").status == 405
    with quire.open(root / "prices" / "eur", read_only=True) as queue:
        assert "forged" not in str([*queue.tailer()])


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "[::1", "localhost.evil"])
def test_a_name_that_was_made_to_lead_here_is_refused(port: int, host: str) -> None:
    assert "localhost" in Visit(port).ask("/", headers={"Host": host}).alert
    assert "queues" not in Visit(port).ask("/", headers={"Host": host}).words


def test_after_signing_in_no_other_site_is_gone_to(port: int) -> None:
    visit = Visit(port)
    for address in ("//evil.example", "https://evil.example", "/\\evil.example", "/%0d%0aX: y"):
        found = visit.ask("/sign-in?next=" + address.replace(" ", "%20")).text
        assert 'action="/sign-in?next=%2F"' in found


@pytest.mark.parametrize("view", ["yaml", "json", "fields", "bytes"])
def test_what_a_queue_holds_is_never_markup(port: int, view: str) -> None:
    visit = Visit(port)
    first = visit.ask(f"/messages/hostile?as={view}&from=start")
    assert first.status == 200
    assert "More of message" in first.words
    for page in (first, *map(visit.ask, sorted(set(_links(first.text))))):
        assert "<script>" not in page.text.replace('<script src="/static/page.js" defer>', "")
        assert ' onmouseover=alert(1) x="' not in page.text
        assert not [it for it in "\x1b\x07\u202e\u2028\x00" if it in page.text]
        assert len(page.body) < 400_000


def _links(text: str) -> list[str]:
    parts = text.split('href="')[1:]
    found = [it.partition('"')[0].replace("&amp;", "&") for it in parts]
    return [it for it in found if it.startswith("/message/")]


def test_a_long_message_is_cut_and_there_as_a_whole(port: int) -> None:
    visit = Visit(port)
    found = visit.ask("/messages/hostile?field=&regex=x{1000}")
    (address,) = set(_links(found.text))
    one = visit.ask(address)
    assert "Only the beginning is shown." in one.words
    assert len(one.body) < 100_000
    whole = visit.ask(address.replace("/message/", "/whole/").replace("as=yaml", "as=bytes"))
    assert b"x" * 1_000_000 in whole.body


def test_names_are_shown_as_they_are_and_lead_to_their_queue(port: int) -> None:
    visit = Visit(port)
    listed = visit.ask("/")
    assert "<b>&" not in listed.text
    assert "<b>&amp;\"'" in listed.words
    (address,) = [it for it in listed.text.split('href="') if it.startswith("/queue/%3Cb")]
    assert visit.ask(address.partition('"')[0]).status == 200


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "../x",
        "%2e%2e/x",
        "a/../../etc",
        ".quire-server",
        "%00",
        "a%0ab",
        "%ff",
        "x" * 300,
        "/etc/passwd",
        "a//b",
        "a%5cb",
        "%E2%80%AEa",
        "nothing",
        "prices",
    ],
)
@pytest.mark.parametrize("place", ["queue", "messages", "message", "whole", "live"])
def test_names_that_lead_nowhere_are_refused(port: int, place: str, name: str) -> None:
    found = Visit(port).ask(f"/{place}/{name}")
    assert found.status in {307, 400, 404}
    assert found.status == 307 or "name of a queue" in found.alert or "no such" in found.alert


@pytest.mark.parametrize(
    "query",
    [
        "from=99999999999999999999",
        "from=9223372036854775808",
        "from=-1",
        "from=0xg",
        "from=abc",
        "before=1e9",
        "before=" + "9" * 900,
        "count=0",
        "count=201",
        "count=x",
        "as=xml",
        "regex=(",
        "regex=" + "a" * 1001,
        "regex=%5C1",
        "regex=(%3F=a)",
        "regex=(a{1000}){1000}",
        "from=9999-99-99",
        "from=-99999999999999d",
        "count=" + "9" * 900,
    ],
)
def test_questions_that_cannot_be_understood_are_refused(port: int, query: str) -> None:
    found = Visit(port).ask(f"/messages/hostile?{query}")
    assert found.status == 400
    assert found.alert


def test_indexes_beyond_the_queue_show_nothing(port: int) -> None:
    for query in ("from=9223372036854775807", "before=0", "before=1", "from=0x7fffffffffffffff"):
        found = Visit(port).ask(f"/messages/hostile?{query}")
        assert (found.status, "no messages here" in found.words) == (200, True), query


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*a){20}$", "(x+x+)+y"])
def test_no_pattern_takes_exponential_time(port: int, pattern: str) -> None:
    from urllib.parse import quote

    visit = Visit(port)
    found = visit.ask(f"/messages/hostile?regex={quote(pattern)}")
    assert found.status == 200
    assert "to the end of the queue" in found.words


def test_a_form_that_is_too_long_or_no_message_is_refused(port: int) -> None:
    visit = Visit(port)
    visit.ask("/queue/prices/eur")
    for kind, text, word in (
        ("json", "{", "not a valid message as json"),
        ("yaml", "a: [", "not a valid message as yaml"),
        ("json", "[" * 5000, "not a valid message as json"),
        ("xml", "a", "no such kind"),
        ("text", "x" * 2_000_000, "too long"),
        ("yaml", "", "not a valid message as yaml"),
    ):
        refused = visit.ask("/append/prices/eur", {"kind": kind, "message": text})
        assert word in refused.alert, refused.alert
        assert refused.status == 400
    many = visit.ask("/append/prices/eur", {f"a{number}": "b" for number in range(100)})
    assert "not a form" in many.alert


@pytest.mark.parametrize(
    "data",
    [
        b"*1\r\n$4\r\nPING\r\n",
        b"\x16\x03\x01\x02",
        b"GET\r\n\r\n",
        b"GET / HTTP/9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"\r\n" * 3 + b"A" * 20000,
    ],
)
def test_bytes_that_are_no_request_end_their_connection_alone(port: int, data: bytes) -> None:
    assert b" 200 " not in talk(port, data)
    assert Visit(port).ask("/").status == 200


@pytest.mark.slow
def test_half_a_request_ends_its_connection_alone(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        assert Visit(port).ask("/").status == 200
        assert raw.recv(100) == b""  # after the time of a greeting


def test_tls_is_that_of_the_server(root: Path, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.private_key_pem.write_to_path(str(tmp_path / "node.key"))
    certificates = b"".join(it.bytes() for it in issued.cert_chain_pems)
    (tmp_path / "node.pem").write_bytes(certificates)
    file = tmp_path / "tokens"
    token = added(file, "reader", "--read", "*")
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    options = ["--certificate", tmp_path / "node.pem", "--key", tmp_path / "node.key"]
    with showing(root, "--tokens", file, *options) as port:
        visit = Visit(port, trusting)
        visit.ask("/sign-in")
        cookie = visit.ask("/sign-in", {"token": token}).headers["set-cookie"]
        assert cookie.startswith("__Host-quire-")
        assert {"Secure", "HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
        assert visit.ask("/").status == 200
        older = ssl.create_default_context()
        authority.configure_trust(older)
        older.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError):
            Visit(port, older).ask("/")


def test_beyond_this_machine_the_page_needs_a_certificate_and_tokens(tmp_path: Path) -> None:
    (tmp_path / "queues").mkdir()
    refused = run("serve", tmp_path / "queues", "--web", "203.0.113.1:1")
    assert (refused.code, "needs TLS and tokens" in refused.err) == (2, True)


def test_an_address_that_is_taken_is_an_error_in_one_line(port: int, tmp_path: Path) -> None:
    (tmp_path / "queues").mkdir()
    with started("serve", tmp_path / "queues", "--web", f"127.0.0.1:{port}") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.count(b"\n") == 1
    assert b"cannot listen" in errors
