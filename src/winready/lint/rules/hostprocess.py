"""Rules about HostProcess pods."""

from __future__ import annotations

from collections.abc import Iterator

from winready.lint.context import Facts
from winready.lint.objects import Pod, dig
from winready.lint.rules import Hit, pod_check
from winready.lint.rules.placement import uses_hyperv
from winready.lint.rules.security import options
from winready.lint.target import Target

_POD = ("spec", "securityContext", "windowsOptions", "hostProcess")


@pod_check("hpc-all-containers")
def all_containers(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    of_pod = dig(pod.template, *_POD)
    of_containers = [pod.is_host_process(container) for container in pod.containers]
    for container in pod.containers:
        own = dig(container.value, "securityContext", "windowsOptions", "hostProcess")
        path = (*container.path, "securityContext", "windowsOptions", "hostProcess")
        if own is not None and of_pod is not None and own is not of_pod:
            yield Hit(path, f"container {container.name} says hostProcess: {str(own).lower()}, the pod the opposite")
            return
    if any(of_containers) and not all(of_containers):
        odd = pod.containers[of_containers.index(False)]
        yield Hit((*odd.path, "name"), f"container {odd.name} is not HostProcess, but others of the pod are")


@pod_check("hpc-host-network-required")
def host_network_required(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if pod.host_process and pod.spec.get("hostNetwork") is not True:
        yield Hit(("spec", "hostNetwork") if "hostNetwork" in pod.spec else next(options(pod, "hostProcess"))[0])


@pod_check("hpc-run-as-user-name")
def run_as_user_name(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if not pod.host_process:
        return
    for container in pod.containers:
        if pod.is_host_process(container) and not pod.option(container, "windowsOptions", "runAsUserName"):
            yield Hit(next(options(pod, "hostProcess"))[0], f"container {container.name} names no user of the host")
            return


@pod_check("hpc-hyperv")
def hyperv(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if pod.host_process and uses_hyperv(pod, facts):
        yield Hit(("spec", "runtimeClassName"))
