"""agnhost, the test image's main program: which subcommands there are, and how it words wrong usage."""

from __future__ import annotations

from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import Unreachable
from winready_sandbox.programs.agnhost import cobra, connect, inclusterclient, netexec, servers, tools
from winready_sandbox.programs.agnhost.golang import Main

SUBCOMMANDS: dict[str, tuple[str, Main]] = {
    "connect": ("Attempts a TCP, UDP or SCTP connection and returns useful errors", connect.main),
    "dns-server-list": ("Prints the host's DNS Server list", tools.dns_server_list),
    "dns-suffix": ("Prints the host's DNS suffix list", tools.dns_suffix),
    "entrypoint-tester": ("Prints the args it's passed and exits", tools.entrypoint_tester),
    "etc-hosts": ("Prints the host's /etc/hosts file", tools.etc_hosts),
    "inclusterclient": ('Periodically poll the Kubernetes "/healthz" endpoint', inclusterclient.main),
    "liveness": ("Starts a server that is alive for 10 seconds", servers.liveness),
    "logs-generator": ("Outputs lines of logs to stdout uniformly", tools.logs_generator),
    "mounttest": (
        "Creates files with given permissions and outputs FS type, owner, mode, permissions, contents of files",
        tools.mounttest,
    ),
    "netexec": ("Creates HTTP(S), UDP, and (optionally) SCTP servers with various endpoints", netexec.main),
    "nonewprivs": ("Prints the UID of the running process", tools.nonewprivs),
    "pause": ("Pauses the execution", tools.pause),
    "port-forward-tester": ("Creates a TCP server that sends chunks of data", servers.port_forward_tester),
    "porter": ("Serves requested data on ports specified in ENV variables", servers.porter),
    "serve-hostname": ("Serves the hostname", servers.serve_hostname),
    "stress": ("Lightweight compute resource stress utlity", tools.stress),
    "tcp-reset": ("Serves on a tcp port and RST the connections received", servers.tcp_reset),
    "test-webserver": ("Starts a simple HTTP fileserver", servers.test_webserver),
}
NOT_MODELLED = frozenset(
    (
        "audit-proxy",
        "crd-conversion-webhook",
        "external-metrics",
        "fake-gitserver",
        "fake-registry-server",
        "grpc-health-checking",
        "guestbook",
        "mtlsclient",
        "mtlsserver",
        "net",
        "nettest",
        "no-snat-test",
        "no-snat-test-proxy",
        "podcertificatesigner",
        "resource-consumer-controller",
        "test-service-account-issuer-discovery",
        "webhook",
    )
)
VERSION = "2.63.0"


async def agnhost(process: Process) -> int:
    """Run a subcommand."""
    arguments = process.argv[1:]
    name = next((item for item in arguments if not item.startswith("-")), "")
    if not name:
        if "--version" in arguments:
            process.out(f"app version {VERSION}\n")
        else:
            process.out(_usage())
        return 0
    rest = list(arguments)
    rest.remove(name)
    if name == "help":
        process.out(_usage())
        return 0
    if name in NOT_MODELLED:
        process.err(f"Error: the sandbox does not model agnhost {name}\n")
        return 1
    if name not in SUBCOMMANDS:
        process.err(f'Error: unknown command "{name}" for "app"\n')
        return 1
    summary, main = SUBCOMMANDS[name]
    if "--help" in rest or "-h" in rest:
        process.out(f"{summary}\n\nUsage:\n  app {name} [flags]\n")
        return 0
    try:
        return await main(process, rest)
    except cobra.UsageError as error:
        process.err(f"Error: {error}\n")
    except Unreachable as error:
        process.err(f"Error: {error}\n")
    return 1


def _usage() -> str:
    lines = [f"  {name:<37} {summary}" for name, (summary, _) in SUBCOMMANDS.items()]
    return (
        "Usage:\n  app [command]\n\nAvailable Commands:\n"
        + "\n".join(lines)
        + '\n\nUse "app [command] --help" for more information about a command.\n'
    )
