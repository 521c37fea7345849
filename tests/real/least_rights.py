"""An operator with exactly what ``winready rbac`` prints, and what a real API server writes down that he asked for."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from real.auditing import LOG
from real.conftest import Cluster, Kubectl, programs
from winready.checks.rights import ANSWERING, HELPFUL_IN_EACH
from winready.cli.main import cli
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CLUSTER_ROLES, ROLES
from winready.cluster.rights import EVERYWHERE, Right, denied, rules

LACK = "rights are missing: "
ANYBODY = "selfsubjectaccessreviews"
BLIND = Right("list", "nodes")
"""Without it nothing is known of the cluster, not even which other rights would be needed."""
UNHAPPY = {
    ("get", "pods"): "where the answer to a create was lost",
    ("create", "networkpolicies"): "where policies of others isolate a namespace of the run",
    ("delete", "networkpolicies"): "there, where the namespace was prepared",
    ("list", "limitranges"): "where a LimitRange refuses a pod",
    ("list", "deployments"): "where pods of a workload are late",
    ("list", "statefulsets"): "likewise",
    ("list", "endpointslices"): "where the API server does not answer from a node",
}
"""Rights that only a run uses that has something in its way."""
UNSEEN = {
    ("create", "pods/exec"): "asked besides 'get' for every exec since Kubernetes 1.35, and not written down",
    ("create", "endpointslices/restricted"): "asked for by OpenShift's own admission",
}
"""Rights whose use no audit log of these API servers shows, and why."""
ONCE = {right[:3] for right in (*HELPFUL_IN_EACH, *ANSWERING)}
"""What happens in one namespace of a run at a time."""


@dataclass
class Asked:
    """What somebody asked an API server for."""

    allowed: set[Right] = field(default_factory=set)
    refused: set[Right] = field(default_factory=set)
    codes: set[int] = field(default_factory=set)

    def uses(self, right: Right) -> bool:
        """Whether a right was used, in its place unless it is one of those that are needed now and then."""
        anywhere = right.place == EVERYWHERE or right[:3] in ONCE
        return any(
            each[:3] == right[:3] and (anywhere or each.place == right.place) and right.name in ("", each.name)
            for each in self.allowed
        )

    def unused(self, rights: Iterable[Right]) -> set[tuple[str, str]]:
        """Of these rights the kinds that nobody used somewhere."""
        return {right[:2] for right in rights if not self.uses(right)}


class Operator:
    """A service account with what ``winready rbac`` prints, and nothing else."""

    def __init__(self, cluster: Cluster, folder: Path, name: str, *words: str) -> None:
        self.cluster, self.name, self.words = cluster, name, words
        self.kubectl = Kubectl(programs(cluster.version.removeprefix("v")) / "kubectl", cluster.kubeconfig)
        printed = cluster.winready("rbac", *words, "--name", name, "--namespace", name)
        assert printed.returncode == 0, printed.stderr
        self.manifest = printed.stdout
        self.rights = granted(self.manifest)
        self.kubectl.ok("apply", "-f", "-", stdin=self.manifest)
        token = self.kubectl.ok("create", "token", name, "--namespace", name).strip()
        config = json.loads(self.kubectl.ok("config", "view", "--raw", "-o", "json"))
        config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
        self.kubeconfig = str(folder / f"{name}.json")
        Path(self.kubeconfig).write_text(json.dumps(config))
        self._log = Path(cluster.document["control_plane"]) / LOG
        self._missing: set[Right] = set()

    def leave(self) -> None:
        """Take the account, its roles and its namespaces away."""
        self.kubectl.ok("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=self.manifest)

    @contextmanager
    def heard(self) -> Iterator[Asked]:
        """What the API server writes down about this account meanwhile."""
        asked = Asked()
        # A log is written before its request is answered; it begins with the first request.
        begin = self._log.stat().st_size if self._log.exists() else 0
        yield asked
        if not self._log.exists():
            return
        with self._log.open() as log:
            log.seek(begin, os.SEEK_SET)
            for line in log:
                self._read(json.loads(line), asked)

    def _read(self, event: dict[str, Any], asked: Asked) -> None:
        what = event.get("objectRef") or {}
        if not event["user"]["username"].endswith(f":{self.name}") or what.get("resource") in (None, ANYBODY):
            return
        resource = "/".join(filter(None, (what["resource"], what.get("subresource"))))
        place = what.get("namespace") or EVERYWHERE
        # A namespace itself is said to be in itself.
        place = EVERYWHERE if resource in ("namespaces", "nodes", "nodes/proxy") else place
        right = Right(event["verb"], resource, what.get("apiGroup") or "", place, what.get("name") or "")
        allowed = event["annotations"]["authorization.k8s.io/decision"] == "allow"
        (asked.allowed if allowed else asked.refused).add(right)
        asked.codes.add(event["responseStatus"]["code"])

    def lack(self, *missing: Right) -> None:
        """Have all rights but these."""

        async def go() -> None:
            async with (
                Client.connect(find_target(self.cluster.kubeconfig)) as admin,
                Client.connect(find_target(self.kubeconfig)) as own,
            ):
                await self.without(admin, own, missing)

        asyncio.run(go())

    async def without(self, admin: Client, own: Client, missing: Iterable[Right]) -> None:
        """Have all rights but these; returns when the API server goes by that."""
        left = set(missing)
        for place in {right.place for right in self._missing ^ left}:
            body = {"rules": rules(each for each in self.rights if each.place == place and each not in left)}
            await admin.patch(ROLES if place else CLUSTER_ROLES, self.name, body, place or None)
        self._missing = left
        while set(await denied(own, self.rights)) != left:  # noqa: ASYNC110 - the authorizer learns it by a watch
            await asyncio.sleep(0.02)

    async def named_when_missing(self, *words: str) -> dict[Right, bool]:
        """By right, whether a plan without it names it, the requirement that needs it and the command that grants it.

        At a time one right is taken away in each namespace: what is missing in one concerns no other.
        """
        found: dict[Right, bool] = {}
        async with (
            Client.connect(find_target(self.cluster.kubeconfig)) as admin,
            Client.connect(find_target(self.kubeconfig)) as own,
        ):
            always = await asyncio.to_thread(self.told, *words)
            for missing in taken_away(self.rights):
                await self.without(admin, own, missing)
                told = await asyncio.to_thread(self.told, *words)
                assert told - always <= {str(right) for right in missing}, "something is named that is granted"
                found |= {right: str(right) in told for right in missing}
            await self.without(admin, own, [])
        return found

    def told(self, *words: str) -> set[str]:
        """The rights that a plan says are missing, each with the command; whom it stops is named with it."""
        result = CliRunner().invoke(cli, ["plan", "--kubeconfig", self.kubeconfig, *words, "-o", "json"])
        if not result.stdout:
            rights, _, step = result.stderr.removeprefix(f"error: {LACK}").partition("\n")
            told = [(rights, step)]
        else:
            plan = json.loads(result.stdout)
            reasons = {each.get("reason", ""): each.get("next_step", "") for each in plan["requirements"]}
            told = [(why.removeprefix(LACK), step) for why, step in reasons.items() if why.startswith(LACK)]
            told += [(each["rights"], each["next_step"]) for each in [plan["unhelped"]] if each]
        command = " ".join(["winready rbac", *words])
        wide = " ".join(["winready rbac", *_without_prefix(words)])
        found = set()
        for rights, step in told:
            far = rights.endswith(" in the whole cluster")
            assert f"'{wide if far else command} | kubectl apply -f -'" in step, step
            found |= set(rights.split(", "))
        return found


def granted(manifest: str) -> list[Right]:
    """What roles allow, as they are printed."""
    return [
        Right(verb, resource, group, each["metadata"].get("namespace", EVERYWHERE), name)
        for each in yaml.safe_load_all(manifest)
        for rule in each.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    ]


def taken_away(rights: Iterable[Right]) -> Iterator[list[Right]]:
    """Each right once, together with rights in other places."""
    places: dict[str, list[Right]] = {}
    for right in rights:
        if right == BLIND:
            yield [right]
        else:
            places.setdefault(right.place, []).append(right)
    for several in itertools.zip_longest(*places.values()):
        yield [right for right in several if right is not None]


def _without_prefix(words: tuple[str, ...]) -> list[str]:
    left = list(words)
    if "--namespace-prefix" in left:
        position = left.index("--namespace-prefix")
        del left[position : position + 2]
    return left
