"""The kubelet's own HTTPS port: exec, attach, port-forward, logs, statistics, health, configuration."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from aiohttp import web

from winready_sandbox.egress import Egress
from winready_sandbox.machine.errors import ExecError
from winready_sandbox.network.endpoint import Listener
from winready_sandbox.nodes import configuration, latency, spdy, spdy_channels, streaming
from winready_sandbox.nodes.configuration import KUBELET_PORT
from winready_sandbox.nodes.contained import Runs
from winready_sandbox.nodes.logs import LogOptions, serve
from winready_sandbox.streams import Pipe

if TYPE_CHECKING:
    from winready_sandbox.nodes.containers import ContainerRun, Instance
    from winready_sandbox.nodes.kubelet import Kubelet
    from winready_sandbox.nodes.pods import PodWorker

Authorize = Callable[[web.Request], Awaitable[tuple[int, str] | None]]
"""Who may ask: None lets a request through, else the HTTP status and words that refuse it."""

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NodeServer:
    """The port of one node; it is closed while the node is down."""

    def __init__(self, egress: Egress, tls: ssl.SSLContext | None, authorize: Authorize) -> None:
        self._egress = egress
        self._tls = tls
        self._authorize = authorize
        self._runner: web.AppRunner | None = None
        self._addresses: list[str] = []
        self._listeners: list[Listener] = []

    async def start(self, node: Kubelet) -> None:
        """Listen, and let the node's address lead here."""
        # Not as middleware: aiohttp keeps up to a thousand handlers for ever that it has put one around.
        app = web.Application()
        _Answers(node, self._authorize).install(app.router)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        real_port = self._runner.addresses[0][1]
        self._addresses = list(node.addresses)
        for address in self._addresses:
            self._egress.register(address, KUBELET_PORT, "127.0.0.1", real_port, self._runner.server)
        self._listeners = node.open_ports(real_port)

    async def stop(self) -> None:
        """Close the port."""
        for address in self._addresses:
            self._egress.unregister(address, KUBELET_PORT)
        for listener in self._listeners:
            listener.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


class _Answers:
    """What a node answers to each path."""

    def __init__(self, node: Kubelet, authorize: Authorize) -> None:
        self.node = node
        self._authorize = authorize
        self._execs = 0
        self._refused: set[tuple[str, ...]] = set()

    def install(self, router: web.UrlDispatcher) -> None:
        """Bind the paths."""
        for verb, handler in (("exec", self._exec), ("attach", self._attach)):
            router.add_route("*", f"/{verb}/{{namespace}}/{{pod}}/{{container}}", self._guarded(handler))
            router.add_route("*", f"/{verb}/{{namespace}}/{{pod}}/{{uid}}/{{container}}", self._guarded(handler))
        forward = self._guarded(self._port_forward)
        router.add_route("*", "/portForward/{namespace}/{pod}", forward)
        router.add_route("*", "/portForward/{namespace}/{pod}/{uid}", forward)
        for path, answer in (
            ("/containerLogs/{namespace}/{pod}/{container}", self._logs),
            ("/stats/summary", self._summary),
            ("/pods", self._pods),
            ("/configz", self._config),
            ("/metrics", self._metrics),
            ("/metrics/resource", self._resource_metrics),
            ("/logs/", self._node_logs),
        ):
            router.add_get(path, self._guarded(answer))
        router.add_get("/healthz", self._health)
        router.add_get("/healthz/ping", self._health)
        router.add_route("*", "/{path:.*}", self._guarded(self._unknown))

    def _guarded(self, answer: Answer) -> Answer:
        async def guarded(request: web.Request) -> web.StreamResponse:
            refused = await self._authorize(request)
            if refused is not None:
                return web.Response(status=refused[0], text=refused[1])
            return await answer(request)

        return guarded

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPNotFound

    def _worker(self, request: web.Request) -> PodWorker:
        wanted = (request.match_info["namespace"], request.match_info["pod"])
        for worker in self.node.workers.values():
            metadata = worker.pod["metadata"]
            if (metadata["namespace"], metadata["name"]) == wanted:
                return worker
        raise web.HTTPNotFound(text="pod does not exist")

    def _running(self, request: web.Request) -> tuple[ContainerRun, Instance]:
        run = self._worker(request).runs.get(request.match_info["container"])
        if run is None or run.instance is None:
            raise web.HTTPInternalServerError(text=f'container not found ("{request.match_info["container"]}")')
        return run, run.instance

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        _, instance = self._running(request)
        container, argv = instance.container, request.query.getall("command", [])
        stdin, tty = _true(request, "input"), _true(request, "tty")

        async def start() -> Runs | str:
            node = self.node
            if node.defects.runtime.exec_broken or self._stumbles(container.id, argv):
                return "failed to exec in container: failed to create exec: context deadline exceeded"
            await node.clock.sleep(latency.draw(node.rng, latency.of(node.machine.os).exec))
            try:
                return container.spawn(argv, stdin=Pipe(), tty=tty)
            except ExecError as error:
                return error.on_exec(container.id, container.id[-12:])

        return await streaming.serve_process(request, start, argv, stdin=stdin, tty=tty)

    def _stumbles(self, container: str, argv: list[str]) -> bool:
        """Whether a flaky runtime does not start a command; the same one is started at the second try."""
        if not self.node.defects.runtime.exec_flaky:
            return False
        command = (container, *argv)
        if command in self._refused:
            self._refused.discard(command)
            return False
        self._execs += 1
        if self._execs % 4:
            return False
        self._refused.add(command)
        return True

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        run, instance = self._running(request)

        def listen(receive: Callable[[int, bytes], None]) -> Callable[[], None]:
            def out(data: bytes) -> None:
                receive(1, data)

            def err(data: bytes) -> None:
                receive(2, data)

            instance.stdout.listeners.append(out)
            instance.stderr.listeners.append(err)

            def unsubscribe() -> None:
                instance.stdout.listeners.remove(out)
                instance.stderr.listeners.remove(err)

            return unsubscribe

        stdin = instance.process.stdin if _true(request, "input") and run.spec.get("stdin") else None
        once = bool(run.spec.get("stdinOnce"))
        return await streaming.serve_attach(request, listen, stdin, instance.process.wait, stdin_once=once)

    async def _port_forward(self, request: web.Request) -> web.StreamResponse:
        worker = self._worker(request)
        if not worker.sandbox.addresses:
            raise web.HTTPInternalServerError(text="failed to find sandbox in store: not found")
        values = request.query.getall("port", []) or request.query.getall("ports", [])
        ports = [int(port) for value in values for port in value.split(",")]
        connect = worker.sandbox.connect

        if spdy_channels.wanted(request) or spdy.SUBPROTOCOL in request.headers.get("Sec-WebSocket-Protocol", ""):
            return await streaming.serve_tunnel(request, connect)
        return await streaming.serve_ports(request, ports, connect)

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        worker, name = self._worker(request), request.match_info["container"]
        run = worker.runs.get(name)
        if run is None:
            raise web.HTTPNotFound(text=f'container "{name}" not found in pod "{worker.pod["metadata"]["name"]}"')
        previous = _true(request, "previous")
        log = run.previous_log if previous else run.log
        if log is None:
            pod = worker.pod["metadata"]["name"]
            if previous:
                raise web.HTTPBadRequest(text=f'previous terminated container "{name}" in pod "{pod}" not found')
            waiting = run.state.state.get("waiting", {}).get("reason", "ContainerCreating")
            words = f'container "{name}" in pod "{pod}" is waiting to start: {waiting}'
            if waiting in ("ErrImagePull", "ImagePullBackOff"):
                words = f'container "{name}" in pod "{pod}" is waiting to start: trying and failing to pull image'
            raise web.HTTPBadRequest(text=words)
        try:
            options = LogOptions.read(dict(request.query), self.node.clock.speed)
        except ValueError as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        async for data in serve(log, options):
            await response.write(data)
        return response

    async def _summary(self, request: web.Request) -> web.Response:
        if not self.node.measures:
            raise web.HTTPNotFound(text="this node does not measure what its containers use")
        if self.node.defects.kubelet.stats_unavailable:
            return web.Response(status=500, text="Internal Error: failed to list pod stats: context deadline exceeded")
        return web.json_response(self.node.statistics.summary())

    async def _pods(self, request: web.Request) -> web.Response:
        items = [{**worker.pod, "status": worker.status()} for worker in self.node.workers.values()]
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _config(self, request: web.Request) -> web.Response:
        node, fabric = self.node, self.node.fabric
        if node.settings.hides_configuration:
            user = "user=kube-apiserver-kubelet-client, verb=get, resource=nodes, subresource(s)=[configz proxy]"
            raise web.HTTPForbidden(text=f"Forbidden ({user})")
        config = configuration.document(
            node.settings, node.machine.os, domain=fabric.domain, nameservers=list(fabric.kubelet_dns(node.machine.os))
        )
        return web.json_response({"kubeletconfig": config})

    async def _metrics(self, request: web.Request) -> web.Response:
        node = self.node
        running = sum(worker.facts.sandbox for worker in node.workers.values())
        text = (
            "# HELP kubelet_node_name [ALPHA] The node's name. The count is always 1.\n"
            "# TYPE kubelet_node_name gauge\n"
            f'kubelet_node_name{{node="{node.name}"}} 1\n'
            "# HELP kubelet_running_pods [ALPHA] Number of pods that have a running pod sandbox\n"
            "# TYPE kubelet_running_pods gauge\n"
            f"kubelet_running_pods {running}\n"
        )
        return web.Response(text=text + node.starts.text())

    async def _resource_metrics(self, request: web.Request) -> web.Response:
        if not self.node.measures:
            raise web.HTTPNotFound(text="this node does not measure what its containers use")
        return web.Response(text=self.node.statistics.metrics())

    async def _node_logs(self, request: web.Request) -> web.Response:
        return web.Response(text="<pre>\n</pre>\n", content_type="text/html")


def _true(request: web.Request, name: str) -> bool:
    return request.query.get(name, "").lower() in ("1", "true")
