"""The webhook server that steers: small bodies, short waits, and no other page."""

from __future__ import annotations

import asyncio

from aiohttp import web

from winready.cluster.steering_webhook import PATH, BadReview, answer

MOST_BYTES = 4 << 20
"""An object of the API has at most 1.5 MiB; a question holds it once."""
BODY_SECONDS = 5.0


def application() -> web.Application:
    """What is served: one path for questions, one for whoever asks whether it is up."""
    app = web.Application(client_max_size=MOST_BYTES)
    app.add_routes([web.post(PATH, _review), web.get("/healthz", _healthy)])
    return app


async def _review(request: web.Request) -> web.Response:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await request.read()
        return web.json_response(answer(body))
    except TimeoutError:
        return web.Response(status=408, text="the body did not come in time\n")
    except BadReview as error:
        return web.Response(status=400, text=f"{error}\n")


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")
