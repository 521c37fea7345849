"""Who may look: on loopback whoever is on this machine, elsewhere only who has the token; nobody through another name.

A page on the web could make a browser ask a server on loopback under a name of its own (DNS rebinding); the
``Host`` header gives that away.
"""

from __future__ import annotations

import functools
import hmac
import ipaddress

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

COOKIE = "winready_dashboard"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def make_guard(token: str | None) -> Middleware:
    """A middleware that lets nobody in who should not be, and puts the security headers on everything."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = _refused(request, token) or _let_in(request, token) or await handler(request)
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


def _let_in(request: web.Request, token: str | None) -> web.Response | None:
    """The token in the address becomes a cookie, and leaves the address."""
    given = request.query.get("token")
    if token is None or given is None or not _same(given, token):
        return None
    response = web.Response(status=303, headers={"Location": request.path})
    response.set_cookie(COOKIE, token, httponly=True, samesite="Strict", path="/")
    return response


def _refused(request: web.Request, token: str | None) -> web.Response | None:
    if token is None:
        name = request.url.host or ""
        return None if is_loopback(name) else web.Response(status=421, text="Ask for 127.0.0.1 or localhost.\n")
    for given in (request.cookies.get(COOKIE), request.query.get("token"), _bearer(request)):
        if given is not None and _same(given, token):
            return None
    text = "The token is missing or wrong. Open the address that 'winready dashboard' printed.\n"
    return web.Response(status=401, text=text, headers={"WWW-Authenticate": "Bearer"})


def _bearer(request: web.Request) -> str | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if scheme.casefold() == "bearer" else None


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())
