"""What each check may have to do through the API, and in which of a run's namespaces.

Written down, so that a run can be given exactly that; recordings of runs are held against it, so that it stays true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from winready.checks.registry import Check, FeatureCheck, load_checks, load_feature_checks
from winready.cluster.client import Object
from winready.cluster.rights import EVERYWHERE, OWN, POD_SECURITY, PREPARED, Right, directory_rights, read_rights
from winready.cluster.settings import Settings

EVERY_RUN = read_rights("list nodes")
"""What no run can do without."""
MAKING = read_rights("create delete list namespaces")
"""What a run needs that makes its own namespaces."""
IN_EACH = read_rights("list watch pods; create get pods/exec", OWN)
"""What every check does in each of its namespaces."""
PLACING = read_rights("create pods", OWN)
"""And where it makes pods itself."""
BY_WORKLOADS = ("ten", "churn", "st")
"""Namespaces whose pods are all made by deployments and stateful sets."""
ANSWERING = read_rights("list create delete networkpolicies.networking.k8s.io", OWN)
"""Policies of others are answered with one of our own."""
CLAIMING = [*read_rights("create list delete configmaps", OWN), *ANSWERING]
"""And what it does besides where a namespace was prepared: take it for itself, and leave it as it was."""
HELPFUL = read_rights(
    "get nodes; get namespaces=kube-system; list daemonsets.apps; list gmsacredentialspecs.windows.k8s.io"
)
"""Without these a run knows less: of nodes that join meanwhile, which cluster it is, what it offers."""
HELPFUL_IN_EACH = read_rights(
    "get pods; list events; list limitranges; list create networkpolicies.networking.k8s.io", OWN
)
"""And without these it may not say what was in the way, take policies of others for the cluster, or lose an answer."""
STRONG = frozenset(read_rights("get nodes/proxy; list pods; patch namespaces"))
"""Rights over everything that runs in a cluster: never granted together with prepared namespaces."""
DIRECTORY = "ad"
"""The namespace of pods that log on to a domain."""

_SERVICE = "create get services"
_WORKLOAD = "create list deployments.apps"
_SLICES = "create patch endpointslices.discovery.k8s.io; create endpointslices/restricted.discovery.k8s.io"
_DNS = {"kube-system": "list services; list endpointslices.discovery.k8s.io"}
_FAMILIES = {"fx": _SERVICE}
FIXTURES: Mapping[str, Mapping[str, str]] = {
    "clients": {"fx": ""},
    "servers": {"fx": ""},
    "services": {"fx": _SERVICE},
    "hosts": {"host": ""},
    "linux-hosts": {"host": ""},
    "ten": {"ten": f"{_SERVICE}; {_WORKLOAD}"},
}
CHECKS: Mapping[str, Mapping[str, str]] = {
    "core.network.distinct-pod-ips": {"ips": ""},
    "core.network.service-recreated": {"fx": f"delete services; {_WORKLOAD}"},
    "core.network.statefulset-identity": {"st": f"{_SERVICE}; create list statefulsets.apps; delete pods"},
    "core.network.dns-internal": {"fx": _SLICES, "default": "get services=kubernetes"},
    "core.network.dns-external": _DNS,
    "core.network.dns-custom": _DNS,
    "core.network.endpointslice-routing": {"fx": f"{_SLICES}; list endpointslices.discovery.k8s.io"},
    "core.storage.host-volumes": {"vol": "create patch configmaps; create patch secrets; patch pods"},
    "core.storage.hostpath-write": {"hpw": "delete pods"},
    "core.storage.hostpath-read": {"hpr": "delete pods"},
    "core.storage.shared-files": {"share": "delete pods"},
    "core.storage.token-rotation": {"tok": "get pods/log"},
    "core.storage.reboot-recovery": {
        "boot": f"create patch configmaps; {_SERVICE}; {_WORKLOAD}; delete deployments.apps; get pods/log",
        EVERYWHERE: "get nodes; get nodes/proxy; list pods",
    },
    "core.scheduling.limits-honoured": {"lim": "delete pods", EVERYWHERE: "get nodes/proxy"},
    "core.scheduling.unschedulable-stays-pending": {"big": "list events", EVERYWHERE: "get nodes"},
    "core.concurrent.reschedule-50": {"churn": f"{_SERVICE}; {_WORKLOAD}; delete pods"},
    "extend.hostprocess.api-access": {"default": "list endpointslices.discovery.k8s.io"},
    "extend.hostprocess.network-service": {"hns": ""},
    "extend.hostprocess.bind-host-interface": {"hbind": ""},
    "extend.hostprocess.node-rejoins": {"rejoin": _SERVICE, EVERYWHERE: "get nodes; list pods"},
    "extend.activedirectory.gmsa-access": {DIRECTORY: ""},
    "extend.activedirectory.storage": {DIRECTORY: ""},
    "extend.activedirectory.denied-without": {DIRECTORY: ""},
    "extend.activedirectory.run-as-user": {"user": "get pods/log; list events"},
    "extend.networkpolicy.block-pods": {"np": "create delete networkpolicies.networking.k8s.io; patch pods"},
    "extend.networkpolicy.block-namespaces": {"nn": "create delete patch networkpolicies.networking.k8s.io"},
    "extend.network.windows-to-linux-service-ip-both-families": _FAMILIES,
    "extend.network.windows-to-linux-nodeport-both-families": _FAMILIES,
    "extend.network.linux-to-windows-service-ip-both-families": _FAMILIES,
    "extend.network.linux-to-windows-nodeport-both-families": _FAMILIES,
    "extend.network.dual-stack": _FAMILIES,
}
"""What the check of a requirement does beside its fixtures, by namespace; a check that is not here does no more."""
_FILES = {"files": "create configmaps; create secrets"}
_LIFE = {"life": ""}
_PLUGIN = {EVERYWHERE: "get nodes; list get daemonsets.apps"}
_TRAFFIC = {"fx": "create services"}
FEATURES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("subpath", "subpath-secret", "default-mode", "pause-image"), _FILES),
    "resource-quota": {"files": f"{_FILES['files']}; create get resourcequotas"},
    **dict.fromkeys(
        (
            "probes", "startup-probes", "lifecycle-hooks", "termination-grace-period", "single-file-mounts", "sidecars",
            "run-as-non-root",
        ),
        _LIFE,
    ),
    "ephemeral-containers": {"life": "patch pods/ephemeralcontainers"},
    **dict.fromkeys(
        ("internal-traffic-policy", "local-traffic-policy", "session-affinity", "svc-externalname"), _TRAFFIC
    ),
    "host-network": {"hostnet": ""},
    **dict.fromkeys(("cni-azure", "cni-ovn", "cni-flannel", "cni-calico"), _PLUGIN),
    "psa-os-exemption": {"psa": "", EVERYWHERE: "patch namespaces"},
    "metrics": {EVERYWHERE: "get nodes/proxy"},
}  # fmt: skip
"""The same for the checks of features."""
FOREIGN = ("kube-system", "default")
"""Namespaces that no run makes."""
PRIVILEGED = frozenset({"hostnet", "host", "hpw", "hpr", "share", "boot", "hns", "hbind", "rejoin", "ad"})
"""Where pods work on the node itself; everywhere else Pod Security may be 'baseline'."""
SPACES = tuple(
    dict.fromkeys(
        space
        for table in (FIXTURES, CHECKS, FEATURES)
        for places in table.values()
        for space in places
        if space and space not in FOREIGN
    )
)
"""Every namespace that a run can have."""


@dataclass(frozen=True)
class Needed:
    """The rights that a run needs."""

    everywhere: list[Right]
    """Without one of them nothing can be verified."""
    helpful: list[Right]
    of_checks: dict[str, list[Right]]
    """By requirement: without one of them it cannot be verified."""
    spaces: list[str]
    """The namespaces that it uses."""

    @property
    def all(self) -> list[Right]:
        """Each once, and none for a single object that another gives for all of its kind."""
        of_checks = (right for rights in self.of_checks.values() for right in rights)
        found = dict.fromkeys([*self.everywhere, *self.helpful, *of_checks])
        return [right for right in found if not right.name or right._replace(name="") not in found]


def rights_needed(requirements: Iterable[str], settings: Settings) -> Needed:
    """What a run of these requirements needs; features that it shows by checks of their own are named like them."""
    prefix = settings.namespace_prefix
    checks: dict[str, Check | FeatureCheck] = {**load_checks(), **load_feature_checks()}
    of_checks = {name: list(_of_check(name, checks[name], settings)) for name in requirements if name in checks}
    spaces = list(dict.fromkeys(right.place for rights in of_checks.values() for right in rights if _own(right)))
    helpful = [*HELPFUL, *(right._replace(place=space) for space in spaces for right in HELPFUL_IN_EACH)]
    if f"{OWN}{DIRECTORY}" in spaces:
        helpful += _of_domain(settings)
    return Needed(
        # Where namespaces were prepared, what is missing in one of them concerns only those who use it.
        everywhere=_at(EVERY_RUN if prefix else [*EVERY_RUN, *MAKING, *PLACING, *IN_EACH], prefix),
        helpful=_at(helpful, prefix),
        of_checks={name: _at(rights, prefix) for name, rights in of_checks.items()},
        spaces=[space.removeprefix(OWN) for space in spaces],
    )


def rights_to_grant(requirements: Iterable[str], settings: Settings) -> list[Right]:
    """The same as they should be given: beside prepared namespaces nothing that reaches far beyond them."""
    return rights_needed(_within(requirements, settings), settings).all


def prepared_namespaces(requirements: Iterable[str], settings: Settings) -> list[Object]:
    """The namespaces for such a run, for an administrator to make."""
    prefix = settings.namespace_prefix
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": settings.namespace(space),
                "labels": {PREPARED: prefix, POD_SECURITY: "privileged" if space in PRIVILEGED else "baseline"},
            },
        }
        for space in rights_needed(_within(requirements, settings), settings).spaces
    ]


def beyond(requirements: Iterable[str], settings: Settings) -> dict[str, list[Right]]:
    """Requirements that cannot be verified in prepared namespaces alone, and the rights that this would take."""
    if not settings.namespace_prefix:
        return {}
    needed = rights_needed(requirements, settings).of_checks
    found = {name: [right for right in rights if right in STRONG] for name, rights in needed.items()}
    return {name: strong for name, strong in found.items() if strong}


def _within(requirements: Iterable[str], settings: Settings) -> list[str]:
    names = list(requirements)
    strong = beyond(names, settings)
    return [name for name in names if name not in strong]


def _of_check(name: str, check: Check | FeatureCheck, settings: Settings) -> Iterator[Right]:
    own = CHECKS.get(name) or FEATURES.get(name) or {}
    for places in [*(FIXTURES[fixture] for fixture in sorted(check.fixtures)), own]:
        for space, text in places.items():
            if not space or space in FOREIGN:
                yield from read_rights(text, space)
            elif space != DIRECTORY or settings.active_directory is not None:
                yield from _in_space(f"{OWN}{space}", text, settings)


def _in_space(place: str, text: str, settings: Settings) -> Iterator[Right]:
    placing = () if place.removeprefix(OWN) in BY_WORKLOADS else PLACING
    found = [right._replace(place=place) for right in (*placing, *IN_EACH)]
    found += read_rights(text, place) if text else []
    yield from found
    if settings.namespace_prefix:
        yield from (right._replace(place=place) for right in CLAIMING)
        yield from _removing(found)


def _of_domain(settings: Settings) -> Iterator[Right]:
    """What pods need to log on to a domain: others may have given it to them already, and the checks see to it."""
    if settings.active_directory is not None:
        found = directory_rights(settings.active_directory, f"{OWN}{DIRECTORY}")
        yield from found
        if settings.namespace_prefix:
            yield from _removing(found)


def _removing(rights: Iterable[Right]) -> Iterator[Right]:
    """What it takes to remove what these create."""
    for right in rights:
        if right.verb == "create" and _stays(right):
            yield from (right._replace(verb=verb) for verb in ("list", "delete"))


def _stays(right: Right) -> bool:
    """Whether what is created is an object, and not a question or a command."""
    return "/" not in right.resource and not right.resource.endswith("reviews")


def _own(right: Right) -> bool:
    return right.place.startswith(OWN)


def _at(rights: Iterable[Right], prefix: str) -> list[Right]:
    return list(dict.fromkeys(right.at(prefix) for right in rights))
