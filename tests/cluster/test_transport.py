"""The client against servers that are slow, busy, broken or rude."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from winready.cluster import transport
from winready.cluster.client import Client
from winready.cluster.errors import (
    AlreadyExists,
    ApiError,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    ExecFailed,
    Forbidden,
    Invalid,
    NotStarted,
    ServerTrouble,
    Unauthorized,
)
from winready.cluster.kubeconfig import ExecPlugin, Target
from winready.cluster.resources import NODES, PODS

Handler = Callable[[web.Request], Any]
OVER = web.AppKey("over", asyncio.Event)


@asynccontextmanager
async def serving(handler: Handler, **target: Any) -> AsyncIterator[Client]:
    """A client of a server whose every answer is ``handler``'s."""

    async def answer(request: web.Request) -> web.StreamResponse:
        result = handler(request)
        response: web.StreamResponse = await result if asyncio.iscoroutine(result) else result
        return response

    app = web.Application()
    app[OVER] = asyncio.Event()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with Client.connect(Target(server=f"http://127.0.0.1:{port}", **target)) as client:
            yield client
    finally:
        app[OVER].set()
        await runner.cleanup()


async def silence(request: web.Request) -> web.Response:
    """Answer only when the test is over."""
    await request.app[OVER].wait()
    return web.Response()


def status(code: int, reason: str = "", **headers: str) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": f"no: {reason}"}
    return web.json_response(body, status=code, headers=headers)


def abort(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@pytest.mark.parametrize("trouble", [429, 500, 502, 503, 504, "reset"])
async def test_passing_trouble_is_survived(trouble: int | str) -> None:
    calls = 0

    def handler(request: web.Request) -> web.Response:
        nonlocal calls
        calls += 1
        if calls < 3:
            return abort(request) if trouble == "reset" else status(int(trouble), **{"Retry-After": "0"})
        return web.json_response({"gitVersion": "v1.36.0"})

    async with serving(handler) as client:
        assert (await client.version())["gitVersion"] == "v1.36.0"
    assert calls == 3


@pytest.mark.parametrize(("code", "error"), [(401, Unauthorized), (403, Forbidden), (422, Invalid)])
async def test_answers_that_will_not_change_are_not_asked_for_again(code: int, error: type[Exception]) -> None:
    calls = 0

    def handler(request: web.Request) -> web.Response:
        nonlocal calls
        calls += 1
        return status(code)

    async with serving(handler) as client:
        with pytest.raises(error):
            await client.get(NODES, "x")
    assert calls == 1


async def test_trouble_that_stays_ends_at_the_deadline_with_the_servers_words() -> None:
    async with serving(lambda request: status(503, "Overloaded", **{"Retry-After": "0"})) as client:
        with pytest.raises(ServerTrouble, match="Overloaded"):
            await client.transport.call("GET", "/x", deadline=0.2)


async def test_a_server_that_never_answers_ends_at_the_deadline() -> None:
    async with serving(silence) as client:
        with pytest.raises(DeadlineExceeded):
            await client.transport.call("GET", "/x", deadline=0.2)


STRANGE: list[Callable[[], web.Response]] = [
    web.Response,
    lambda: web.Response(text="<html>log in</html>", content_type="text/html"),
    lambda: web.Response(text="<html>no</html>", content_type="text/html", status=404),
    lambda: web.Response(text='{"kind": "NodeList", "items": [{"meta'),
    lambda: web.json_response({"kind": "Status", "status": "Success", "metadata": {}}),
    lambda: web.json_response({"kind": "PodList", "items": []}),
    lambda: web.json_response({"kind": "NodeList", "items": [7]}),
    lambda: web.json_response([]),
    lambda: web.json_response(None),
]


@pytest.mark.parametrize("strange", STRANGE)
async def test_what_somebody_else_answers_in_the_api_servers_place_is_asked_again(
    strange: Callable[[], web.Response],
) -> None:
    answers = [strange(), strange(), web.json_response({"kind": "NodeList", "items": []})]
    async with serving(lambda request: answers.pop(0)) as client:
        assert await client.list(NODES) == []
    async with serving(lambda request: strange()) as client:
        client.transport.patience = 0.3
        with pytest.raises(ConnectionFailed) as caught:
            await client.list(NODES)
    assert caught.value.message == "the answer to /api/v1/nodes is none of an API server"
    assert "answers in its place" in caught.value.remedy


async def test_credentials_that_were_good_are_tried_again_and_others_not() -> None:
    answers = [200, 401, 401, 200]

    def handler(request: web.Request) -> web.Response:
        code = answers.pop(0)
        return status(code) if code == 401 else web.json_response({"gitVersion": "v1.36.0"})

    async with serving(handler, token="t") as client:
        await client.version()
        await client.version()
    assert answers == []


async def test_other_trouble_between_two_refusals_makes_no_long_refusal_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "REFUSED_SECONDS", 0.05)
    answers = [200, 401, 0, 401, 200]

    async def handler(request: web.Request) -> web.Response:
        code = answers.pop(0)
        if not code:
            await asyncio.sleep(0.1)
            return web.Response(text="a page of somebody else")
        return web.json_response({"gitVersion": "v1.36.0"}) if code == 200 else status(401)

    async with serving(handler, token="t") as client:
        await client.version()
        await client.version()
    assert answers == []


async def test_a_write_that_met_another_is_tried_again_but_not_one_that_meant_another_object() -> None:
    answers = ["the object has been modified", "the object has been modified", ""]

    def handler(request: web.Request) -> web.Response:
        if message := answers.pop(0):
            return web.json_response(
                {"kind": "Status", "code": 409, "reason": "Conflict", "message": message}, status=409
            )
        return web.json_response({"kind": "Status", "status": "Success", "metadata": {}})

    async with serving(handler) as client:
        assert await client.delete(PODS, "x", "ns")
        answers += ["Precondition failed: UID in precondition: 1, UID in object meta: 2"]
        assert not await client.delete(PODS, "x", "ns", uid="1")


async def test_a_lost_create_does_not_take_an_object_of_somebody_else_for_its_own() -> None:
    calls: list[str] = []

    def handler(request: web.Request) -> web.Response:
        calls.append(request.method)
        if len(calls) == 1:
            return abort(request)
        if request.method == "POST":
            return status(409, "AlreadyExists")
        return web.json_response({"kind": "Pod", "metadata": {"name": "x", "labels": {"winready.io/run": "other"}}})

    async with serving(handler) as client:
        with pytest.raises(AlreadyExists):
            await client.create(PODS, {"metadata": {"name": "x", "labels": {"winready.io/run": "mine"}}}, "ns")


async def test_a_create_whose_answer_was_lost_finds_its_object() -> None:
    calls: list[str] = []

    def handler(request: web.Request) -> web.Response:
        calls.append(request.method)
        if calls == ["POST"]:
            return abort(request)
        if request.method == "POST":
            return status(409, "AlreadyExists")
        return web.json_response({"kind": "Pod", "metadata": {"name": "x", "uid": "1"}})

    async with serving(handler) as client:
        pod = await client.create(PODS, {"metadata": {"name": "x"}}, "ns")
    assert pod["metadata"]["uid"] == "1"
    assert calls == ["POST", "POST", "GET"]


async def test_a_create_that_truly_collides_says_so() -> None:
    async with serving(lambda request: status(409, "AlreadyExists")) as client:
        with pytest.raises(AlreadyExists):
            await client.create(PODS, {"metadata": {"name": "x"}}, "ns")


async def test_lists_are_read_page_by_page_and_begin_again_when_the_snapshot_is_gone() -> None:
    seen: list[str] = []

    def handler(request: web.Request) -> web.Response:
        token = request.query.get("continue", "")
        seen.append(token or ("whole" if "limit" not in request.query else "first"))
        if token:
            return status(410, "Expired")
        names = ["a", "b"] if "limit" not in request.query else ["a"]
        metadata = {"resourceVersion": "7", **({"continue": "t"} if names == ["a"] else {})}
        return web.json_response({"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]})

    async with serving(handler) as client:
        items, version = await client.list_versioned(PODS)
    assert [item["metadata"]["name"] for item in items] == ["a", "b"]
    assert items[0]["kind"] == "Pod"
    assert (seen, version) == (["first", "t", "whole"], "7")


async def test_a_watch_survives_cuts_and_lost_history_without_losing_or_repeating_anything() -> None:
    """List a@1; watch: b added, cut; watch again: 410; list a@3 and c: a changed, b gone, c new."""
    step = 0

    def pod(name: str, version: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "uid": name, "resourceVersion": version}}

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal step
        step += 1
        if "watch" not in request.query:
            items = [pod("a", "1")] if step == 1 else [pod("a", "3"), pod("c", "4")]
            return web.json_response({"metadata": {"resourceVersion": str(step)}, "items": items})
        response = web.StreamResponse()
        await response.prepare(request)
        if step == 2:
            await response.write(json.dumps({"type": "ADDED", "object": pod("b", "2")}).encode() + b'\n{"type": "MOD')
            return abort(request)
        if step == 3:
            assert request.query["resourceVersion"] == "2"
            gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
            await response.write(json.dumps(gone).encode() + b"\n")
            return response
        await silence(request)
        return response

    events = []
    async with serving(handler) as client:
        async for event in client.watch(PODS, "ns"):
            events.append((event.type, event.object["metadata"]["name"]))
            if len(events) == 5:
                break
    assert events == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "b"), ("MODIFIED", "a"), ("ADDED", "c")]


async def test_a_watch_never_goes_backwards_whatever_comes_twice_late_or_broken() -> None:
    """Told a@2, a@2, a@1 (late, so the list decides), garbage, and a watch that ends at once."""

    def pod(name: str, version: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "uid": name, "resourceVersion": version}}

    def line(kind: str, obj: dict[str, Any]) -> bytes:
        return json.dumps({"type": kind, "object": obj}).encode() + b"\n"

    streams = [
        [line("MODIFIED", pod("a", "2")), line("MODIFIED", pod("a", "2")), line("MODIFIED", pod("a", "1"))],
        [line("DELETED", pod("a", "4")), line("MODIFIED", pod("a", "3"))],
        [],
        [b'{"type": "ADDED"}\n'],
        [line("ADDED", pod("b", "6"))],
    ]
    lists = [([pod("a", "1")], "1"), ([pod("a", "2")], "2"), ([], "5"), ([], "5")]

    async def handler(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            items, version = lists.pop(0)
            return web.json_response({"metadata": {"resourceVersion": version}, "items": items})
        response = web.StreamResponse()
        await response.prepare(request)
        for part in streams.pop(0):
            await response.write(part)
        if not streams:
            await silence(request)
        return response

    events = []
    async with serving(handler) as client:
        async for event in client.watch(PODS, "ns"):
            metadata = event.object["metadata"]
            events.append((event.type, metadata["name"], metadata["resourceVersion"]))
            if len(events) == 4:
                break
    assert events == [("ADDED", "a", "1"), ("MODIFIED", "a", "2"), ("DELETED", "a", "4"), ("ADDED", "b", "6")]


@asynccontextmanager
async def executing(protocol: str, *frames: bytes) -> AsyncIterator[Client]:
    async def handler(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=[protocol])
        await socket.prepare(request)
        for frame in frames:
            await socket.send_bytes(frame)
        await socket.close()
        return socket

    async with serving(handler) as client:
        yield client


def exit_status(code: int) -> bytes:
    causes = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
    return b"\x03" + json.dumps({"status": "Failure", "reason": "NonZeroExitCode", "details": causes}).encode()


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_exec_gives_streams_apart_and_windows_exit_codes_whole(protocol: str) -> None:
    async with executing(protocol, b"\x01out\r\n", b"\x02err", b"\x01more", exit_status(3221225477)) as client:
        result = await client.exec("ns", "pod", "main", ["cmd"], deadline=5)
    assert (result.exit_code, result.stdout, result.stderr) == (3221225477, b"out\r\nmore", b"err")


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([b"\x01out"], "without a status"),
        ([b"\x03{"], "not JSON"),
        ([b"\x03[1]"], "none of an API server"),
        ([b'\x03{"status": 7}'], "none of an API server"),
        ([b'\x03{"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "x"}]}}'], "no reason"),
        ([b"\x07what"], "without a status"),
        ([b'\x03{"status": "Failure", "message": "no such file"}'], "did not run the command: no such file"),
    ],
)
async def test_exec_without_an_exit_code_is_our_trouble_not_the_commands(frames: list[bytes], words: str) -> None:
    async with executing("v5.channel.k8s.io", *frames) as client:
        with pytest.raises(ExecFailed, match=words):
            await client.exec("ns", "pod", "main", ["x"], deadline=5)


async def test_exec_that_is_refused_never_started() -> None:
    async with serving(lambda request: web.Response(status=429)) as client:
        with pytest.raises(NotStarted, match="refused with HTTP 429"):
            await client.exec("ns", "pod", "main", ["x"], deadline=5)


async def test_exec_that_hangs_ends_at_its_deadline() -> None:
    async def handler(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=["v5.channel.k8s.io"])
        await socket.prepare(request)
        await silence(request)
        return socket

    async with serving(handler) as client:
        with pytest.raises(ExecFailed, match="no exit code"):
            await client.exec("ns", "pod", "main", ["x"], deadline=0.2)


def plugin(tmp_path: Path, body: str, **more: Any) -> ExecPlugin:
    script = tmp_path / "plugin"
    script.write_text(f"#!{sys.executable}\n{body}")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    values: dict[str, Any] = {
        "args": (),
        "env": {},
        "api_version": "client.authentication.k8s.io/v1",
        "provide_cluster_info": True,
        "install_hint": "",
        "interactive_mode": "Never",
    }
    return ExecPlugin(command=str(script), **(values | more))


COUNTING = """
import json, os, pathlib
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
count = pathlib.Path(__file__).with_name("count")
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
assert info["spec"]["cluster"]["server"].startswith("http://127.0.0.1")
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": {"token": f"t{number}"}}))
"""


async def test_a_plugins_token_is_used_again_until_it_is_refused(tmp_path: Path) -> None:
    seen: list[str] = []

    def handler(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return status(401) if len(seen) == 2 else web.json_response({"gitVersion": "v1.36.0"})

    async with serving(handler, plugin=plugin(tmp_path, COUNTING)) as client:
        for _ in range(3):
            await client.version()
    assert seen == ["Bearer t1", "Bearer t1", "Bearer t2", "Bearer t2"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import sys; print('please log in', file=sys.stderr); sys.exit(3)", "exit code 3: please log in"),
        ("print('hello')", "printed no ExecCredential"),
        ('print(\'{"apiVersion": "client.authentication.k8s.io/v1", "status": {}}\')', "neither a token"),
    ],
)
async def test_a_plugin_that_fails_is_quoted(tmp_path: Path, body: str, words: str) -> None:
    async with serving(lambda request: web.json_response({}), plugin=plugin(tmp_path, body)) as client:
        with pytest.raises(ConfigError, match=words):
            await client.version()


async def test_a_token_file_is_read_again_after_it_was_rotated(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    def handler(request: web.Request) -> web.Response:
        if request.headers["Authorization"] == "Bearer old":
            token.write_text("new")
            return status(401)
        return web.json_response({"gitVersion": request.headers["Authorization"]})

    async with serving(handler, token_file=token) as client:
        assert (await client.version())["gitVersion"] == "Bearer new"


async def test_the_proxy_of_the_environment_is_used_for_everything_but_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[web.Request] = []

    def handler(request: web.Request) -> web.Response:
        seen.append(request)
        return web.json_response({"kind": "NodeList", "items": []})

    (tmp_path / ".netrc").write_text("default login somebody password else\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with serving(handler) as client:
        port = client.transport.target.server.rpartition(":")[2]
        monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{port}")
        async with Client.connect(Target("http://cluster.test:6443", token="t")) as far:
            await far.list(NODES)
        assert seen[-1].url.host == "cluster.test"
        assert seen[-1].headers["Proxy-Authorization"].startswith("Basic ")
        assert seen[-1].headers["Authorization"] == "Bearer t", "what ~/.netrc says is for others"
        monkeypatch.setenv("no_proxy", ".test")
        async with Client.connect(Target("http://cluster.test:6443")) as direct:
            with pytest.raises(ConnectionFailed):
                await direct.transport.call("GET", "/", deadline=1)
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        monkeypatch.delenv("no_proxy")
        async with Client.connect(client.transport.target) as near:
            await near.list(NODES)
    assert len(seen) == 2


@pytest.mark.parametrize(
    "page", [b"<h1>Pas trouv\xe9</h1>", b"[" * 100_000, b'{"message": "\xff"}'], ids=["latin", "deep", "odd"]
)
@pytest.mark.parametrize("code", [404, 400])
async def test_a_page_that_is_no_text_is_an_answer_all_the_same(code: int, page: bytes) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=code, body=page, content_type="application/json")

    async with serving(handler) as client:
        with pytest.raises(ApiError) as caught:
            await client.get(NODES, "a")
    assert caught.value.code == code
