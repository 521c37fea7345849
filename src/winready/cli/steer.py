"""``winready steer``: pods without an OS selector go to Windows nodes, in chosen namespaces only."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from winready.cli.options import apply, cluster_options, fail, print_document, say

if TYPE_CHECKING:
    from winready.cluster.client import Client
    from winready.cluster.serving import Identity
    from winready.cluster.steering_webhook import Address

NAME = "winready-steer"
steer_options = apply(
    cluster_options,
    click.option("--name", default=NAME, show_default=True, help="Name of the policy; several can be there."),
    click.option("--steer-by-taint", is_flag=True,
                 help="Taint the Linux nodes instead: concerns everybody's new pods."),
)  # fmt: skip
namespace_option = click.option(
    "--namespace", "namespaces", multiple=True, metavar="NS",
    help="Only pods of this namespace (default: of the namespaces that e2e.test makes).",
)  # fmt: skip


@click.group()
def steer() -> None:
    """Send pods without an OS selector to Windows nodes, in chosen namespaces only."""


@steer.command("apply")
@steer_options
@namespace_option
@click.option(
    "--webhook",
    metavar="URL|NAMESPACE/SERVICE",
    help="By the webhook that 'winready steer serve' answers there, instead of a policy.",
)
@click.option("--ca", metavar="FILE", help="The authority of that webhook's certificate: ca.crt of its --identity.")
@click.option("--print", "only_print", is_flag=True, help="Print what would be applied, and change nothing.")
def apply_command(
    kubeconfig: str | None,
    context: str | None,
    name: str,
    steer_by_taint: bool,
    namespaces: tuple[str, ...],
    webhook: str | None,
    ca: str | None,
    only_print: bool,
) -> None:
    """Put steering into force until 'winready steer delete' or 'winready cleanup'.

    A policy of the API server gives a Windows node selector to new pods that choose no place themselves. It ignores
    its own failures and touches no pod outside the chosen namespaces. Where the API server has no such policies
    (before Kubernetes 1.36), 'winready steer serve' is a webhook that does the same.

    \b
    winready steer apply
    winready steer apply --namespace team-a --namespace team-b
    winready steer apply --webhook https://10.0.0.5:9443 --ca keys/ca.crt
    """
    if webhook:
        _apply_webhook(kubeconfig, context, name, list(namespaces), webhook, ca, only_print=only_print)
    if ca:
        raise click.UsageError("--ca goes with --webhook")

    async def act(client: Client) -> list[str]:
        from winready.cluster import steering
        from winready.cluster.settings import RUN_LABEL

        if steer_by_taint:
            if namespaces:
                raise click.UsageError("a taint keeps pods of every namespace off Linux; leave --namespace out")
            nodes = await steering.taint_linux(client, name)
            return [f"node {node} tainted {steering.TAINT}={name}:NoSchedule" for node in nodes]
        version = await _served(client)
        await steering.apply_policy(client, version, name, {RUN_LABEL: name}, list(namespaces))
        return [f"MutatingAdmissionPolicy {name} is in force in {_where(namespaces)}"]

    if only_print:
        from winready.cluster import steering
        from winready.cluster.settings import RUN_LABEL

        policy, binding = steering.policy_objects(name, {RUN_LABEL: name}, list(namespaces))
        for kind, document in ((steering.policies("v1"), policy), (steering.bindings("v1"), binding)):
            click.echo("---")
            print_document({"apiVersion": kind.api_version, "kind": kind.kind, **document}, "yaml")
        sys.exit(0)
    _do(kubeconfig, context, act)


def _apply_webhook(
    kubeconfig: str | None,
    context: str | None,
    name: str,
    namespaces: list[str],
    webhook: str,
    ca: str | None,
    *,
    only_print: bool,
) -> None:
    from winready.cluster import steering_webhook

    address = _address(webhook, "--webhook")
    if ca is None:
        raise click.UsageError("--webhook needs --ca, the authority that 'winready steer serve --identity' wrote")
    try:
        authority = Path(ca).read_bytes()
    except OSError as error:
        fail(
            f"{ca} cannot be read: {error.strerror}", "it is ca.crt in the folder of 'winready steer serve --identity'"
        )
    if b"-----BEGIN CERTIFICATE-----" not in authority or b"PRIVATE KEY" in authority:
        fail(f"{ca} is no certificate", "it is ca.crt in the folder of 'winready steer serve --identity'")
    wanted = steering_webhook.configuration(name, address, authority, namespaces)
    if only_print:
        print_document(wanted, "yaml")
        sys.exit(0)

    async def act(client: Client) -> list[str]:
        await steering_webhook.apply_webhook(client, wanted)
        return [f"MutatingWebhookConfiguration {name} is in force in {_where(namespaces)}, answered by {address}"]

    _do(kubeconfig, context, act)


@steer.command("serve")
@cluster_options
@click.argument("address", metavar="URL|NAMESPACE/SERVICE")
@click.option("--name", default=NAME, show_default=True, help="Name of the webhook's configuration.")
@namespace_option
@click.option("--listen", default="0.0.0.0", show_default=True, metavar="IP", help="Listen on this address.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Listen on this port (default: that of the URL, else 9443)."
)
@click.option("--identity", "identity_dir", type=click.Path(path_type=Path), metavar="DIR",
              help="Keep certificate and key there, for 'winready steer apply --webhook'.")  # fmt: skip
@click.option("--apply", "register", is_flag=True, help="Put it into force at once, and take it out at the end.")
def serve_command(
    kubeconfig: str | None,
    context: str | None,
    address: str,
    name: str,
    namespaces: tuple[str, ...],
    listen: str,
    port: int | None,
    identity_dir: Path | None,
    register: bool,
) -> None:
    """Steer by a webhook, for API servers without MutatingAdmissionPolicy (before Kubernetes 1.36).

    ADDRESS is where the API server finds this server: https://HOST:PORT, or a service of the cluster that leads
    here. The certificate is made on the spot. While nobody answers, pods are created unchanged.

    \b
    winready steer serve https://10.0.0.5:9443 --apply
    winready steer serve https://10.0.0.5:9443 --identity keys     for 'winready steer apply --webhook'
    winready steer serve winready/steer --port 9443 --apply      in a pod behind the service 'steer'
    """
    from winready.cluster.serving import kept_identity, make_identity

    if register == (identity_dir is not None):
        raise click.UsageError("say how it gets into force: --apply, or --identity DIR and 'winready steer apply'")
    place = _address(address, "URL|NAMESPACE/SERVICE")
    try:
        identity = kept_identity(identity_dir, place.host) if identity_dir else make_identity(place.host)
    except OSError as error:
        fail(f"{identity_dir} cannot be written: {error.strerror}", "choose another folder with --identity")
    chosen = port if port is not None else place.port if place.url else 9443

    async def act(client: Client, told: asyncio.Event) -> list[str]:
        from winready.cluster.steering_webhook import apply_webhook, configuration, delete_webhook

        await apply_webhook(client, configuration(name, place, identity.ca, list(namespaces)))
        say(f"MutatingWebhookConfiguration {name} is in force in {_where(namespaces)}")
        sys.stdout.flush()
        try:
            await told.wait()
        finally:
            await delete_webhook(client, name)
        return [f"MutatingWebhookConfiguration {name} is gone"]

    ca = f"{identity_dir}/ca.crt"
    hint = "" if register else f"; 'winready steer apply --webhook {place} --ca {ca}' puts it into force"
    _serve(
        kubeconfig, context, identity, (listen, chosen), f"steering pods at {place}{hint}", act if register else None
    )


def _serve(
    kubeconfig: str | None,
    context: str | None,
    identity: Identity,
    where: tuple[str, int],
    words: str,
    act: Callable[[Client, asyncio.Event], Awaitable[list[str]]] | None,
) -> None:
    from winready.cluster.client import Client
    from winready.cluster.errors import ClusterError, ConfigError
    from winready.cluster.kubeconfig import find_target
    from winready.cluster.serving import serving
    from winready.cluster.steering_server import application

    async def served() -> list[str]:
        told = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, told.set)
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client.connect(find_target(kubeconfig, context))) if act else None
            port = await stack.enter_async_context(serving(application(), identity.context(), *where))
            say(f"{words} (listening on {where[0]} port {port})")
            sys.stdout.flush()
            if act is not None and client is not None:
                return await act(client, told)
            await told.wait()
            return []

    try:
        lines = asyncio.run(served())
    except ConfigError as error:
        fail(error.message, error.remedy)
    except ClusterError as error:
        fail(error.message, error.remedy, code=3)
    except OSError as error:
        fail(f"{where[0]} port {where[1]} cannot be listened on: {error.strerror}", "choose another with --port")
    for line in lines:
        say(line)
    sys.exit(0)


@steer.command("delete")
@steer_options
def delete_command(kubeconfig: str | None, context: str | None, name: str, steer_by_taint: bool) -> None:
    """Take steering out of force again. Nothing to remove is no mistake."""

    async def act(client: Client) -> list[str]:
        from winready.cluster import steering
        from winready.cluster.steering_webhook import delete_webhook

        lines = [f"node {node} is no longer tainted" for node in await steering.remove_taints(client, name)]
        if steer_by_taint:
            return lines or ["there was nothing to remove"]
        version = await steering.served_version(client)
        if version and await steering.delete_policy(client, version, name):
            lines.append(f"MutatingAdmissionPolicy {name} is gone")
        if await delete_webhook(client, name):
            lines.append(f"MutatingWebhookConfiguration {name} is gone")
        return lines or ["there was nothing to remove"]

    _do(kubeconfig, context, act)


def _where(namespaces: tuple[str, ...] | list[str]) -> str:
    return ", ".join(namespaces) or "the namespaces that e2e.test makes (label e2e-run)"


def _address(text: str, option: str) -> Address:
    from winready.cluster.steering_webhook import Address

    try:
        return Address.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


async def _served(client: Client) -> str:
    from winready.cluster.errors import ClusterError
    from winready.cluster.steering import served_version

    version = await served_version(client)
    if version is None:
        raise ClusterError(
            "this API server has no MutatingAdmissionPolicy (on by default since Kubernetes 1.36)",
            "'winready steer serve' is a webhook that does the same; --steer-by-taint keeps pods off the Linux nodes "
            "by a taint instead",
        )
    return version


def _do(kubeconfig: str | None, context: str | None, act: Callable[[Client], Awaitable[list[str]]]) -> None:
    from winready.cluster.client import Client
    from winready.cluster.errors import ClusterError, ConfigError
    from winready.cluster.kubeconfig import find_target

    async def connected() -> list[str]:
        async with Client.connect(find_target(kubeconfig, context)) as client:
            return await act(client)

    try:
        lines = asyncio.run(connected())
    except ConfigError as error:
        fail(error.message, error.remedy)
    except ClusterError as error:
        fail(error.message, error.remedy, code=3)
    for line in lines:
        say(line)
    sys.exit(0)
