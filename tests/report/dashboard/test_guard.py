"""Who is let in: whose headers count, under which path and name, and what spoofing comes to."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from pathlib import Path

import pytest
from aiohttp import ClientSession

from report import samples
from report.dashboard.conftest import Serve, Site

DNS = "core.network.dns-internal"
PROXY, STRANGER = "127.0.0.2", "127.0.0.3"
TRUSTED = (ipaddress.ip_network(PROXY),)
NAMED = {"token": "s3cret", "proxies": TRUSTED, "user_header": "X-Remote-User"}


async def test_everything_is_below_the_prefix(serve: Serve, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa", ids=[DNS])
    site = await serve(prefix="/tools/winready")
    for path in ("grid", "fleet", "requirements", "flaky", "trends", "runs/261101-100000-aaaa"):
        status, text = await site.get(f"/tools/winready/{path}")
        assert status == 200, path
        links = set(re.findall(r'(?:href|src|data-base|data-api)="(/[^"]*)"', text))
        assert links, path
        assert all(link.startswith("/tools/winready/") for link in links), links
        assert (await site.get(f"/{path}"))[0] == 404
    for begin in ("", "/"):
        async with site.session.get(f"{site.address}/tools/winready{begin}") as answer:
            assert (answer.status, answer.url.path) == (200, "/tools/winready/grid")
    assert (await site.get("/tools/winready/static/base.css"))[0] == 200
    assert (await site.json("/tools/winready/api/v1"))["runs"] == 1


async def test_a_proxy_that_is_trusted_says_where_it_shows_the_pages(serve: Serve, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa", ids=[DNS])
    site = await serve(proxies=TRUSTED)
    _, text = await site.get_from(PROXY, "/fleet", {"X-Forwarded-Prefix": "/outside/"})
    assert 'href="/outside/grid"' in text
    assert (await site.get_from(PROXY, "/", {"X-Forwarded-Prefix": "/outside"}))[1] == "/outside/grid"
    _, text = await site.get_from(STRANGER, "/fleet", {"X-Forwarded-Prefix": "/outside"})
    assert 'href="/grid"' in text
    for odd in (
        "//evil.example",
        "/a/../b",
        "https://evil.example",
        '/"><script>',
        "/a b",
        "javascript:x",
        "/" + "a" * 900,
    ):
        _, text = await site.get_from(PROXY, "/fleet", {"X-Forwarded-Prefix": odd})
        assert 'href="/grid"' in text, odd


async def test_whom_the_proxy_names_is_let_in_and_nobody_else(serve: Serve) -> None:
    site = await serve(**NAMED)
    user = {"X-Remote-User": "alice <b>"}
    status, text = await site.get_from(PROXY, "/fleet", user)
    assert (status, "alice &lt;b&gt;" in text) == (200, True)
    for source, headers in (
        (STRANGER, user),
        ("127.0.0.1", user),
        (STRANGER, {**user, "X-Forwarded-For": PROXY, "Forwarded": f"for={PROXY}", "X-Real-IP": PROXY}),
        (PROXY, {}),
        (PROXY, {"X-Remote-User": " "}),
        (PROXY, [("X-Remote-User", "alice"), ("X-Remote-User", "mallory")]),
        (PROXY, {"X-Remote_User": "alice"}),
    ):
        status, text = await site.get_from(source, "/fleet", headers)
        assert status == 401, (source, headers)
        assert "s3cret" not in text
    assert (await site.get_from(STRANGER, "/fleet", {"Authorization": "Bearer s3cret"}))[0] == 200
    # Without the header's name being given, it is nothing but a header.
    plain = await serve(token="s3cret", proxies=TRUSTED)
    assert (await plain.get_from(PROXY, "/fleet", user))[0] == 401


async def test_a_page_on_the_web_cannot_play_the_proxy(serve: Serve) -> None:
    # A browser on the proxy's own machine comes from its address; the name that it asks for gives it away.
    site = await serve(**{**NAMED, "hosts": frozenset({"fleet.example"})})
    for name, status in {
        "evil.example": 401,
        "fleet.example": 200,
        "Fleet.Example:80": 200,
        "127.0.0.1:1": 200,
    }.items():
        got, _ = await site.get_from(PROXY, "/fleet", {"X-Remote-User": "alice", "Host": name})
        assert got == status, name
    open_one = await serve(hosts=frozenset({"fleet.example"}))
    assert (await open_one.get("/fleet", Host="fleet.example"))[0] == 200
    assert (await open_one.get("/fleet", Host="evil.example"))[0] == 421


async def test_the_token_becomes_a_cookie_for_the_prefix_alone(serve: Serve) -> None:
    site = await serve(token="s3cret", prefix="/winready", proxies=TRUSTED)
    url = f"{site.address}/winready/fleet?state=fail&token=s3cret"
    async with ClientSession() as session, session.get(url, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/winready/fleet?state=fail")
        assert "Path=/winready/" in answer.headers["Set-Cookie"]
        assert "Secure" not in answer.headers["Set-Cookie"]
    async with (
        ClientSession() as session,
        session.get(f"{site.address}/winready/?token=s3cret", headers={"X-Forwarded-Proto": "https"},
                    allow_redirects=False) as answer,
    ):  # fmt: skip
        assert "Secure" not in answer.headers["Set-Cookie"]
    status, place = await site.get_from(PROXY, "/winready/%5Cevil.example/?token=s3cret", {"X-Forwarded-Prefix": "/a"})
    assert (status, place) == (303, "/a/winready/%5Cevil.example/")


@pytest.mark.parametrize(
    "path", ["/api/v1", "/metrics", "/fleet", "/grid.json", "/static/fleet.js", "/requirements/N1"]
)
async def test_nothing_is_answered_without_the_token(guarded: Site, path: str) -> None:
    assert (await guarded.get(path))[0] == 401
    assert (await guarded.get(path, Authorization="Bearer s3cret"))[0] == 200


async def raw(site: Site, name: bytes, user: bytes) -> str:
    """What is answered to bytes that no client would send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(site.address.rpartition(":")[2]))
    head = b"GET /fleet HTTP/1.1\r\nHost: %s\r\nX-Remote-User: %s\r\nConnection: close\r\n\r\n"
    writer.write(head % (name, user))
    answer = (await reader.read()).decode()
    writer.close()
    return answer


LOCAL = {**NAMED, "proxies": (ipaddress.ip_network("127.0.0.1"),)}


@pytest.mark.parametrize("name", ["[evil", "a b", "\\", "evil.example#127.0.0.1", "127.0.0.1@evil.example", "x" * 400])
async def test_a_name_that_is_none_is_refused_in_words(
    serve: Serve, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    for site in (await serve(), await serve(**LOCAL)):
        answer = await raw(site, name.encode(), b"alice")
        assert answer.partition(" ")[2][:3] in ("421", "401", "400"), answer
        assert "could not be answered" not in caplog.text


async def test_the_name_of_a_user_is_text_whatever_its_bytes(serve: Serve) -> None:
    answer = await raw(await serve(**LOCAL), b"127.0.0.1", b"al\xffi\xe2\x80\xaece" + b"x" * 900)
    assert answer.startswith("HTTP/1.1 200 ")
    (shown,) = re.findall(r'class="user soft">([^<]*)<', answer)
    assert (shown[:2], len(shown) <= 200, "\u202e" in shown) == ("al", True, False)
