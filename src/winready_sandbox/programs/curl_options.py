"""curl's command line: the options that people and tests use, and curl's own words for the others."""

from __future__ import annotations

from dataclasses import dataclass, field

HELP = "curl: try 'curl --help' or 'curl --manual' for more information\n"
VALUES = {
    "-o": "output",
    "-w": "write-out",
    "-X": "request",
    "-d": "data",
    "-H": "header",
    "-m": "max-time",
    "-A": "user-agent",
    "-u": "user",
    "-e": "referer",
    "-x": "proxy",
    "-F": "form",
    "-b": "cookie",
    "-D": "dump-header",
    "-r": "range",
    "-T": "upload-file",
}
SWITCHES = {
    "-s": "silent",
    "-S": "show-error",
    "-g": "globoff",
    "-k": "insecure",
    "-v": "verbose",
    "-i": "include",
    "-I": "head",
    "-L": "location",
    "-f": "fail",
    "-4": "ipv4",
    "-6": "ipv6",
    "-G": "get",
    "-O": "remote-name",
    "-q": "disable",
    "-N": "no-buffer",
    "-0": "http1.0",
    "-V": "version",
    "-h": "help",
    "-#": "progress-bar",
}
LONG_VALUES = frozenset(
    (
        *VALUES.values(),
        "connect-timeout",
        "data-raw",
        "data-binary",
        "data-urlencode",
        "json",
        "cacert",
        "retry",
        "retry-delay",
        "retry-max-time",
        "interface",
        "resolve",
        "max-redirs",
        "noproxy",
        "url",
        "local-port",
        "cert",
        "key",
        "capath",
    )
)
LONG_SWITCHES = frozenset(
    (
        *SWITCHES.values(),
        "fail-with-body",
        "retry-connrefused",
        "retry-all-errors",
        "ssl-no-revoke",
        "http1.1",
        "http2",
        "tlsv1.2",
        "compressed",
        "no-progress-meter",
        "no-keepalive",
        "path-as-is",
        "tcp-nodelay",
        "fail-early",
        "no-sessionid",
    )
)


class CurlUsage(Exception):
    """Wrong usage: curl's message; the exit code is 2."""


@dataclass
class Options:
    """What one call asks for."""

    urls: list[str] = field(default_factory=list)
    switches: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    headers: list[str] = field(default_factory=list)
    data: list[tuple[str, str]] = field(default_factory=list)
    """Kind of data option and its value."""
    outputs: list[str] = field(default_factory=list)
    resolve: list[str] = field(default_factory=list)

    def on(self, name: str) -> bool:
        """Whether a switch was given."""
        return name in self.switches

    def seconds(self, name: str) -> float:
        """A time limit; 0 without one."""
        text = self.values.get(name, "0")
        try:
            return float(text)
        except ValueError:
            flag = "-m, --max-time" if name == "max-time" else f"--{name}"
            raise CurlUsage(f"curl: option {flag}: expected a proper numerical parameter\n{HELP}") from None


def parse(arguments: list[str]) -> Options:
    """Read a command line; raises `CurlUsage`."""
    options = Options()
    queue = list(arguments)
    while queue:
        item = queue.pop(0)
        if item.startswith("--") and len(item) > 2:
            _long(options, item, queue)
        elif item.startswith("-") and len(item) > 1:
            _short(options, item, queue)
        else:
            options.urls.append(item)
    for name in ("connect-timeout", "max-time", "retry", "retry-delay", "max-redirs"):
        options.seconds(name)
    return options


def _long(options: Options, item: str, queue: list[str]) -> None:
    name = item[2:]
    if name.startswith("no-") and name not in LONG_SWITCHES and name[3:] in LONG_SWITCHES:
        options.switches.discard(name[3:])
        return
    if name in LONG_SWITCHES:
        options.switches.add(name)
    elif name in LONG_VALUES:
        if not queue:
            raise CurlUsage(f"curl: option {item}: requires parameter\n{HELP}")
        _store(options, name, queue.pop(0))
    else:
        raise CurlUsage(f"curl: option {item}: is unknown\n{HELP}")


def _short(options: Options, item: str, queue: list[str]) -> None:
    letters = item[1:]
    while letters:
        flag, letters = f"-{letters[0]}", letters[1:]
        if flag in SWITCHES:
            options.switches.add(SWITCHES[flag])
            continue
        if flag not in VALUES:
            raise CurlUsage(f"curl: option {item}: is unknown\n{HELP}")
        if not letters and not queue:
            raise CurlUsage(f"curl: option {flag}: requires parameter\n{HELP}")
        _store(options, VALUES[flag], letters or queue.pop(0))
        return


def _store(options: Options, name: str, value: str) -> None:
    match name:
        case "header":
            options.headers.append(value)
        case "data" | "data-raw" | "data-binary" | "data-urlencode" | "json" | "form":
            options.data.append((name, value))
        case "output":
            options.outputs.append(value)
        case "url":
            options.urls.append(value)
        case "resolve":
            options.resolve.append(value)
        case _:
            options.values[name] = value
