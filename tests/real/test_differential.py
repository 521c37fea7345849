"""The same requests to the embedded and to the real API server of one version get the same answers.

Status codes, reasons, field paths and objects are compared, without what differs by nature: identities,
times, allocated addresses, and what controllers have done meanwhile. Differences that stay are in ``accepted.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from real import beyond_data, from_data
from real.accepted import ACCEPTED, Difference, complaints
from real.api import Api, Call, comparable
from real.conftest import EMBEDDED, KUBERNETES, OLDER, WITH_OLDER, Cluster
from real.scenarios import GOOD, SCENARIOS, created
from winready.lint.catalog import load
from winready_sandbox.api.resources import ResourceTable

DATA = Path(__file__).parent.parent / "sandbox" / "api" / "data"
REFUSED = yaml.safe_load((DATA / "refused.yaml").read_text())
RESOURCES = {(each.group, each.kind): each for each in ResourceTable()}
LEFT_ALONE: dict[str, Any] = {
    "Pod": {"nodeSelector": {"no": "node"}},
    "Node": {"podCIDR": "10.99.0.0/24", "podCIDRs": ["10.99.0.0/24"]},
}
"""What keeps controllers from changing an object between two requests."""


AT_ONCE = 8
WINDOWS: dict[str, Callable[[], list[Call]]] = {
    "lint-data": from_data.requests,
    "beyond-data": lambda: list(beyond_data.calls()),
}
"""Requests about Windows workloads, none of which has an effect."""
VERSIONS = {"": KUBERNETES, "-older": OLDER}


class Pair:
    """Both API servers, and a namespace of the same name in each."""

    def __init__(self, embedded: Api, real: Api, namespace: str, words: bool = True) -> None:
        self.namespace = namespace
        self.words = words
        """Whether refusals are compared word by word; old servers repeat values as Go writes them, with addresses."""
        self.servers = {"embedded": embedded, "real": real}

    def ask(self, call: Call) -> dict[str, Any]:
        """Both answers, made comparable."""
        answers = {}
        for name, server in self.servers.items():
            status, answer = server.ask(call, self.namespace)
            answers[name] = {"status": status, "answer": comparable(answer, self.namespace)}
        return answers

    def tell(self, call: Call) -> dict[str, Any]:
        """Both answers with their words and warnings, but without the owners of fields; in any thread."""
        answers = {}
        for name, server in self.servers.items():
            status, answer, warnings = server.exchange(call, self.namespace)
            compared = comparable(answer, self.namespace)
            if isinstance(compared, dict) and isinstance(compared.get("metadata"), dict):
                compared["metadata"].pop("managedFields", None)
            words = answer.get("message", "") if self.words and isinstance(answer, dict) and status >= 400 else ""
            answers[name] = {
                "status": status,
                "answer": compared,
                "message": words.replace(self.namespace, "NAMESPACE"),
                "warnings": sorted(warning.replace(self.namespace, "NAMESPACE") for warning in warnings),
            }
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


@pytest.fixture(scope="module", params=["", pytest.param("-older", marks=WITH_OLDER)])
def judged(request: pytest.FixtureRequest, clusters: Callable[..., Cluster]) -> Iterator[tuple[str, Pair]]:
    """Both API servers of a version, and namespaces with every kind of Pod Security labels in each."""
    real = clusters(VERSIONS[request.param])
    minor = real.version.removeprefix("v").rpartition(".")[0]
    options = () if not request.param else ("--kubernetes", minor)
    two = Pair(
        Api(clusters(EMBEDDED, *options).kubeconfig), Api(real.kubeconfig), f"judged{request.param}", not request.param
    )
    for server in two.servers.values():
        for level, labels in from_data.LEVELS.items():
            named = {f"pod-security.kubernetes.io/{key}": value for key, value in labels.items()}
            metadata = {"name": f"{two.namespace}{level}", "labels": named}
            status, answer = server.ask(Call("POST", "/api/v1/namespaces", {"metadata": metadata}))
            assert status == 201, answer
            account = Call("GET", f"/api/v1/namespaces/{metadata['name']}/serviceaccounts/default")
            while server.ask(account)[0] != 200:
                pass
    yield request.param, two
    for server in two.servers.values():
        for level in from_data.LEVELS:
            server.ask(Call("DELETE", f"/api/v1/namespaces/{two.namespace}{level}"))


def compare(pair: Pair, comparison: str, calls: list[Call]) -> None:
    """Ask both, call by call; they may differ in what is accepted, and must."""
    _judge(comparison, zip(calls, map(pair.ask, calls), strict=True))


def _judge(comparison: str, asked: Iterable[tuple[Call, dict[str, Any]]]) -> None:
    found = []
    for call, answers in asked:
        request = f"{call.method} {call.path} {json.dumps(call.body)}"
        found += [Difference(request, *unlike) for unlike in differences(answers["embedded"], answers["real"])]
    said = complaints(comparison, found)
    assert not said, "\n".join(said)


def differences(embedded: Any, real: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two answers differ, and what they say there."""
    if embedded != real and all(isinstance({} if each is None else each, dict) for each in (embedded, real)):
        one, other = embedded or {}, real or {}
        # Field by field, a refusal and an object have nothing in common.
        apart = path == ".answer" and one.get("kind") != other.get("kind")
        keys = ["kind"] if apart else sorted({*one, *other})
        if not keys:
            yield path, embedded, real
        for key in keys:
            yield from differences(one.get(key), other.get(key), f"{path}.{key}")
    elif isinstance(embedded, list) and isinstance(real, list) and len(embedded) == len(real):
        for number, (one, other) in enumerate(zip(embedded, real, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif embedded != real:
        yield path, embedded, real


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(pair: Callable[[str], Pair], name: str) -> None:
    compare(pair(name), name, SCENARIOS[name])


@pytest.mark.parametrize(("path", "body"), GOOD, ids=[f"{body['kind']}-{body['metadata']['name']}" for _, body in GOOD])
def test_good_object(pair: Callable[[str], Pair], path: str, body: dict[str, Any]) -> None:
    name = f"{body['kind']}-{body['metadata']['name']}".lower()
    compare(pair(name), name, created(path, body))


def refusal(number: int, case: dict[str, Any]) -> list[Call]:
    """The calls that show a case: one without effect, or a good object and what must not become of it."""
    resource = RESOURCES[case.get("group", ""), case["kind"]]
    version = f"{resource.group}/{resource.version}".lstrip("/")
    path = f"/apis/{version}" if resource.group else f"/api/{version}"
    path += f"/namespaces/NAMESPACE/{resource.plural}" if resource.namespaced else f"/{resource.plural}"

    def whole(given: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": f"refused-{number}", **given.get("metadata", {})}
        return {"apiVersion": version, "kind": case["kind"], **given, "metadata": metadata}

    if "old" not in case:
        return [Call("POST", f"{path}?dryRun=All", whole(case["object"]))]
    old, new = whole(case["old"]), whole(case["object"])
    if alone := LEFT_ALONE.get(case["kind"]):
        old["spec"], new["spec"] = alone | old["spec"], alone | new["spec"]
    return [Call("POST", path, old), Call("PUT", f"{path}/refused-{number}", new)]


def test_refused_objects(pair: Callable[[str], Pair]) -> None:
    two = pair("refused")
    calls = [call for number, case in enumerate(REFUSED) for call in refusal(number, case)]
    try:
        compare(two, "refused", calls)
    finally:
        for call in calls:
            if call.method == "PUT" and call.path.startswith("/api/v1/nodes/"):
                # A node that nobody runs would keep e2e.test from starting.
                two.ask(Call("DELETE", call.path))


@pytest.mark.timeout(900)  # thousands of requests, on machines that may be busy
@pytest.mark.parametrize("source", WINDOWS)
def test_windows_workloads(judged: tuple[str, Pair], source: str) -> None:
    version, two = judged
    calls = WINDOWS[source]()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(two.tell, calls))
    _judge(f"{source}{version}", zip(calls, answers, strict=True))


def test_every_field_of_every_rule_is_in_a_request() -> None:
    tried: dict[tuple[str, str], list[Any]] = {}
    for setting in from_data.settings():
        tried.setdefault((setting.kind, setting.path), []).append(setting.value)
    places = [(rule.id, place) for rule in load().values() for place in rule.places if place.path]
    untried = [
        f"{rule}: {place.kind} {place.path}"
        for rule, place in places
        if place.test is None or not any(place.test(value) for value in tried[place.kind, place.path])
    ]
    assert untried == []
    kinds = {
        (call.body["kind"], json.dumps(call.body).count('"os": {"name": "windows"}')) for call in WINDOWS["lint-data"]()
    }
    assert kinds >= {(kind, declared) for kind in ("Pod", *from_data.WORKLOADS) for declared in (0, 1)}


def test_what_is_accepted_is_compared() -> None:
    comparisons = {*SCENARIOS, *(f"{body['kind']}-{body['metadata']['name']}".lower() for _, body in GOOD), "refused"}
    comparisons |= {f"{source}{version}" for source in WINDOWS for version in VERSIONS}
    assert {where for entry in ACCEPTED for where in entry.where} <= comparisons


def test_what_nobody_accepted_and_what_is_gone_are_told() -> None:
    what = "versions that no group has are unknown paths"
    assert complaints("paths", []) == [f"accepted, but no longer so: {what} (\\.answer)"]
    there = Difference("GET /api/v2 null", ".answer", "404 page not found\n", {"kind": "Status"})
    assert complaints("paths", [there]) == []
    other = Difference("GET /api/v1/nonsense null", ".status", 400, 404)
    assert complaints("paths", [there, other]) == ["GET /api/v1/nonsense null\n  .status: embedded 400, real 404"]
