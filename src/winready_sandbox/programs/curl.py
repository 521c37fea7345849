"""curl and curl.exe: HTTP(S) over the simulated network with curl's own messages and exit codes."""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from dataclasses import dataclass, field
from urllib.parse import quote, urljoin, urlsplit

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import DnsFailure, NetworkError, NoSuchName, TimedOut
from winready_sandbox.programs import http1
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
    """What is known about one transfer, for -w and -v."""

    url: str
    started: float
    status: int = 0
    size: int = 0
    remote: tuple[str, int] = ("", 0)
    local: tuple[str, int] = ("", 0)
    connected: float = 0.0
    finished: float = 0.0
    redirects: int = 0
    content_type: str = ""
    connects: int = 0
    shown: bytearray = field(default_factory=bytearray)


async def curl(process: Process) -> int:
    """Fetch every URL of the command line; the exit code is the last one's."""
    try:
        options = parse(process.argv[1:])
    except CurlUsage as error:
        process.err(str(error))
        return 2
    if options.on("version"):
        process.out(f"curl {VERSION} libcurl/{VERSION}\nProtocols: file http https\n")
        return 0
    if not options.urls:
        process.err(f"curl: (2) no URL specified\n{HELP}")
        return 2
    code = 0
    for number, url in enumerate(options.urls):
        code = await _Curl(process, options, number).fetch(url)
    return code


class _Curl:
    """One transfer after the options were read."""

    def __init__(self, process: Process, options: Options, number: int) -> None:
        self._process = process
        self._options = options
        self._number = number
        self._clock = process.container.clock

    async def fetch(self, url: str) -> int:
        """Transfer with retries and report."""
        options = self._options
        retries = int(options.seconds("retry"))
        while True:
            transfer = Transfer(url, self._clock.now())
            code = await self._attempt(url, transfer)
            transient = code in (28, 6) or (code == 22 and transfer.status in (408, 429, 500, 502, 503, 504))
            again = transient or (code == 7 and options.on("retry-connrefused")) or options.on("retry-all-errors")
            if code == 0 or not again or not retries:
                break
            retries -= 1
            await self._clock.sleep(options.seconds("retry-delay") or 1.0)
        if (text := options.values.get("write-out")) is not None:
            self._process.out(self._write_out(text, transfer, code))
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
            finally:
                transfer.finished = self._clock.now()
            self._meter(transfer)
        except Failed as error:
            self._meter(transfer)
            if not options.on("silent") or options.on("show-error"):
                self._process.err(f"curl: ({error.code}) {error}\n")
            return error.code
        return 0

    async def _transfer(self, url: str, transfer: Transfer) -> None:
        options = self._options
        method = options.values.get("request", "")
        body = self._body()
        limit = int(options.seconds("max-redirs")) if "max-redirs" in options.values else 50
        while True:
            default = "HEAD" if options.on("head") else "POST" if body and not options.on("get") else "GET"
            head, content = await self._exchange(url, method or default, body, transfer)
            location = next((value for name, value in head.headers if name.lower() == "location"), "")
            if not (options.on("location") and location and 300 <= head.status < 400):
                break
            transfer.redirects += 1
            if transfer.redirects > limit:
                raise Failed(47, f"Maximum ({limit}) redirects followed")
            url = urljoin(url if "//" in url else f"http://{url}", location)
            if head.status in (301, 302, 303) and (method or default) == "POST":
                method, body = "", b""
        transfer.url = url
        if head.status >= 400 and options.on("fail"):
            raise Failed(22, f"The requested URL returned error: {head.status}")
        self._deliver(url, content)
        if head.status >= 400 and options.on("fail-with-body"):
            raise Failed(22, f"The requested URL returned error: {head.status}")

    async def _exchange(self, url: str, method: str, body: bytes, transfer: Transfer) -> tuple[http1.Head, bytes]:
        scheme, host, port, target = self._split(url)
        stream = await self._open(scheme, host, port, transfer)
        try:
            headers = self._headers(host, port, scheme, body)
            self._verbose(">", [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), ""])
            stream.write(http1.request_bytes(method, target, headers, body))
            try:
                head = await http1.read_head(stream)
                if head is None:
                    raise Failed(52, "Empty reply from server")
                lines = [f"{head.version} {head.status} {head.phrase}", *(f"{n}: {v}" for n, v in head.headers), ""]
                self._verbose("<", lines)
                transfer.status = head.status
                transfer.content_type = next((v for n, v in head.headers if n.lower() == "content-type"), "")
                if self._options.on("include") or self._options.on("head"):
                    transfer.shown += "\r\n".join([*lines, ""]).encode()
                content = await http1.read_rest(stream, head, method)
            except http1.BadAnswer:
                raise Failed(1, "Received HTTP/0.9 when not allowed") from None
            except asyncio.IncompleteReadError as error:
                left = (error.expected or 0) - len(error.partial)
                raise Failed(18, f"end of response with {left} bytes missing") from None
        finally:
            stream.close()
        transfer.size = len(content)
        content = bytes(transfer.shown) + content
        transfer.shown.clear()
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
        if self._options.on("get") and (data := self._body(encode=True)):
            target += ("&" if parts.query else "?") + data.decode()
        return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), target

    async def _open(self, scheme: str, host: str, port: int, transfer: Transfer) -> Stream:
        options, process = self._options, self._process
        connect_limit = options.seconds("connect-timeout") or CONNECT_LIMIT
        connect_limit = min(connect_limit, options.seconds("max-time") or connect_limit)
        started = self._clock.now()
        families = (4,) if options.on("ipv4") else (6,) if options.on("ipv6") else ()
        found = await self._addresses(host, port, families, connect_limit)
        if families == (6,) and ":" not in found[0]:
            raise Failed(6, f"Could not resolve host: {host}")
        connection: Connection | None = None
        for address in found:
            self._note(f"  Trying {f'[{address}]' if ':' in address else address}:{port}...")
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
        transfer.connected, transfer.connects = self._clock.now(), transfer.connects + 1
        transfer.remote, transfer.local = connection.remote, connection.local
        self._note(f"Connected to {host} ({connection.remote[0]}) port {port}")
        return await self._secure(connection, host) if scheme == "https" else connection

    async def _addresses(self, host: str, port: int, families: tuple[int, ...], limit: float) -> list[str]:
        for entry in self._options.resolve:
            name, number, target = (*entry.split(":", 2), "", "")[:3]
            if name.lower() == host.lower() and number == str(port):
                return [target.strip("[]")]
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

    def _headers(self, host: str, port: int, scheme: str, body: bytes) -> list[tuple[str, str]]:
        shown = f"[{host}]" if ":" in host else host
        usual = port == (443 if scheme == "https" else 80)
        agent = self._options.values.get("user-agent", f"curl/{VERSION}")
        headers = [("Host", shown if usual else f"{shown}:{port}")]
        if user := self._options.values.get("user"):
            headers.append(("Authorization", "Basic " + base64.b64encode(user.encode()).decode()))
        headers += [("User-Agent", agent), ("Accept", "*/*")]
        for line in self._given_headers():
            name, _, value = line.partition(":")
            headers = [item for item in headers if item[0].lower() != name.strip().lower()]
            if value.strip():
                headers.append((name.strip(), value.strip()))
        if body and not self._options.on("get"):
            headers.append(("Content-Length", str(len(body))))
            kind = self._options.data[0][0]
            if not any(name.lower() == "content-type" for name, _ in headers):
                default = "application/x-www-form-urlencoded"
                default = "application/json" if kind == "json" else default
                headers.append(
                    ("Content-Type", f"multipart/form-data; boundary={_BOUNDARY}" if kind == "form" else default)
                )
        return headers

    def _given_headers(self) -> list[str]:
        lines: list[str] = []
        for item in self._options.headers:
            if item.startswith("@"):
                lines += self._file(item[1:]).decode("latin-1").splitlines()
            else:
                lines.append(item)
        return lines

    def _file(self, path: str) -> bytes:
        try:
            return self._process.files.read(path, self._process.cwd, who=self._process.identity)
        except FileError:
            raise Failed(26, f"Failed to open/read local data from file/application: {path}") from None

    def _body(self, *, encode: bool = False) -> bytes:
        if self._options.on("get") and not encode:
            return b""
        parts: list[bytes] = []
        for kind, value in self._options.data:
            if kind == "form":
                return self._form()
            if value.startswith("@") and kind != "data-raw":
                data = self._file(value[1:])
                parts.append(data if kind == "data-binary" else data.replace(b"\r", b"").replace(b"\n", b""))
            elif kind == "data-urlencode":
                name, equals, text = value.partition("=")
                parts.append(
                    (name + equals + quote(text, safe="")).encode() if equals else quote(name, safe="").encode()
                )
            else:
                parts.append(value.encode("utf-8", "surrogateescape"))
        return b"&".join(parts)

    def _form(self) -> bytes:
        out = b""
        for _, value in self._options.data:
            name, _, text = value.partition("=")
            head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"'
            if text.startswith("@"):
                filename = re.split(r"[/\\]", text[1:])[-1]
                head += f'; filename="{filename}"\r\nContent-Type: application/octet-stream'
                content = self._file(text[1:])
            else:
                content = text.encode()
            out += head.encode() + b"\r\n\r\n" + content + b"\r\n"
        return out + f"--{_BOUNDARY}--\r\n".encode()

    def _deliver(self, url: str, content: bytes) -> None:
        outputs = self._options.outputs
        target = outputs[self._number] if self._number < len(outputs) else ""
        if self._options.on("remote-name") and not target:
            target = urlsplit(url).path.rpartition("/")[2] or "curl_response"
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
        options = self._options
        if options.on("silent") or options.on("no-progress-meter") or self._process.tty:
            return
        size = transfer.size
        self._process.err(
            "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
            "                                 Dload  Upload   Total   Spent    Left  Speed\n"
            "\r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0"
            f"\r{100 if size else 0:3} {size:5}  {100 if size else 0:3} {size:5}    0     0  {size:5}      0 "
            f"--:--:-- --:--:-- --:--:-- {size:5}\n"
        )

    def _note(self, text: str) -> None:
        if self._options.on("verbose"):
            self._process.err(f"* {text}\n")

    def _verbose(self, mark: str, lines: list[str]) -> None:
        if self._options.on("verbose"):
            self._process.err("".join(f"{mark} {line}\n" for line in lines))

    def _write_out(self, text: str, transfer: Transfer, code: int) -> str:
        total = (transfer.finished or self._clock.now()) - transfer.started
        connect = max(transfer.connected - transfer.started, 0.0)
        values = {
            "http_code": f"{transfer.status:03d}",
            "response_code": f"{transfer.status:03d}",
            "time_total": f"{total:.6f}",
            "time_connect": f"{connect:.6f}",
            "time_namelookup": f"{connect / 2:.6f}",
            "time_starttransfer": f"{total:.6f}",
            "size_download": str(transfer.size),
            "remote_ip": transfer.remote[0],
            "remote_port": str(transfer.remote[1]),
            "local_ip": transfer.local[0],
            "local_port": str(transfer.local[1]),
            "url_effective": transfer.url,
            "url": transfer.url,
            "exitcode": str(code),
            "num_redirects": str(transfer.redirects),
            "num_connects": str(transfer.connects),
            "content_type": transfer.content_type,
            "errormsg": "",
        }
        text = re.sub(r"%\{(\w+)\}", lambda found: values.get(found[1], ""), text)
        return text.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t").replace("%%", "%")


_BOUNDARY = "------------------------d74496d66958873e"
