"""The dashboard behind a real reverse proxy, nginx: under a path, for users whom the proxy knows and nobody else."""

from __future__ import annotations

import base64
import http.client
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from report import samples

DNS = "core.network.dns-internal"
# Of loopback there are many addresses: the proxy asks from one of its own, so that others are strangers.
PROXY, STRANGER = "127.0.0.5", "127.0.0.9"
CONFIGURATION = """
user root; daemon off; pid {home}/nginx.pid; error_log {home}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {home}/t1; proxy_temp_path {home}/t2; fastcgi_temp_path {home}/t3;
  uwsgi_temp_path {home}/t4; scgi_temp_path {home}/t5;
  server {{
    listen 127.0.0.1:{port};
    auth_basic fleet; auth_basic_user_file {home}/users;
    proxy_bind {proxy};
    proxy_set_header X-Remote-User $remote_user;
    location /winready/ {{ proxy_pass http://127.0.0.1:{kept}; }}
    location /taken-off/ {{
      proxy_pass http://127.0.0.1:{plain}/;
      proxy_set_header X-Forwarded-Prefix /taken-off; proxy_set_header X-Remote-User $remote_user;
    }}
    location /loud/ {{ auth_basic off; proxy_set_header X-Remote-User ""; proxy_pass http://127.0.0.1:{plain}/; }}
  }}
}}
"""


@dataclass
class Place:
    """A proxy, and the two dashboards behind it: one that keeps the path, one that has it taken off."""

    proxy: int
    kept: int
    plain: int

    def ask(self, path: str, *, port: int = 0, source: str = "", **headers: str) -> tuple[int, str, str]:
        """Status, place and text of an answer; from the proxy unless a port is given."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", port or self.proxy, timeout=60, source_address=(source, 0) if source else None
        )
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers=given)
        answer = connection.getresponse()
        found = answer.status, answer.getheader("Location", ""), answer.read().decode()
        connection.close()
        return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    assert program, "these tests need nginx: apt-get install nginx-light"
    runs, home = tmp_path / "runs", tmp_path / "nginx"
    home.mkdir()
    samples.write_run(runs, "261101-100000-aaaa", found=samples.inventory(uid="one"))
    samples.write_run(runs, "261102-100000-bbbb", found=samples.inventory("https://two", uid="two"))
    started = []
    ports = []
    for more in (["--path-prefix", "/winready"], []):
        command = [sys.executable, "-m", "winready", "dashboard", "--port", "0", "--report-dir", str(runs)]
        command += ["--trusted-proxy", PROXY, "--trust-user-header", "X-Remote-User", *more]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout is not None
        ports.append(int(started[-1].stdout.readline().rpartition(":")[2].partition("/")[0]))
    (home / "users").write_text("alice:{PLAIN}wonder\n")
    port = free_port()
    configuration = CONFIGURATION.format(home=home, port=port, proxy=PROXY, kept=ports[0], plain=ports[1])
    (home / "nginx.conf").write_text(configuration)
    proxy = subprocess.Popen([program, "-p", str(home), "-c", str(home / "nginx.conf")])
    made = Place(port, *ports)
    _wait(made)
    yield made
    proxy.terminate()
    proxy.wait(60)
    for process in started:
        process.terminate()
        process.wait(60)


def _wait(made: Place) -> None:
    for _ in range(600):
        try:
            made.ask("/")
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("nginx does not answer")


ALICE = f"Basic {base64.b64encode(b'alice:wonder').decode()}"


@pytest.mark.parametrize("begin", ["winready", "taken-off"])
def test_a_user_of_the_proxy_walks_through_the_pages(browser: Browser, place: Place, begin: str) -> None:
    context = browser.new_context(http_credentials={"username": "alice", "password": "wonder"})
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("response", lambda answer: problems.append(answer.url) if answer.status == 404 else None)
    page.goto(f"http://127.0.0.1:{place.proxy}/{begin}/")
    page.wait_for_url(f"**/{begin}/fleet")
    expect(page.locator(".user")).to_have_text("alice")
    for name in ("Requirements", "Flaky", "Trends", "Runs"):
        page.click(f"nav >> text={name}")
        expect(page.locator("nav [aria-current=page]")).to_have_text(name)
    expect(page.locator("#grid .cell").first).to_be_visible()
    page.locator("#grid .cell.p").first.click()
    page.wait_for_url(f"**/{begin}/runs/**")
    page.click("text=All runs")
    page.wait_for_url(f"**/{begin}/grid")
    page.goto(f"http://127.0.0.1:{place.proxy}/{begin}/runs/261101-100000-aaaa/live")
    expect(page.locator("#state")).to_contain_text("Pass")
    # Chromium asks without a name and a password first, and tells that it was refused.
    assert [text for text in problems if "401" not in text] == []
    context.close()


def test_a_header_counts_from_the_proxy_alone(place: Place) -> None:
    status, _, text = place.ask("/winready/fleet", Authorization=ALICE)
    assert (status, ">alice<" in text) == (200, True)
    # What a client says of itself is written over by the proxy, or never reaches the dashboard.
    status, _, text = place.ask("/winready/fleet", Authorization=ALICE, X_Remote_User="root", X_Forwarded_Prefix="/x")
    assert (status, ">alice<" in text, "root" in text) == (200, True, False)
    assert place.ask("/winready/fleet", X_Remote_User="alice")[0] == 401
    assert place.ask("/loud/fleet", X_Remote_User="alice")[0] == 401
    # Past the proxy, from anywhere else on this machine, the same header is nothing.
    for source in ("", STRANGER):
        for name in ("X_Remote_User", "x_remote_user", "X_Forwarded_User"):
            status, _, text = place.ask("/fleet", port=place.plain, source=source, **{name: "alice"})
            assert (status, "alice" in text) == (401, False), (source, name)
        status, _, _ = place.ask(
            "/fleet", port=place.plain, source=source, X_Remote_User="alice", X_Forwarded_For=PROXY, X_Real_IP=PROXY
        )
        assert status == 401


def test_links_and_redirects_stay_under_the_path_of_the_proxy(place: Place) -> None:
    for begin in ("/winready", "/taken-off"):
        status, where, _ = place.ask(f"{begin}/", Authorization=ALICE)
        assert (status, where) == (302, f"{begin}/fleet")
        _, _, text = place.ask(f"{begin}/grid", Authorization=ALICE)
        assert f'src="{begin}/static/grid.js"' in text
        assert place.ask(f"{begin}/metrics", Authorization=ALICE)[0] == 200
    # A path that nobody who may be believed named is no part of any link.
    _, _, text = place.ask("/fleet", port=place.plain, source=PROXY, X_Remote_User="alice", X_Forwarded_Prefix="//evil")
    assert 'href="/grid"' in text
