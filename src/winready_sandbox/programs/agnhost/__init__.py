"""agnhost, the test image's main program: which subcommands there are, and how it words wrong usage."""

from __future__ import annotations

from dataclasses import dataclass, field

from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import Unreachable
from winready_sandbox.programs import record
from winready_sandbox.programs.agnhost import (
    apps,
    cobra,
    connect,
    conversion,
    discovery,
    grpc_health,
    hooks,
    inclusterclient,
    netexec,
    nettest,
    servers,
    tools,
    webhook,
)
from winready_sandbox.programs.agnhost.cobra import Known, Main


@dataclass(frozen=True)
class Subcommand:
    """One of agnhost's programs."""

    summary: str
    main: Main
    flags: Known = field(default_factory=dict)


SUBCOMMANDS: dict[str, Subcommand] = {
    "connect": Subcommand(
        "Attempts a TCP, UDP or SCTP connection and returns useful errors", connect.main, connect.FLAGS
    ),
    "crd-conversion-webhook": Subcommand(
        "Starts HTTP server on port 443 for testing CustomResourceConversionWebhook", conversion.main, hooks.FLAGS
    ),
    "dns-server-list": Subcommand("Prints the host's DNS Server list", tools.dns_server_list),
    "dns-suffix": Subcommand("Prints the host's DNS suffix list", tools.dns_suffix),
    "entrypoint-tester": Subcommand("Prints the args it's passed and exits", apps.entrypoint_tester),
    "etc-hosts": Subcommand("Prints the host's /etc/hosts file", tools.etc_hosts),
    "grpc-health-checking": Subcommand("Starts a simple grpc health checking endpoint", grpc_health.main),
    "guestbook": Subcommand(
        "Creates a HTTP server with various endpoints representing a guestbook app",
        apps.guestbook,
        apps.GUESTBOOK_FLAGS,
    ),
    "inclusterclient": Subcommand(
        'Periodically poll the Kubernetes "/healthz" endpoint', inclusterclient.main, inclusterclient.FLAGS
    ),
    "liveness": Subcommand("Starts a server that is alive for 10 seconds", apps.liveness),
    "logs-generator": Subcommand("Outputs lines of logs to stdout uniformly", apps.logs_generator, apps.LOGS_FLAGS),
    "mounttest": Subcommand(
        "Creates files with given permissions and outputs FS type, owner, mode, permissions, contents of files",
        tools.mounttest,
        tools.MOUNTTEST_FLAGS,
    ),
    "netexec": Subcommand(
        "Creates HTTP(S), UDP, and (optionally) SCTP servers with various endpoints", netexec.main, netexec.FLAGS
    ),
    "nettest": Subcommand("Starts a tiny web server for checking networking connectivity", nettest.main),
    "pause": Subcommand("Pauses the execution", tools.pause),
    "porter": Subcommand(
        "Serves requested data on ports specified in ENV variables", servers.porter, servers.PORTER_FLAGS
    ),
    "serve-hostname": Subcommand("Serves the hostname", servers.serve_hostname, servers.SERVE_HOSTNAME_FLAGS),
    "stress": Subcommand("Lightweight compute resource stress utlity", tools.stress, tools.STRESS_FLAGS),
    "test-service-account-issuer-discovery": Subcommand(
        "Tests the ServiceAccountIssuerDiscovery feature", discovery.main, discovery.FLAGS
    ),
    "test-webserver": Subcommand("Starts a simple HTTP fileserver", servers.test_webserver),
    "webhook": Subcommand(
        "Starts a HTTP server, useful for testing MutatingAdmissionWebhook and ValidatingAdmissionWebhook",
        webhook.main,
        hooks.FLAGS,
    ),
}
NOT_MODELLED = frozenset(
    (
        "audit-proxy",
        "external-metrics",
        "fake-gitserver",
        "fake-registry-server",
        "mtlsclient",
        "mtlsserver",
        "net",
        "no-snat-test",
        "no-snat-test-proxy",
        "nonewprivs",
        "podcertificatesigner",
        "port-forward-tester",
        "resource-consumer-controller",
        "tcp-reset",
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
    subcommand = SUBCOMMANDS[name]
    record.note(process, "agnhost", name, record.flags(rest))
    if "--help" in rest or "-h" in rest:
        process.out(f"{subcommand.summary}\n\nUsage:\n  app {name} [flags]\n")
        return 0
    try:
        flags = cobra.parse(rest, subcommand.flags)
        if name != "entrypoint-tester":
            cobra.check_arguments(flags, 1 if name == "connect" else 0, exact=name == "connect")
        return await subcommand.main(process, flags)
    except cobra.UsageError as error:
        process.err(f"Error: {error}\n")
    except Unreachable as error:
        process.err(f"Error: {error}\n")
    return 1


def _usage() -> str:
    lines = [f"  {name:<37} {subcommand.summary}" for name, subcommand in SUBCOMMANDS.items()]
    return (
        "Usage:\n  app [command]\n\nAvailable Commands:\n"
        + "\n".join(lines)
        + '\n\nUse "app [command] --help" for more information about a command.\n'
    )
