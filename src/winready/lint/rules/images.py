"""Rules about Windows images and the builds they are for."""

from __future__ import annotations

from collections.abc import Iterator

from winready.lint.context import BUILD_LABEL, Facts
from winready.lint.images import build_of, is_linux, release, runs_on, unlisted
from winready.lint.objects import Pod, dig
from winready.lint.rules import Hit, pod_check
from winready.lint.rules.placement import uses_hyperv
from winready.lint.target import Target
from winready.spec.windows import build_number


@pod_check("img-os-build-mismatch")
def os_build_mismatch(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    hosts, source = _hosts(pod, facts)
    if not hosts or pod.host_process or uses_hyperv(pod, facts):
        return
    for container in pod.containers:
        build = build_of(container.image)
        if build is not None and not any(runs_on(build, host) for host in hosts):
            named = ", ".join(f"10.0.{host}" for host in hosts)
            detail = f"{container.image} is for build 10.0.{build}, but {source} {named}"
            yield Hit((*container.path, "image"), detail)


def _hosts(pod: Pod, facts: Facts) -> tuple[tuple[int, ...], str]:
    """The builds of the nodes that the pod may get, and how they are known."""
    for selector in (dig(pod.spec, "nodeSelector"), dig(facts.runtime_class(pod), "scheduling", "nodeSelector")):
        if (text := dig(selector, BUILD_LABEL)) is not None and (build := build_number(str(text))) is not None:
            return (build,), "the pod selects nodes of build"
    return facts.profile.builds, "the Windows nodes have build"


@pod_check("img-unsupported-server-release")
def unsupported_server_release(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if pod.host_process:
        return
    for container in pod.containers:
        build = build_of(container.image)
        if build is not None and (span := unlisted(build, facts.profile.versions)) is not None:
            detail = f"{container.image} is for {release(build)}, which Kubernetes {span} does not list"
            yield Hit((*container.path, "image"), detail, versions=span)


@pod_check("img-linux-only")
def linux_only(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    # Whoever merely tolerates the taint of Windows nodes may well be a Linux pod: such an image says that it is.
    if target.declared or target.placed:
        for container in pod.containers:
            if is_linux(container.image):
                yield Hit((*container.path, "image"), f"there is no {container.image} for Windows")
