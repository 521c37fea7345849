"""Rights on a cluster, one by one: as roles to grant, and as questions to ask before anything is created."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from winready.cluster.client import Client, Object
from winready.cluster.directory import ActiveDirectory
from winready.cluster.resources import ACCESS_REVIEWS
from winready.cluster.settings import prepared_namespace

RBAC = "rbac.authorization.k8s.io"
EVERYWHERE = ""
OWN = "@"
"""How the place of a right begins that is about a namespace of the run; the rest says which one."""
ASKED_AT_ONCE = 16
PREPARED = "winready.io/prepared"
"""The label of namespaces that an administrator prepared; its value is their prefix."""
POD_SECURITY = "pod-security.kubernetes.io/enforce"


class Right(NamedTuple):
    """One verb on one kind of object."""

    verb: str
    resource: str
    """With its subresource: ``pods/exec``."""
    group: str = ""
    place: str = EVERYWHERE
    """A namespace, or the whole cluster."""
    name: str = ""
    """Of the only object that it is about."""

    def __str__(self) -> str:
        """As people read it."""
        words = f"{self.verb} {self.resource}"
        words += f" {self.name}" if self.name else ""
        words += f" ({self.group})" if self.group else ""
        return f"{words} in namespace {self.place}" if self.place else words

    def at(self, prefix: str) -> Right:
        """The same where a run has its namespaces: anywhere, or in those with a prefix that were prepared."""
        if not prefix:
            # Nobody knows the names beforehand.
            return self._replace(place=EVERYWHERE)
        if self.place.startswith(OWN):
            return self._replace(place=prepared_namespace(prefix, self.place.removeprefix(OWN)))
        return self


def read_rights(text: str, place: str = EVERYWHERE) -> list[Right]:
    """``get list nodes; create deployments.apps``: verbs, then what they are about; ``=NAME`` if only one object."""
    found = []
    for part in text.split(";"):
        *verbs, what = part.split()
        kind, _, name = what.partition("=")
        # The group is that of the resource, whichever part of it is meant: endpointslices/restricted.discovery.k8s.io
        resource, _, group = kind.partition(".")
        found += [Right(verb, resource, group, place, name) for verb in verbs]
    return found


def rules(rights: Iterable[Right]) -> list[dict[str, list[str]]]:
    """The rules of a role that grants these, whatever their place."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for right in rights:
        known = verbs.setdefault((right.group, right.resource, right.name), [])
        if right.verb not in known:
            known.append(right.verb)
    together: dict[tuple[str, str, tuple[str, ...], bool], list[str]] = {}
    for (group, resource, name), known in verbs.items():
        together.setdefault((group, resource, tuple(sorted(known)), bool(name)), []).append(name)
    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            **({"resourceNames": names} if named else {}),
            "verbs": list(each),
        }
        for (group, resource, each, named), names in together.items()
    ]


CLEANUP = read_rights(
    "get list nodes; list create delete namespaces; get namespaces=kube-system; create get list watch delete pods"
    "; create get pods/exec; list events; list limitranges; create list networkpolicies.networking.k8s.io"
)
"""What ``winready cleanup`` needs: a pod on each Windows node looks for folders of runs and removes them."""


def directory_rights(directory: ActiveDirectory, place: str) -> list[Right]:
    """What a run needs besides to let pods of its own log on to a domain: nobody may grant what he does not have."""
    found = read_rights("create serviceaccounts; create localsubjectaccessreviews.authorization.k8s.io", place)
    found += read_rights(f"create rolebindings.{RBAC}", place)
    if directory.cluster_role:
        found.append(Right("bind", "clusterroles", RBAC, place, directory.cluster_role))
    else:
        found += read_rights(f"create roles.{RBAC}", place)
        found += [Right("use", "gmsacredentialspecs", "windows.k8s.io", place, n) for n in directory.credential_specs]
    return [
        *found,
        *(Right("get", "gmsacredentialspecs", "windows.k8s.io", EVERYWHERE, n) for n in directory.credential_specs),
    ]


def manifest(name: str, namespace: str, user: str | None, rights: Iterable[Right]) -> list[Object]:
    """An account, unless the rights are for a user, and for each place a role with its rights and a binding."""
    subject: dict[str, str] = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    found: list[Object] = []
    if user:
        subject = {"kind": "User", "name": user, "apiGroup": RBAC}
    else:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        found = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, account]
    places: dict[str, list[Right]] = {}
    for right in rights:
        places.setdefault(right.place, []).append(right)
    for place in sorted(places):
        found += granted(name, place, rules(places[place]), subject)
    return found


def granted(name: str, place: str, allowed: list[dict[str, list[str]]], subject: dict[str, str]) -> list[Object]:
    """A role in a namespace or for the whole cluster, and its binding."""
    kind = "Role" if place else "ClusterRole"
    metadata: Object = {"name": name, **({"namespace": place} if place else {})}
    version = f"{RBAC}/v1"
    return [
        {"apiVersion": version, "kind": kind, "metadata": metadata, "rules": allowed},
        {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [subject],
        },
    ]


async def denied(client: Client, rights: Iterable[Right]) -> list[Right]:
    """Those of the rights that the cluster does not grant us."""
    gate = asyncio.Semaphore(ASKED_AT_ONCE)

    async def lacks(right: Right) -> bool:
        async with gate:
            review = await client.create(ACCESS_REVIEWS, {"spec": {"resourceAttributes": dict(_attributes(right))}})
        return not (review.get("status") or {}).get("allowed")

    asked = list(dict.fromkeys(rights))
    answers = await asyncio.gather(*(lacks(right) for right in asked))
    return [right for right, lacking in zip(asked, answers, strict=True) if lacking]


def _attributes(right: Right) -> Iterator[tuple[str, Any]]:
    resource, _, subresource = right.resource.partition("/")
    yield from {"group": right.group, "resource": resource, "verb": right.verb}.items()
    for key, value in (("subresource", subresource), ("namespace", right.place), ("name", right.name)):
        if value:
            yield key, value
