"""The same requests to the embedded and to the real API server of one version get the same answers.

Status codes, reasons, field paths and objects are compared, without what differs by nature: identities,
times, allocated addresses, and what controllers have done meanwhile. Differences that stay are listed in
docs/sandbox.md, and here with their reasons and the answers that show them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from real.api import Api, Call, comparable
from real.conftest import EMBEDDED, KUBERNETES, Cluster
from real.scenarios import GOOD, SCENARIOS, created
from winready_sandbox.api.resources import ResourceTable

DATA = Path(__file__).parent.parent / "sandbox" / "api" / "data"
REFUSED = yaml.safe_load((DATA / "refused.yaml").read_text())
PODS = ("pod-plain", "pod-windows", "pod-host", "pod-silent", "pod-rich")
OWNERSHIP = ("job-plain", "cronjob-plain", "networkpolicy-plain", "persistentvolumeclaim-claim")


@dataclass(frozen=True)
class Known:
    """A difference that stays: why, and where it shows (scenarios, some of their calls, a part of the answer)."""

    reason: str
    scenarios: tuple[str, ...]
    part: str = ""
    calls: tuple[int, ...] = ()

    def explains(self, scenario: str, call: int, where: str) -> bool:
        """Whether it is the cause of this one."""
        return scenario in self.scenarios and self.part in where and (not self.calls or call in self.calls)


KNOWN = [
    Known("the version it stands for, not the program", ("access",), calls=(1,)),
    Known("groups without a use on Windows are not served", ("access",), ".answer.groups", (8,)),
    Known("reviews and token requests are answered, not tracked", ("access", "subresources"), ".managedFields"),
    Known("an empty access review is denied, not refused", ("access",), calls=(21,)),
    Known("authenticators are asked in another order", ("access",), ".answer.status.", (22,)),
    Known("versions that no group has are unknown paths", ("paths",), calls=(1, 4)),
    Known("the name is checked before the conflict", ("apply",), calls=(6,)),
    Known("a resource version that is no number is a stale one", ("updates",), calls=(5,)),
    Known("a resource version that is no number is a bad request", ("lists",), calls=(28,)),
    Known("a scale has no shape of its own", ("subresources",), calls=(3,)),
    Known("a pod that no node has is gone at once, without a last generation", PODS, ".generation", (7,)),
    Known("claims are not protected from deletion", ("persistentvolumeclaim-claim",), ".finalizers"),
    Known("annotations are no new generation", ("deployment-plain", "deployment-recreated"), ".generation", (5, 6)),
    Known("the deprecated template generation", ("daemonset-plain", "refused"), "deprecated.daemonset"),
    Known("who owns empty structures and generated labels", OWNERSHIP, ".managedFields"),
    Known("jobs orphan their pods only when asked to", ("job-plain",), calls=(7,)),
    Known("the address is refused when it is allocated", ("refused",), ".causes", (100,)),
    Known("an empty service name has an owner", ("refused",), ".f:serviceName"),
    Known("nodes get their pod network from the controllers here, from the nodes there", ("refused",), calls=(210,)),
    Known("an absent list of endpoints is stored as such", ("refused",), calls=(241,)),
    Known("a pod that a node took meanwhile", ("refused",), ".causes", (256,)),
]


class Pair:
    """Both API servers, and a namespace of the same name in each."""

    def __init__(self, embedded: Api, real: Api, namespace: str) -> None:
        self.namespace = namespace
        self.servers = {"embedded": embedded, "real": real}

    def ask(self, call: Call) -> dict[str, Any]:
        """Both answers, made comparable."""
        answers = {}
        for name, server in self.servers.items():
            status, answer = server.ask(call, self.namespace)
            answers[name] = {"status": status, "answer": comparable(answer, self.namespace)}
        return answers


@pytest.fixture(scope="session")
def servers(clusters: Callable[[str], Cluster]) -> tuple[Api, Api]:
    """The embedded and the real API server."""
    return Api(clusters(EMBEDDED).kubeconfig), Api(clusters(KUBERNETES).kubeconfig)


@pytest.fixture(scope="module")
def pair(servers: tuple[Api, Api]) -> Iterator[Callable[[str], Pair]]:
    """Pairs with a fresh namespace each, all removed at the end."""
    made: list[str] = []

    def fresh(name: str) -> Pair:
        namespace = f"differential-{name}"
        made.append(namespace)
        for server in servers:
            status, answer = server.ask(Call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}))
            assert status == 201, answer
            account = Call("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
            while server.ask(account)[0] != 200:
                pass
        return Pair(*servers, namespace)

    yield fresh
    for namespace in made:
        for server in servers:
            server.ask(Call("DELETE", f"/api/v1/namespaces/{namespace}"))


def differences(pair: Pair, scenario: str, calls: list[Call]) -> list[str]:
    """What the two say differently, call by call."""
    found = []
    for number, call in enumerate(calls):
        answers = pair.ask(call)
        where = [
            line
            for line in unlike(answers["embedded"], answers["real"])
            if not any(known.explains(scenario, number, line) for known in KNOWN)
        ]
        if where:
            found.append("\n".join([f"{number}: {call.method} {call.path} {json.dumps(call.body)[:300]}", *where]))
    return found


def unlike(embedded: Any, real: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ."""
    if isinstance(embedded, dict) and isinstance(real, dict):
        for key in sorted({*embedded, *real}):
            yield from unlike(embedded.get(key), real.get(key), f"{path}.{key}")
    elif isinstance(embedded, list) and isinstance(real, list) and len(embedded) == len(real):
        for number, (one, other) in enumerate(zip(embedded, real, strict=True)):
            yield from unlike(one, other, f"{path}[{number}]")
    elif embedded != real:
        yield f"  {path}: embedded {json.dumps(embedded)[:300]}, real {json.dumps(real)[:300]}"


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(pair: Callable[[str], Pair], name: str) -> None:
    found = differences(pair(name), name, SCENARIOS[name])
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("path", "body"), GOOD, ids=[f"{body['kind']}-{body['metadata']['name']}" for _, body in GOOD])
def test_good_object(pair: Callable[[str], Pair], path: str, body: dict[str, Any]) -> None:
    name = f"{body['kind']}-{body['metadata']['name']}".lower()
    found = differences(pair(name), name, created(path, body))
    assert not found, "\n".join(found)


def test_refused_objects(pair: Callable[[str], Pair]) -> None:
    two = pair("refused")
    resources = {(each.group, each.kind): each for each in ResourceTable()}
    calls: list[Call] = []
    for number, case in enumerate(REFUSED):
        resource = resources[case.get("group", ""), case["kind"]]
        version = f"{resource.group}/{resource.version}".lstrip("/")
        path = f"/apis/{version}" if resource.group else f"/api/{version}"
        path += f"/namespaces/NAMESPACE/{resource.plural}" if resource.namespaced else f"/{resource.plural}"

        def whole(which: str, name: str = f"refused-{number}", api: str = version, case: Any = case) -> dict[str, Any]:
            metadata = {"name": name, **case[which].get("metadata", {})}
            return {"apiVersion": api, "kind": case["kind"], **case[which], "metadata": metadata}

        if "old" in case:
            calls += [Call("POST", path, whole("old")), Call("PUT", f"{path}/refused-{number}", whole("object"))]
        else:
            calls.append(Call("POST", f"{path}?dryRun=All", whole("object")))
    found = differences(two, "refused", calls)
    for call in calls:
        if call.method == "PUT" and call.path.startswith("/api/v1/nodes/"):
            # A node that nobody runs would keep e2e.test from starting.
            two.ask(Call("DELETE", call.path))
    assert not found, "\n".join(found)
