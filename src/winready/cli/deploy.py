"""``winready deploy``: a run in the cluster, as a Job, on a schedule or by Sonobuoy; manifests, printed or applied."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from winready.cli.deploy_capi import extension
from winready.cli.deploying import act_options, checked, deliver, run_arguments, tolerations
from winready.cli.options import (
    apply,
    condition_options,
    parallel_option,
    parse_duration,
    parse_node_selector,
    say,
    scale_option,
    selection_options,
)
from winready.cli.run_options import chosen_directory, to_be_granted
from winready.cli.sonobuoy import plugin
from winready.deploy.defaults import KEEP, NAME, SIZE, TIMEOUT

if TYPE_CHECKING:
    from winready.cluster.applying import Difference
    from winready.deploy.manifests import Deployment

T = TypeVar("T")
MOST_BYTES = 900_000
"""Of a file that travels in a ConfigMap, which holds 1 MiB."""

place_options = apply(
    click.option("--image", metavar="I", required=True, envvar="WINREADY_IMAGE",
                 help="The image of winready, as your cluster pulls it; also $WINREADY_IMAGE."),
    click.option("--namespace", default=NAME, show_default=True, metavar="N",
                 help="Namespace of the runner; made here, and held to Pod Security 'restricted'."),
    click.option("--existing-namespace", is_flag=True, help="The namespace is there; leave it as it is."),
    click.option("--name", default=NAME, show_default=True, help="Name of the Job, its account and its roles."),
    click.option("--image-pull-secret", "pull_secrets", multiple=True, metavar="NAME",
                 help="Secret of that namespace to pull the image with."),
    click.option("--runner-node-selector", multiple=True, metavar="K=V",
                 help="Run winready itself only on Linux nodes with this label."),
    click.option("--runner-tolerate", multiple=True, metavar="K[=V][:EFFECT]",
                 help="A taint that winready's own pod tolerates."),
    click.option("--storage-class", metavar="NAME", help="Class of the volume for results (default: the cluster's)."),
    click.option("--storage-size", default=SIZE, show_default=True, metavar="S", help="Size of that volume."),
    click.option("--no-volume", is_flag=True, help="Keep results only as long as the pod is there."),
    click.option("--report-dir", metavar="ADDRESS",
                 help="Send results there, too: s3://BUCKET/PREFIX, gs:// or az://."),
    click.option("--store-secret", metavar="NAME",
                 help="Secret of that namespace whose keys are the environment for it, such as AWS_ACCESS_KEY_ID."),
    click.option("--metrics-port", type=click.IntRange(1024, 65535), metavar="PORT",
                 help="Serve Prometheus metrics at this port of the pod."),
    click.option("--timeout", default=TIMEOUT, show_default=True, metavar="T",
                 help="Give up what is not finished after this time."),
)  # fmt: skip


@click.group()
def deploy() -> None:
    """Run winready in the cluster itself. Prints manifests; with --apply puts them on the cluster.

    \b
    winready deploy job --image registry.example.com/winready:0.1.0 | kubectl apply -f -
    winready deploy job --image registry.example.com/winready:0.1.0 | kubectl delete -f -
    winready deploy sonobuoy --image registry.example.com/winready:0.1.0 --to plugin.yaml
    """


deploy.add_command(plugin, "sonobuoy")
deploy.add_command(extension, "capi")


@deploy.command()
@place_options
@selection_options
@parallel_option
@scale_option
@condition_options
@act_options
def job(**given: Any) -> None:
    """One run, as a Job.

    \b
    winready deploy job --image registry.example.com/winready:0.1.0 --apply
    winready deploy job --image registry.example.com/winready:0.1.0 --profile full --active-directory domain.yaml
    """
    _deliver(given)


@deploy.command()
@click.option("--schedule", required=True, metavar="S", help="When: five fields as of cron, or a macro such as @daily.")
@click.option("--time-zone", metavar="ZONE", help="Where that time is, such as Europe/Berlin (default: UTC mostly).")
@click.option("--keep", type=click.IntRange(1, 100), default=KEEP, show_default=True,
              help="How many passed and how many failed Jobs stay to be looked at.")  # fmt: skip
@place_options
@selection_options
@parallel_option
@scale_option
@condition_options
@act_options
def cronjob(**given: Any) -> None:
    """A run on a schedule, as a CronJob.

    \b
    winready deploy cronjob --image registry.example.com/winready:0.1.0 --schedule '0 3 * * 1' --apply
    kubectl -n winready create job --from=cronjob/winready now          and once more, now
    """
    _deliver(given)


def _deliver(given: dict[str, Any]) -> None:
    from winready.deploy.applying import Wanted
    from winready.deploy.manifests import KINDS, objects

    chosen: list[Deployment] = []

    def make() -> Wanted:
        wanted = _deployment(given)
        chosen.append(wanted)
        return Wanted(objects(wanted), wanted.namespace, wanted.labels, KINDS)

    found = deliver(given, make)
    _what_next(chosen[0], found)
    sys.exit(0)


def _deployment(given: dict[str, Any]) -> Deployment:
    """What was asked for; whatever makes no sense ends the command."""
    from winready.deploy import inputs
    from winready.deploy.manifests import Deployment

    directory = chosen_directory(given["active_directory"])
    requirements, settings = to_be_granted(given, directory)
    timeout = parse_duration(given["timeout"], "--timeout")
    namespace = checked("--namespace", inputs.check_label, given["namespace"], "namespace")
    if namespace in inputs.NOT_OURS and not given["existing_namespace"]:
        raise click.BadParameter(
            f"{namespace} is not winready's to make, label and delete; choose another one, or add --existing-namespace",
            param_hint="--namespace",
        )
    if given["no_volume"] and given["storage_class"] is not None:
        raise click.UsageError("--no-volume and --storage-class exclude each other")
    schedule = given.get("schedule")
    return Deployment(
        image=checked("--image", inputs.check_image, given["image"]),
        arguments=tuple(run_arguments(given)),
        timeout=timeout or 0.0,
        namespace=namespace,
        name=checked("--name", inputs.check_label, given["name"], "Job"),
        own_namespace=not given["existing_namespace"],
        schedule=checked("--schedule", inputs.check_schedule, schedule) if schedule is not None else None,
        time_zone=checked("--time-zone", inputs.check_zone, given["time_zone"]) if given.get("time_zone") else None,
        keep=given.get("keep", KEEP),
        volume=not given["no_volume"],
        size=checked("--storage-size", inputs.check_size, given["storage_size"]),
        storage_class=checked("--storage-class", inputs.check_subdomain, given["storage_class"], "storage class")
        if given["storage_class"] is not None
        else None,
        node_selector=parse_node_selector(given["runner_node_selector"]),
        tolerations=tolerations(given["runner_tolerate"], "--runner-tolerate"),
        pull_secrets=tuple(
            checked("--image-pull-secret", inputs.check_subdomain, name, "Secret") for name in given["pull_secrets"]
        ),
        metrics_port=given["metrics_port"],
        requirements=tuple(requirements),
        namespace_prefix=settings.namespace_prefix,
        directory=directory,
        directory_text=given["active_directory"].read_text(encoding="utf-8-sig") if directory else "",
        conformance=_conformance(given["linux_conformance"]),
        report_dir=_store(given),
        store_secret=checked("--store-secret", inputs.check_subdomain, given["store_secret"], "Secret")
        if given["store_secret"]
        else "",
    )


def _store(given: dict[str, Any]) -> str:
    """The address that runs are sent to; a share or a folder of this machine means nothing in a pod."""
    from winready.cli.places import place_elsewhere

    if given["report_dir"] is None:
        if given["store_secret"]:
            raise click.UsageError("--store-secret goes with --report-dir")
        return ""
    place = place_elsewhere(given["report_dir"])
    if place is None or place.scheme == "file":
        raise click.BadParameter(
            f"{given['report_dir'][:120]!r} is no object store; write s3://BUCKET/PREFIX, gs:// or az://, "
            "or leave it out: results are on the volume anyway",
            param_hint="--report-dir",
        )
    return place.address


def _conformance(file: str | None) -> str:
    if file is None:
        return ""
    from pathlib import Path

    from winready.engine.rules.conformance import ConformanceError, shortened

    try:
        text = shortened(Path(file))
        if len(text.encode()) > MOST_BYTES:
            raise ConformanceError("names more than a ConfigMap has room for")
    except ConformanceError as error:
        raise click.BadParameter(f"{file} {error}", param_hint="--linux-conformance") from None
    return text


def _what_next(wanted: Deployment, found: list[Difference]) -> None:
    space, name = wanted.namespace, wanted.name
    if wanted.schedule:
        say(f"to run it now: kubectl -n {space} create job --from=cronjob/{name} {name}-now", err=True)
    elif any(item.change == "unchanged" and item.title.startswith("Job ") for item in found):
        say(
            f"the Job was there already; to run it again: kubectl -n {space} delete job {name}, then the same", err=True
        )
    else:
        say(f"to follow it: kubectl -n {space} logs -f job/{name}", err=True)
