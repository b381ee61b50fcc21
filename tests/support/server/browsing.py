"""The page of a server in tests: `quire serve --web`, plain requests, and a headless Chromium."""

from __future__ import annotations

import http.client
import re
import shutil
import ssl
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from cli_runs import started
from served import WAIT_S

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NO_CHROMIUM = "needs chromium, see .ci/needs"


@dataclass(frozen=True)
class Answer:
    """What the page answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        """The text that a reader sees, without markup."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.text)).split())

    @property
    def alert(self) -> str:
        found = re.search(r'role="alert">(.*?)</p>', self.text, re.DOTALL)
        return "" if found is None else unescape(found[1])


@dataclass
class Visit:
    """Requests of one browser: it keeps its cookies, and the key of the last form."""

    port: int
    tls: ssl.SSLContext | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cookies: dict[str, str] = field(default_factory=dict[str, str])
    form_key: str = ""

    def ask(
        self,
        address: str,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask for a page, or send a form."""
        host = "localhost" if self.tls else "127.0.0.1"
        connection: http.client.HTTPConnection = (
            http.client.HTTPConnection(host, self.port, timeout=WAIT_S)
            if self.tls is None
            else http.client.HTTPSConnection(host, self.port, timeout=WAIT_S, context=self.tls)
        )
        sent = {**self.headers, **(headers or {})}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        body = None
        if form is not None:
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
            body = urlencode({"form_key": self.form_key, **form})
        try:
            connection.request("GET" if form is None else "POST", address, body, sent)
            response = connection.getresponse()
            found = Answer(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
        finally:
            connection.close()
        self._keep(found)
        return found

    def _keep(self, found: Answer) -> None:
        if (cookie := found.headers.get("set-cookie")) is not None:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        key = re.search(rb'name="form_key" value="(\w+)"', found.body)
        if key is not None:
            self.form_key = key[1].decode()


@contextmanager
def showing(root: Path, *options: object) -> Generator[int]:
    """Run `quire serve` with a page alone; yield its port. Without *--tokens*, none is needed."""
    root.mkdir(exist_ok=True, parents=True)
    given = [str(it) for it in options]
    with started("serve", root, "--web", "127.0.0.1:0", *given) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith("listening 127.0.0.1:"), line
        yield int(line.rpartition(":")[2])


@contextmanager
def chromium() -> Generator[Browser]:
    """Run a headless Chromium; skip where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip(NO_CHROMIUM)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            browser.close()
