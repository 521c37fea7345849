"""curl's command line: the options that something here uses, and curl's own words for the others."""

from __future__ import annotations

from dataclasses import dataclass, field

HELP = "curl: try 'curl --help' or 'curl --manual' for more information\n"
VALUES = {"-o": "output", "-w": "write-out", "-H": "header", "-m": "max-time"}
SWITCHES = {
    "-s": "silent",
    "-S": "show-error",
    "-g": "globoff",
    "-k": "insecure",
    "-f": "fail",
    "-4": "ipv4",
    "-6": "ipv6",
    "-q": "disable",
}
LONG_VALUES = frozenset((*VALUES.values(), "connect-timeout", "cacert", "interface"))
LONG_SWITCHES = frozenset((*SWITCHES.values(), "ssl-no-revoke"))


class CurlUsage(Exception):
    """Wrong usage: curl's message; the exit code is 2."""


@dataclass
class Options:
    """What one call asks for."""

    urls: list[str] = field(default_factory=list)
    switches: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    headers: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

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
    for name in ("connect-timeout", "max-time"):
        options.seconds(name)
    return options


def _long(options: Options, item: str, queue: list[str]) -> None:
    name = item[2:]
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
    options.values[name] = value
    if name == "header":
        options.headers.append(value)
    elif name == "output":
        options.outputs.append(value)
