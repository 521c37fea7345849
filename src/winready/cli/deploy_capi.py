"""``winready deploy capi``: the runtime extension in the management cluster; manifests, printed or applied."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.capi import gate_options, gate_terms
from winready.cli.deploying import act_options, checked, deliver, run_arguments, tolerations
from winready.cli.options import fail, parse_node_selector, say
from winready.deploy.defaults import SIZE

if TYPE_CHECKING:
    from winready.deploy.applying import Wanted
    from winready.deploy.capi.manifests import Extension

NAME = "winready-capi"
DEFAULTS = {"poll": "30s", "again": "10m,30m,2h", "fresh": "24h", "hold_limit": "24h", "run_limit": "2h",
            "delete_limit": "2m", "nodes_wait": "30m", "policy": "warn", "at_limit": "hold",
            "failure_policy": "Fail", "kubeconfig_secret": "kubeconfig"}  # fmt: skip


@click.command()
@click.option(
    "--image",
    metavar="I",
    envvar="WINREADY_IMAGE",
    help="The image of winready, as your cluster pulls it; also $WINREADY_IMAGE.",
)
@click.option(
    "--cluster-namespace",
    "cluster_namespaces",
    multiple=True,
    metavar="NS",
    help="Judge the clusters of this namespace.",
)
@click.option("--cluster", "clusters", multiple=True, metavar="NS/NAME", help="Judge this cluster alone.")
@click.option("--all-namespaces", is_flag=True, help="Judge all clusters; that takes the right to read every Secret.")
@click.option(
    "--namespace",
    default=NAME,
    show_default=True,
    metavar="N",
    help="Namespace of the server; made here, and held to Pod Security 'restricted'.",
)
@click.option("--existing-namespace", is_flag=True, help="The namespace is there; leave it as it is.")
@click.option("--name", default=NAME, show_default=True, help="Name of the ExtensionConfig and everything else.")
@click.option(
    "--manager-namespace",
    default="capi-system",
    show_default=True,
    metavar="NS",
    help="Where Cluster API's own controllers are: nobody else gets through to the hooks.",
)
@click.option(
    "--state", metavar="ADDRESS", help="Keep facts in an object store instead of a volume, such as s3://fleet/gate."
)
@click.option("--report-dir", metavar="ADDRESS", help="Where runs go (default: the volume).")
@click.option(
    "--store-secret",
    metavar="NAME",
    help="Secret of that namespace whose keys are the environment for these, such as AWS_ACCESS_KEY_ID.",
)
@click.option("--storage-class", metavar="NAME", help="Class of the volume (default: the cluster's).")
@click.option("--storage-size", default=SIZE, show_default=True, metavar="S", help="Size of that volume.")
@click.option(
    "--image-pull-secret",
    "pull_secrets",
    multiple=True,
    metavar="NAME",
    help="Secret of that namespace to pull the image with.",
)
@click.option(
    "--runner-node-selector",
    multiple=True,
    metavar="K=V",
    help="Run winready itself only on Linux nodes with this label.",
)
@click.option(
    "--runner-tolerate", multiple=True, metavar="K[=V][:EFFECT]", help="A taint that winready's own pod tolerates."
)
@click.option("--url", metavar="URL", help="Only the ExtensionConfig, for a 'winready capi serve' that is elsewhere.")
@click.option(
    "--ca", type=click.Path(path_type=Path), metavar="FILE", help="With --url: the authority of its certificate."
)
@gate_options
@act_options
def extension(**given: Any) -> None:
    """Have Cluster API wait for a verdict before upgrades go on.

    Goes into the management cluster. Its certificate is made by the server itself, in a Secret that is empty here,
    and Cluster API takes the authority from there.

    \b
    winready deploy capi --image registry.example.com/winready:0.1.0 --cluster-namespace fleet --apply
    winready deploy capi --image registry.example.com/winready:0.1.0 --cluster fleet/windows-1 --policy require-pass
    winready deploy capi --url https://10.0.0.5:9443 --ca keys/ca.crt --cluster-namespace fleet
    """  # fmt: skip

    def make() -> Wanted:
        from winready.deploy.applying import Wanted
        from winready.deploy.capi.manifests import KINDS, config_by_url, objects

        wanted = _extension(given)
        made = objects(wanted)
        if given["url"]:
            made = [config_by_url(wanted.name, *_elsewhere(given), wanted.places, _policy_elsewhere(wanted))]
        return Wanted(made, wanted.namespace, wanted.labels, KINDS)

    deliver(given, make)
    say(f"to see whether Cluster API has found it: kubectl get extensionconfig {given['name']} -o yaml", err=True)
    sys.exit(0)


def _extension(given: dict[str, Any]) -> Extension:
    from winready.deploy import inputs
    from winready.deploy.capi.manifests import Extension
    from winready.deploy.places import read_named

    gate_terms(given)
    if not given["image"] and not given["url"]:
        raise click.UsageError("--image is missing: the image of winready, as your cluster pulls it")
    if bool(given["url"]) != (given["ca"] is not None):
        raise click.UsageError("--url and --ca go together")
    clusters = [checked("--cluster", read_named, text, "Cluster") for text in given["clusters"]]
    namespaces = tuple(
        checked("--cluster-namespace", inputs.check_label, text, "namespace") for text in given["cluster_namespaces"]
    )
    if given["all_namespaces"] == bool(clusters or namespaces):
        raise click.UsageError(
            "say whose clusters: --cluster-namespace NS, --cluster NS/NAME, or --all-namespaces alone"
        )
    namespace = checked("--namespace", inputs.check_label, given["namespace"], "namespace")
    if namespace in inputs.NOT_OURS and not given["existing_namespace"]:
        raise click.BadParameter(
            f"{namespace} is not winready's to make, label and delete; choose another one, or add --existing-namespace",
            param_hint="--namespace",
        )
    if given["store_secret"] and not (given["state"] or given["report_dir"]):
        raise click.UsageError("--store-secret goes with --state or --report-dir")
    more = {
        name: _address(given[name], f"--{name.replace('_', '-')}") for name in ("state", "report_dir") if given[name]
    }
    return Extension(
        image=checked("--image", inputs.check_image, given["image"]) if given["image"] else "",
        arguments=tuple(_arguments(given)),
        namespace=namespace,
        name=checked("--name", inputs.check_label, given["name"], "Deployment"),
        own_namespace=not given["existing_namespace"],
        namespaces=namespaces,
        clusters=tuple((item.namespace, item.name) for item in clusters),
        suffix=given["kubeconfig_secret"],
        manager_namespace=checked("--manager-namespace", inputs.check_label, given["manager_namespace"], "namespace"),
        size=checked("--storage-size", inputs.check_size, given["storage_size"]),
        storage_class=given["storage_class"],
        node_selector=parse_node_selector(given["runner_node_selector"]),
        tolerations=tolerations(given["runner_tolerate"], "--runner-tolerate"),
        pull_secrets=tuple(checked("--image-pull-secret", inputs.check_subdomain, name, "Secret")
                           for name in given["pull_secrets"]),
        store_secret=checked("--store-secret", inputs.check_subdomain, given["store_secret"], "Secret")
        if given["store_secret"]
        else "",
        **more,
    )  # fmt: skip


def _arguments(given: dict[str, Any]) -> list[str]:
    """What the server is told that is not as it would be anyway."""
    words = [
        word
        for name, default in DEFAULTS.items()
        if given[name] != default
        for word in (f"--{name.replace('_', '-')}", given[name])
    ]
    if given["parallel_runs"] != 2:
        words += ["--runs", str(given["parallel_runs"])]
    return words + run_arguments({**given, "timeout": given["run_limit"]})[2:]


def _policy_elsewhere(wanted: Extension) -> str:
    """Of a server elsewhere only the policy can be chosen from here, and only if somebody does."""
    if other := sorted(word for word in wanted.arguments if word.startswith("--") and word != "--policy"):
        raise click.UsageError(f"tell the server itself, by 'winready capi serve': {', '.join(other)}")
    context = click.get_current_context()
    chosen = context.get_parameter_source("policy") is click.core.ParameterSource.COMMANDLINE
    return str(context.params["policy"]) if chosen else ""


def _address(text: str, option: str) -> str:
    from winready.store.addresses import parse
    from winready.store.errors import WrongAddress

    try:
        place = parse(text)
    except WrongAddress as error:
        raise click.BadParameter(f"{error.message}; {error.remedy}", param_hint=option) from None
    if place.scheme in ("path", "file"):
        raise click.BadParameter("a pod has only its volume; write s3://, gs:// or az://", param_hint=option)
    return place.address


def _elsewhere(given: dict[str, Any]) -> tuple[str, bytes]:
    from winready.cluster.steering_webhook import Address

    place = checked("--url", Address.parse, given["url"])
    if not place.url:
        raise click.BadParameter("write https://HOST:PORT", param_hint="--url")
    try:
        authority = given["ca"].read_bytes()
    except OSError as error:
        fail(f"{given['ca']} cannot be read: {error.strerror}", "it is ca.crt of 'winready capi serve --identity'")
    if b"-----BEGIN CERTIFICATE-----" not in authority or b"PRIVATE KEY" in authority:
        fail(f"{given['ca']} is no certificate", "it is ca.crt in the folder of 'winready capi serve --identity'")
    return place.url, authority
