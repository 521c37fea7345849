"""``winready capi``: Cluster API's controllers wait for a verdict before an upgrade goes on."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.deploying import checked, run_arguments
from winready.cli.options import (
    apply,
    cluster_options,
    fail,
    judged_options,
    parallel_option,
    parse_duration,
    report_dir_option,
    requirement_options,
    say,
    scale_option,
    waiver_options,
)

if TYPE_CHECKING:
    from winready.cluster.client import Client
    from winready.cluster.serving import Identity
    from winready.cluster.steering_webhook import Address
    from winready.deploy.capi.gate import Gate
    from winready.deploy.capi.terms import Terms

RENEWAL_SECONDS = 6 * 3600.0

gate_options = apply(
    click.option("--policy", type=click.Choice(["require-pass", "warn", "off"]), default="warn", show_default=True,
                 help="Of clusters without a label winready.io/policy: hold until a run passed, hold until one ended, "
                 "or never."),
    click.option("--poll", default="30s", show_default=True, metavar="T",
                 help="Have a cluster that is held ask again after this time."),
    click.option("--again", default="10m,30m,2h", show_default=True, metavar="T,...",
                 help="When a run is tried again after one that did not pass; the last time repeats."),
    click.option("--fresh", default="24h", show_default=True, metavar="T",
                 help="How long the result of a run counts for the same upgrade."),
    click.option("--hold-limit", default="24h", show_default=True, metavar="T",
                 help="After holding for this long no run is tried again by itself."),
    click.option("--at-limit", type=click.Choice(["hold", "release"]), default="hold", show_default=True,
                 help="What becomes of the cluster then."),
    click.option("--run-limit", default="2h", show_default=True, metavar="T",
                 help="Have a run give up what is not finished after this time."),
    click.option("--delete-limit", default="2m", show_default=True, metavar="T",
                 help="How long the deletion of a cluster waits for its run to clean up."),
    click.option("--nodes-wait", default="30m", show_default=True, metavar="T",
                 help="How long the first run of a new cluster waits for Windows nodes."),
    click.option("--runs", "parallel_runs", type=click.IntRange(1, 50), default=2, show_default=True,
                 help="Clusters that are judged at the same time."),
    click.option("--kubeconfig-secret", default="kubeconfig", show_default=True, metavar="SUFFIX",
                 help="Reach a cluster by the Secret NAME-SUFFIX beside it: where you keep one with fewer rights than "
                 "the one of Cluster API."),
    click.option("--failure-policy", type=click.Choice(["Fail", "Ignore"]), default="Fail", show_default=True,
                 help="What becomes of upgrades while this server does not answer: held, or not."),
    requirement_options,
    judged_options,
    parallel_option,
    scale_option,
    waiver_options,
)  # fmt: skip


def gate_terms(given: dict[str, Any]) -> Terms:
    """What was decided about the gate; a mistake ends the command."""
    from winready.deploy.capi.terms import Terms
    from winready.deploy.inputs import check_label

    def seconds(name: str) -> float:
        return parse_duration(given[name], f"--{name.replace('_', '-')}") or 0.0

    again = tuple(parse_duration(text, "--again") or 0.0 for text in given["again"].split(","))
    if seconds("poll") > 3600:
        raise click.BadParameter("labels and annotations are only seen then; write at most 1h", param_hint="--poll")
    return Terms(
        policy=given["policy"], poll=seconds("poll"), again=again, fresh=seconds("fresh"),
        hold_limit=seconds("hold_limit"), at_limit=given["at_limit"], run_limit=seconds("run_limit"),
        delete_limit=seconds("delete_limit"), nodes_wait=seconds("nodes_wait"), parallel=given["parallel_runs"],
        suffix=checked("--kubeconfig-secret", check_label, given["kubeconfig_secret"], "Secret"),
    )  # fmt: skip


@click.group()
def capi() -> None:
    """Have Cluster API wait for a verdict: a runtime extension for its lifecycle hooks.

    \b
    winready deploy capi --image registry.example.com/winready:0.1.0 --cluster-namespace fleet --apply
    winready capi serve https://10.0.0.5:9443 --identity keys --state gate
    """


@capi.command()
@cluster_options
@click.argument("address", metavar="URL|NAMESPACE/SERVICE")
@click.option("--listen", default="0.0.0.0", show_default=True, metavar="IP", help="Listen on this address.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Listen on this port (default: that of the URL, else 9443)."
)
@click.option("--identity", "identity_dir", type=click.Path(path_type=Path), metavar="DIR",
              help="Make certificate and key, and keep them there with their authority.")  # fmt: skip
@click.option("--identity-secret", metavar="NAMESPACE/NAME", help="The same in a Secret of the management cluster.")
@click.option("--cert", type=click.Path(path_type=Path), metavar="FILE", help="Take the certificate from there.")
@click.option("--key", type=click.Path(path_type=Path), metavar="FILE", help="And its key from there.")
@click.option("--state", default="winready-capi", show_default=True, metavar="PLACE",
              help="Where facts are kept: a folder, or s3://, gs:// or az:// with a prefix.")  # fmt: skip
@report_dir_option
@click.option("--metrics-listen", metavar="[HOST:]PORT", help="Serve Prometheus metrics there, without TLS.")
@gate_options
def serve(**given: Any) -> None:
    """Answer the hooks of Cluster API's controllers.

    ADDRESS is where controllers find this server: https://HOST:PORT, or a service of the management cluster, which
    is the one of --kubeconfig. A workload cluster is reached by the Secret that Cluster API keeps for it.

    \b
    winready capi serve https://10.0.0.5:9443 --identity keys --state gate --policy require-pass
    winready capi serve winready-capi/winready-capi --identity-secret winready-capi/winready-capi-tls --state s3://fleet/gate
    """
    from winready.cluster.errors import ClusterError, ConfigError
    from winready.cluster.steering_webhook import Address
    from winready.store.errors import NotInstalled, StoreError, WrongAddress

    terms = gate_terms(given)
    words = run_arguments({**given, "timeout": given["run_limit"]})[2:]
    place = checked("URL|NAMESPACE/SERVICE", Address.parse, given["address"])
    ways = [given["identity_dir"], given["identity_secret"], given["cert"] or given["key"]]
    if sum(way is not None for way in ways) != 1 or bool(given["cert"]) != bool(given["key"]):
        raise click.UsageError("say where the certificate is: --identity DIR, --identity-secret NAMESPACE/NAME, or "
                               "--cert FILE with --key FILE")  # fmt: skip
    server = _Server(given, place, terms, tuple(words))
    try:
        asyncio.run(server.run())
    except (ConfigError, WrongAddress, NotInstalled) as error:
        fail(error.message, error.remedy)
    except (ClusterError, StoreError) as error:
        fail(error.message, error.remedy, code=3)
    sys.exit(0)


@dataclass
class _Server:
    given: dict[str, Any]
    place: Address
    terms: Terms
    words: tuple[str, ...]

    async def run(self) -> None:
        """Serve until told to end; runs clean up first."""
        from winready.cli.places import asked_place
        from winready.cluster.client import Client
        from winready.cluster.kubeconfig import find_target
        from winready.cluster.serving import serving
        from winready.deploy.capi.child import CLEAN_UP_SECONDS
        from winready.deploy.capi.facts import Book
        from winready.deploy.capi.gate import Gate
        from winready.deploy.capi.running import Runner
        from winready.deploy.capi.server import application
        from winready.report.folders import report_folder
        from winready.store.addresses import parse
        from winready.store.objects import open_place

        given = self.given
        told = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, told.set)
        book = Book(open_place(parse(given["state"]), patience=10.0))
        await asyncio.to_thread(book.load)
        if book.passed_over:
            _log(f"{len(book.passed_over)} objects in {given['state']} are no facts, and are passed over, such as "
                 f"{book.passed_over[0]}")  # fmt: skip
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client.connect(find_target(given["kubeconfig"], given["context"])))
            context = await self._context(client)
            elsewhere = asked_place(given["report_dir"])
            report_dir = elsewhere.address if elsewhere else str(report_folder(given["report_dir"]))
            runner = Runner(book, self.terms, client, report_dir, self.words, _log, f"{self.place}")
            gate = Gate(book, runner, self.terms)
            chosen = given["port"] if given["port"] is not None else self.place.port if self.place.url else 9443
            try:
                await self._metrics(stack, gate)
                app = application(gate, given["failure_policy"])
                port = await stack.enter_async_context(serving(app, context, given["listen"], chosen))
            except OSError as error:
                fail(
                    f"{given['listen']} port {chosen} cannot be listened on: {error.strerror}",
                    "choose another with --port",
                )
            if again := gate.take_up():
                _log(f"{again} runs were under way when an earlier server ended; they are taken up again")
            _log(f"answering Cluster API at {self.place} (listening on {given['listen']} port {port}); policy "
                 f"{self.terms.policy} where a cluster has no label")  # fmt: skip
            renewing = asyncio.create_task(self._renewed(client, context)) if given["identity_secret"] else None
            await told.wait()
            _log("told to end; runs that are under way clean up, and are taken up again by the next server")
            if renewing is not None:
                renewing.cancel()
            await runner.close(CLEAN_UP_SECONDS)

    async def _metrics(self, stack: contextlib.AsyncExitStack, gate: Gate) -> None:
        from winready.deploy.capi.server import metrics
        from winready.deploy.metrics import listen, parse_listen, serve

        if text := self.given["metrics_listen"]:
            where = checked("--metrics-listen", parse_listen, text)
            bound = listen(*where)
            await stack.enter_async_context(serve(bound, where[0], lambda: metrics(gate)))
            _log(f"metrics at port {bound.getsockname()[1]}")

    async def _context(self, client: Client) -> ssl.SSLContext:
        from winready.cluster.serving import Identity, kept_identity
        from winready.deploy.capi.identity import NAME

        given = self.given
        if given["identity_secret"]:
            return (await self._from_secret(client)).context()
        try:
            if given["identity_dir"]:
                return kept_identity(given["identity_dir"], self.place.host, NAME).context()
            pair = [given[name].read_bytes() for name in ("cert", "key")]
        except OSError as error:
            fail(f"{error.filename} cannot be used for the certificate: {error.strerror}", "check file and permissions")
        try:
            return Identity(b"", *pair).context()
        except (ssl.SSLError, OSError):
            fail(f"{given['cert']} and {given['key']} are no certificate and its key", "both are PEM files")

    async def _from_secret(self, client: Client) -> Identity:
        from winready.deploy.capi.identity import from_secret
        from winready.deploy.places import read_named

        named = checked("--identity-secret", read_named, self.given["identity_secret"], "Secret")
        return await from_secret(client, named.namespace, named.name, self.place.host)

    async def _renewed(self, client: Client, context: ssl.SSLContext) -> None:
        """A certificate that ends soon is made anew, also while nobody restarts the server."""
        from winready.cluster.errors import ClusterError

        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            try:
                (await self._from_secret(client)).load(context)
            except ClusterError as error:
                _log(f"error: the certificate cannot be looked after: {error.message}")


def _log(text: str) -> None:
    """Whoever read the log may be gone, or its disk full: clusters are waiting all the same."""
    with contextlib.suppress(OSError):
        say(text)
        sys.stdout.flush()
