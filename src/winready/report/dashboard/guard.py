"""Who may look: on loopback whoever is on this machine, elsewhere only who has the token; nobody through another name.

A page on the web could make a browser ask a server on loopback under a name of its own (DNS rebinding); the
``Host`` header gives that away. Behind a reverse proxy it is the proxy that knows who somebody is: what it says in
headers counts only when the connection comes from its address.
"""

from __future__ import annotations

import functools
import hmac
import ipaddress
import re
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from winready.report.exposition import line

COOKIE = "winready_dashboard"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
PREFIX = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,63}){1,8}")
"""A path under which a proxy may show the dashboard; it comes into links, so that it is plain or nothing."""
USER_LENGTH = 200
BASE, USER = web.RequestKey("base", str), web.RequestKey("user", str)
"""Where a request carries what its links begin with, and whom the proxy named."""
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Access:
    """Who is let in, and whose word counts."""

    token: str | None = None
    """Who has it is let in; without one, whoever can connect, under a name of loopback."""
    prefix: str = ""
    """The path under which everything is, such as ``/winready``."""
    proxies: tuple[Network, ...] = ()
    """Connections from there are a reverse proxy's."""
    user_header: str = ""
    """Where that proxy says who somebody is; whom it names is let in."""
    hosts: frozenset[str] = frozenset()
    """Other names than those of loopback under which it may be asked for."""

    def proxied(self, request: web.Request) -> bool:
        """Whether a request comes from a proxy that is trusted."""
        address = _peer(request)
        return address is not None and any(
            address.version == network.version and address in network for network in self.proxies
        )

    def user(self, request: web.Request) -> str:
        """Whom the proxy names; empty if nobody, or if nobody may be believed."""
        if not self.user_header or not self.proxied(request):
            return ""
        address = _peer(request)
        if address is not None and address.is_loopback and not self.named(request):
            return ""  # a browser on this machine comes from there, too, and may have been sent by any page
        # Two of them: one was not written by the proxy.
        given = request.headers.getall(self.user_header, [])
        return line(given[0], USER_LENGTH) if len(given) == 1 else ""

    def named(self, request: web.Request) -> bool:
        """Whether it is asked for under a name that no page on the web can take."""
        try:
            name = (request.url.host or "").casefold()
        except ValueError:
            return False  # no name at all
        return is_loopback(name) or name in self.hosts

    def base(self, request: web.Request) -> str:
        """What links begin with."""
        given = request.headers.getall("X-Forwarded-Prefix", []) if self.proxied(request) else []
        outer = given[0].rstrip("/") if len(given) == 1 else ""
        return f"{outer if PREFIX.fullmatch(outer) else ''}{self.prefix}/"


def _peer(request: web.Request) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Who is at the other end of the connection, whatever headers say."""
    peer = request.transport.get_extra_info("peername") if request.transport else None
    try:
        address = ipaddress.ip_address(peer[0].partition("%")[0]) if peer else None
    except ValueError:
        return None
    return (getattr(address, "ipv4_mapped", None) or address) if address else None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def make_guard(access: Access) -> Middleware:
    """A middleware that lets nobody in who should not be, and puts the security headers on everything."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            request[BASE], request[USER] = access.base(request), access.user(request)
            response = _refused(request, access) or _let_in(request, access) or await handler(request)
        except web.HTTPException as answer:
            secure(answer)
            raise
        except Exception:
            request.app.logger.exception("%s could not be answered", request.path)
            response = web.Response(status=500, text="This page cannot be shown; the log tells why.\n")
        if not response.prepared:
            secure(response)
        return response

    return guard


class _Asked(web.Request):
    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        await super()._prepare_hook(response)
        secure(response)


class Runner(web.AppRunner):
    """Answers what is no request at all with the security headers, too: no middleware ever sees that."""

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        server.request_factory = functools.partial(self.app._make_request, _cls=_Asked)
        return server


def secure(response: web.StreamResponse) -> None:
    """The headers that every answer carries."""
    response.headers.setdefault("Content-Security-Policy", POLICY)
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.headers["Cache-Control"] = "no-store"


def _let_in(request: web.Request, access: Access) -> web.Response | None:
    """The token in the address becomes a cookie, and leaves the address."""
    given = request.query.getall("token", [])
    if access.token is None or not given or not _same(given[0], access.token):
        return None
    rest = request.rel_url.without_query_params("token").raw_query_string
    # Where a proxy has taken its own prefix off the path, the browser needs it again.
    path = request[BASE] + request.raw_path.partition("?")[0].removeprefix(access.prefix).lstrip("/\\")
    response = web.Response(status=303, headers={"Location": f"{path}?{rest}" if rest else path})
    secret = access.proxied(request) and request.headers.get("X-Forwarded-Proto") == "https"
    response.set_cookie(
        COOKIE, access.token, httponly=True, samesite="Strict", path=request[BASE], secure=secret or None
    )
    return response


def _refused(request: web.Request, access: Access) -> web.Response | None:
    if access.token is None and not access.named(request):
        return web.Response(status=421, text="Ask for 127.0.0.1 or localhost; --allow-host NAME adds a name.\n")
    if access.token is None or request[USER]:
        return None
    for given in (request.cookies.get(COOKIE), request.query.get("token"), _bearer(request)):
        if given is not None and _same(given, access.token):
            return None
    text = "The token is missing or wrong. Open the address that 'winready dashboard' printed.\n"
    if access.user_header:
        text = (
            "Nobody who may be believed says who you are: come through the proxy (which asks for 127.0.0.1, or for a "
            "name that --allow-host gives), or with the token that 'winready dashboard' printed.\n"
        )
    return web.Response(status=401, text=text, headers={"WWW-Authenticate": "Bearer"})


def _bearer(request: web.Request) -> str | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if scheme.casefold() == "bearer" else None


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())
