"""`agnhost netexec`: the HTTP and UDP server that most network tests talk to."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from winready_sandbox.machine.errors import ExecError, FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import Listener, NetworkError
from winready_sandbox.programs import http1
from winready_sandbox.programs.agnhost import cobra, golang
from winready_sandbox.programs.agnhost.dial import dial
from winready_sandbox.programs.agnhost.golang import go_json, klog
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import endpoint_of, join_host_port
from winready_sandbox.streams import Connection, Pipe

FLAGS: cobra.Known = {
    "http-port": ("int", 8080),
    "udp-port": ("int", 8081),
    "udp-listen-addresses": ("string", ""),
    "delay-shutdown": ("int", 0),
}


async def main(process: Process, flags: cobra.Flags) -> int:
    """Serve until told to stop."""
    server = NetExec(process, flags)
    try:
        return await server.run()
    finally:
        server.close()


class NetExec:
    """One running server."""

    def __init__(self, process: Process, flags: cobra.Flags) -> None:
        self._process = process
        self._flags = flags
        self._ready = False
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._listeners: list[Listener] = []
        self._uploads = 0

    def close(self) -> None:
        """The process ends, and with it everything that it listens on."""
        for listener in self._listeners:
            listener.close()

    async def run(self) -> int:
        """Open the ports, then wait for the end."""
        process, flags = self._process, self._flags
        endpoint = endpoint_of(process)
        port, udp_port = flags.number("http-port"), flags.number("udp-port")
        try:
            klog(process, f"Started HTTP server on port {port}")
            self._listeners.append(endpoint.listen(port, self._serve))
        except NetworkError as error:
            return golang.fatal(process, golang.listen_error(process, error, port))
        try:
            if udp_port != -1:
                # Fact 1.2: only the UDP listener makes /healthz ready.
                for address in sorted(set(flags.text("udp-listen-addresses").split(","))):
                    self._listeners.append(endpoint.bind_udp(udp_port, self._answer_udp, address=address))
                    klog(process, f"Started UDP server on port {address} {udp_port}")
                self._ready = True
        except NetworkError as error:
            return golang.fatal(process, f"Error occurred: failed to create listener: {error}")
        stop = asyncio.ensure_future(process.stop_requested.wait())
        ends: list[asyncio.Future[Any]] = [stop, self._exit]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._exit.done():
                return self._exit.result()
            if delay := flags.number("delay-shutdown"):
                klog(process, f"Sleeping {delay} seconds before terminating...")
                await process.container.clock.sleep(delay)
            return 0
        finally:
            stop.cancel()

    def _end(self, code: int) -> Response:
        if not self._exit.done():
            self._exit.set_result(code)
        return Response(hang_up=True)

    async def _serve(self, connection: Connection) -> None:
        await http1.serve(connection, self._handle, connection.remote, connection.local)

    async def _answer_udp(self, payload: bytes, source: tuple[str, int]) -> bytes | None:
        answer = self._command(payload.decode("utf-8", "replace"), source)
        return None if answer is None else answer.encode()

    def _command(self, text: str, source: tuple[str, int]) -> str | None:
        """What datagrams may ask for."""
        text, client = text.strip().lower(), join_host_port(*source)
        if text == "hostname":
            klog(self._process, "Sending udp hostName response")
            return self._process.container.hostname
        if text.startswith("echo "):
            klog(self._process, f"Echoing {text[5:]} to UDP client {client}")
            return text[5:]
        if text == "clientip":
            klog(self._process, f"Sending clientip back to UDP client {client}")
            return client
        if text:
            klog(self._process, f"Unknown UDP command received from {client}: {text}")
        return None

    async def _handle(self, request: Request) -> Response:
        value = request.value
        match request.path:
            case "/clientip":
                klog(self._process, "GET /clientip")
                return Response(join_host_port(*request.remote))
            case "/serverport":
                klog(self._process, "GET /serverport")
                return Response(join_host_port(*request.local))
            case "/hostname" | "/hostName" as path:
                klog(self._process, f"GET {path}")
                return Response(self._process.container.hostname)
            case "/healthz":
                klog(self._process, "GET /healthz")
                return Response(status=200 if self._ready else 412)
            case "/echo":
                return self._echo(value("msg"), value("code"))
            case "/header":
                return self._header(request)
            case "/dial":
                return await self._dial(request)
            case "/shell":
                return await self._shell(value("shellCommand") or value("cmd"))
            case "/redirect":
                return self._redirect(request)
            case "/exit":
                return await self._exit_request(value("code"), value("timeout"), value("wait"))
            case "/shutdown":
                klog(self._process, "GET /shutdown")
                return self._end(0)
            case "/upload":
                return self._upload(request)
        klog(self._process, "GET /")
        return Response(f"NOW: {golang.now_text()}")

    def _echo(self, message: str, code: str) -> Response:
        klog(self._process, f"GET /echo?msg={message}&code={code}")
        if code and not code.lstrip("-").isdigit():
            return Response(f"argument 'code' must be an integer or empty, got {json.dumps(code)}\n")
        return Response(message, int(code or 200))

    def _header(self, request: Request) -> Response:
        if key := request.value("key"):
            klog(self._process, f"GET /header?key={key}")
            return Response("" if key.lower() == "host" else request.headers.get(key.lower(), ""))
        klog(self._process, "GET /header")
        headers = {name.title(): [text] for name, text in sorted(request.headers.items()) if name != "host"}
        return Response(go_json(headers))

    def _redirect(self, request: Request) -> Response:
        location, code = request.value("location"), request.value("code")
        klog(self._process, f"{request.method} /redirect?msg={location}&code={code}")
        if code and not code.isdigit():
            return Response(f"argument 'code' must be an integer or empty, got {json.dumps(code)}\n")
        status = int(code or 302)
        body = f'<a href="{location}">{http1.reason(status)}</a>.\n\n' if request.method == "GET" else ""
        return Response(body, status, {"Content-Type": "text/html; charset=utf-8", "Location": location})

    async def _dial(self, request: Request) -> Response:
        query = dict(reversed(parse_qsl(urlsplit(request.target).query, keep_blank_values=True)))
        host, port, wanted, protocol, tries = (
            query.get(name, "") for name in ("host", "port", "request", "protocol", "tries")
        )
        klog(self._process, f"GET /dial?host={host}&protocol={protocol}&port={port}&request={wanted}&tries={tries}")
        if tries and not tries.lstrip("+-").isdigit():
            detail = f'strconv.Atoi: parsing "{tries}": invalid syntax'
            return http1.error(f"tries parameter is invalid. {detail}", 400)
        if not wanted:
            return http1.error("request parameter not specified. <nil>", 400)
        return await dial(self._process, host, port, wanted, protocol, int(tries or 1))

    async def _shell(self, command: str) -> Response:
        klog(self._process, f"GET /shell?cmd={command}")
        output = Pipe()
        result: dict[str, str] = {}
        try:
            child = self._process.spawn(["/bin/sh", "-c", command], stdout=output, stderr=output)
            code = await child.wait()
            if code:
                result["error"] = f"exit status {code}"
        except ExecError as error:
            result["error"] = f"fork/exec /bin/sh: {error.reason}"
        output.close()
        if text := (await output.read_all()).decode("utf-8", "replace"):
            result["output"] = text
        pairs = sorted(result.items())
        klog(self._process, f"Output: map[{' '.join(f'{key}:{text}' for key, text in pairs)}]")
        return Response(go_json(dict(pairs)))

    async def _exit_request(self, code: str, timeout: str, wait: str) -> Response:
        klog(self._process, f"GET /exit?code={code}&timeout={timeout}&wait={wait}")
        seconds: dict[str, float] = {}
        for name, text in (("timeout", timeout), ("wait", wait)):
            try:
                seconds[name] = cobra.duration(text) if text else 0.0
            except ValueError:
                return Response(f"argument '{name}' must be a valid golang duration or empty, got {json.dumps(text)}\n")
        if code and not code.lstrip("+-").isdigit():
            return Response(f"argument 'code' must be an integer [0-127] or empty, got {json.dumps(code)}\n")
        await self._process.container.clock.sleep(seconds["wait"])
        if not seconds["timeout"]:
            return self._end(int(code or 0))
        klog(self._process, "Graceful shutdown completed with: <nil>")
        asyncio.get_running_loop().call_soon(self._end, int(code or 0))
        return Response()

    def _upload(self, request: Request) -> Response:
        klog(self._process, "GET /upload")
        boundary = request.headers.get("content-type", "").partition("boundary=")[2].strip('"')
        parts = request.body.split(b"--" + boundary.encode()) if boundary else []
        part = next((item for item in parts if b'name="file"' in item.partition(b"\r\n\r\n")[0]), None)
        if part is None:
            return Response(go_json({"error": "Unable to upload file."}))
        self._uploads += 1
        path = f"/uploads/upload{self._process.pid}{self._uploads:06d}"
        content = part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        try:
            self._process.files.write(path, content, who=self._process.identity)
        except FileError:
            return Response(go_json({"error": "Unable to open file for write"}))
        klog(self._process, f"Wrote upload to {path}")
        return Response(go_json({"output": path}), 201)
