"""curl and curl.exe: HTTP(S) over the simulated network with curl's own messages and exit codes."""

from __future__ import annotations

import asyncio
import re
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import DnsFailure, NetworkError, NoSuchName, TimedOut
from winready_sandbox.programs import http1, record
from winready_sandbox.programs.curl_options import HELP, CurlUsage, Options, parse
from winready_sandbox.programs.net import Stream, TlsStream, addresses, client_tls, endpoint_of
from winready_sandbox.streams import Connection

VERSION = "8.12.1"
CONNECT_LIMIT = 300.0
DNS_LIMIT = 30.0


class Failed(Exception):
    """A transfer that failed, with curl's exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Transfer:
    """What is known about one transfer."""

    status: int = 0
    size: int = 0
    connects: int = 0
    """New connections that it took."""


Place = tuple[str, str, int]
"""Scheme, host and port."""


class Dead(Exception):
    """A connection that was kept turned out to have ended."""


async def curl(process: Process) -> int:
    """Fetch every URL of the command line; the exit code is the last one's."""
    try:
        options = parse(process.argv[1:])
    except CurlUsage as error:
        process.err(str(error))
        return 2
    record.note(process, "program", "curl", (*options.switches, *options.values))
    if not options.urls:
        process.err(f"curl: (2) no URL specified\n{HELP}")
        return 2
    code = 0
    kept: dict[Place, Stream] = {}
    try:
        for number, url in enumerate(options.urls):
            code = await _Curl(process, options, number, kept).fetch(url)
    finally:
        for stream in kept.values():
            stream.close()
    return code


class _Curl:
    """One transfer after the options were read."""

    def __init__(self, process: Process, options: Options, number: int, kept: dict[Place, Stream]) -> None:
        self._process = process
        self._options = options
        self._number = number
        self._kept = kept
        """Open connections, for whatever URL is next at the same place."""
        self._clock = process.container.clock

    async def fetch(self, url: str) -> int:
        """Transfer and report."""
        transfer = Transfer()
        code = await self._attempt(url, transfer)
        if (text := self._options.values.get("write-out")) is not None:
            shown = text.replace("%{http_code}", f"{transfer.status:03d}")
            shown = shown.replace("%{num_connects}", str(transfer.connects))
            self._process.out(shown.replace("\\n", "\n").replace("%%", "%"))
        return code

    async def _attempt(self, url: str, transfer: Transfer) -> int:
        options, limit = self._options, self._options.seconds("max-time")
        try:
            try:
                async with asyncio.timeout(self._clock.patience(limit) if limit else None):
                    await self._transfer(url, transfer)
            except TimeoutError:
                elapsed = f"{round(limit * 1000) + 1} milliseconds"
                received = f"with {transfer.size} bytes received"
                raise Failed(28, f"Operation timed out after {elapsed} {received}") from None
            self._meter(transfer)
        except Failed as error:
            self._meter(transfer)
            if not options.on("silent") or options.on("show-error"):
                self._process.err(f"curl: ({error.code}) {error}\n")
            return error.code
        return 0

    async def _transfer(self, url: str, transfer: Transfer) -> None:
        head, content = await self._exchange(url, transfer)
        if head.status >= 400 and self._options.on("fail"):
            raise Failed(22, f"The requested URL returned error: {head.status}")
        self._deliver(content)

    async def _exchange(self, url: str, transfer: Transfer) -> tuple[http1.Head, bytes]:
        scheme, host, port, target = self._split(url)
        place = (scheme, host, port)
        request = http1.request_bytes("GET", target, self._headers(host, port, scheme), b"")
        kept = self._kept.pop(place, None)
        if kept is not None and not kept.ended:
            try:
                return await self._ask(kept, place, request, transfer)
            except Dead:
                # As curl does: it cannot know whether the server has seen the request, and tries once more.
                pass
        stream = await self._open(scheme, host, port)
        transfer.connects += 1
        try:
            return await self._ask(stream, place, request, transfer)
        except Dead:
            raise Failed(52, "Empty reply from server") from None

    async def _ask(self, stream: Stream, place: Place, request: bytes, transfer: Transfer) -> tuple[http1.Head, bytes]:
        reusable = False
        try:
            stream.write(request)
            try:
                head = await http1.read_head(stream)
                if head is None:
                    raise Dead
                transfer.status = head.status
                content = await http1.read_rest(stream, head, "GET")
                reusable = http1.keeps(head)
            except http1.BadAnswer:
                raise Failed(1, "Received HTTP/0.9 when not allowed") from None
            except asyncio.IncompleteReadError as error:
                left = (error.expected or 0) - len(error.partial)
                raise Failed(18, f"end of response with {left} bytes missing") from None
        finally:
            if reusable:
                self._kept[place] = stream
            else:
                stream.close()
        transfer.size = len(content)
        return head, content

    def _split(self, url: str) -> tuple[str, str, int, str]:
        if re.search(r"[\x00-\x20]", url):
            raise Failed(3, "URL rejected: Malformed input to a URL function")
        if "://" not in url:
            url = f"http://{url}"
        if not self._options.on("globoff") and re.search(r"[{}]|\[(?![0-9a-fA-F:.%]+\])", url):
            raise Failed(3, f"bad range specification in URL position {url.find('[') + 1}:\n{url}\n")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise Failed(3, "URL rejected: Port number was not a decimal number between 0 and 65535") from None
        if parts.scheme not in ("http", "https"):
            raise Failed(1, f'Protocol "{parts.scheme}" not supported')
        if not parts.hostname:
            raise Failed(3, "URL rejected: No host part in the URL")
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), target

    async def _open(self, scheme: str, host: str, port: int) -> Stream:
        options, process = self._options, self._process
        if (own := options.values.get("interface")) and own not in endpoint_of(process).addresses:
            raise Failed(45, "bind failed with errno 99: Address not available")
        connect_limit = options.seconds("connect-timeout") or CONNECT_LIMIT
        connect_limit = min(connect_limit, options.seconds("max-time") or connect_limit)
        started = self._clock.now()
        families = (4,) if options.on("ipv4") else (6,) if options.on("ipv6") else ()
        found = await self._addresses(host, families, connect_limit)
        if families == (6,) and ":" not in found[0]:
            raise Failed(6, f"Could not resolve host: {host}")
        connection: Connection | None = None
        for address in found:
            try:
                connection = await endpoint_of(process).connect(address, port, timeout=connect_limit)
                break
            except TimedOut as error:
                if not error.gave_up:
                    elapsed = round(connect_limit * 1000) + 1
                    raise Failed(28, f"Connection timed out after {elapsed} milliseconds") from None
            except NetworkError:
                continue
        if connection is None:
            elapsed = round((self._clock.now() - started) * 1000)
            raise Failed(7, f"Failed to connect to {host} port {port} after {elapsed} ms: Could not connect to server")
        return await self._secure(connection, host) if scheme == "https" else connection

    async def _addresses(self, host: str, families: tuple[int, ...], limit: float) -> list[str]:
        try:
            return await addresses(self._process, host, families=families, timeout=min(limit, DNS_LIMIT))
        except NoSuchName:
            raise Failed(6, f"Could not resolve host: {host}") from None
        except DnsFailure:
            if limit < DNS_LIMIT:
                raise Failed(28, f"Resolving timed out after {round(limit * 1000)} milliseconds") from None
            raise Failed(6, f"Could not resolve host: {host}") from None
        except NetworkError:
            raise Failed(6, f"Could not resolve host: {host}") from None

    async def _secure(self, connection: Connection, host: str) -> TlsStream:
        options = self._options
        authorities = ""
        if path := options.values.get("cacert", ""):
            try:
                authorities = self._process.files.read(path, self._process.cwd).decode("ascii", "replace")
            except FileError:
                raise Failed(77, f"error setting certificate verify locations:  CAfile: {path} CApath: none") from None
        try:
            context = client_tls(verify=not options.on("insecure"), authorities=authorities)
            stream = TlsStream(connection, context, server_name=host)
            await stream.handshake()
        except ssl.SSLCertVerificationError as error:
            hint = "More details here: https://curl.se/docs/sslcerts.html"
            raise Failed(60, f"SSL certificate problem: {error.verify_message}\n{hint}") from None
        except ssl.SSLError:
            raise Failed(35, "TLS connect error: error:00000000:lib(0)::reason(0)") from None
        except EOFError:
            raise Failed(35, f"OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to {host}") from None
        return stream

    def _headers(self, host: str, port: int, scheme: str) -> list[tuple[str, str]]:
        shown = f"[{host}]" if ":" in host else host
        usual = port == (443 if scheme == "https" else 80)
        headers = [("Host", shown if usual else f"{shown}:{port}")]
        headers += [("User-Agent", f"curl/{VERSION}"), ("Accept", "*/*")]
        for line in self._given_headers():
            name, _, value = line.partition(":")
            headers = [item for item in headers if item[0].lower() != name.strip().lower()]
            if value.strip():
                headers.append((name.strip(), value.strip()))
        return headers

    def _given_headers(self) -> list[str]:
        lines: list[str] = []
        for item in self._options.headers:
            lines += self._lines(item[1:]) if item.startswith("@") else [item]
        return lines

    def _lines(self, path: str) -> list[str]:
        try:
            data = self._process.files.read(path, self._process.cwd, who=self._process.identity)
        except FileError:
            raise Failed(26, f"Failed to open/read local data from file/application: {path}") from None
        return data.decode("latin-1").splitlines()

    def _deliver(self, content: bytes) -> None:
        outputs = self._options.outputs
        target = outputs[self._number] if self._number < len(outputs) else ""
        if not target or target == "-":
            self._process.stdout.write(content)
            return
        if target.lower() in ("nul", "/dev/null"):
            return
        try:
            self._process.files.write(target, content, self._process.cwd, who=self._process.identity)
        except FileError as error:
            reason = error.text(self._process.container.os)
            raise Failed(23, f"client returned ERROR on writing, {target}: {reason}") from None

    def _meter(self, transfer: Transfer) -> None:
        """The progress meter, which curl shows whenever it is not silent and its output is no terminal."""
        if self._options.on("silent") or self._process.tty:
            return
        size = transfer.size
        self._process.err(
            "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
            "                                 Dload  Upload   Total   Spent    Left  Speed\n"
            "\r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0"
            f"\r{100 if size else 0:3} {size:5}  {100 if size else 0:3} {size:5}    0     0  {size:5}      0 "
            f"--:--:-- --:--:-- --:--:-- {size:5}\n"
        )
