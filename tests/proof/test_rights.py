"""The rights that ``winready rbac`` prints: a run does nothing else, and does all of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import msgspec
import pytest

from winready.checks.registry import load_checks, load_feature_checks
from winready.checks.rights import (
    ANSWERING,
    CHECKS,
    FEATURES,
    FIXTURES,
    HELPFUL_IN_EACH,
    rights_needed,
    rights_to_grant,
)
from winready.cluster.client import Client
from winready.cluster.inventory import Inventory
from winready.cluster.kubeconfig import Target
from winready.cluster.rights import EVERYWHERE, Right, denied, manifest, rules
from winready.cluster.settings import Settings
from winready.cluster.transport import Transport
from winready.engine.options import Options
from winready.engine.rights import lacking, unhelped
from winready.engine.selection import Selection, select
from winready.proof.choosing import Trial
from winready.proof.furnishing import furnished, own_domain
from winready.proof.healthy.table import VARIANTS
from winready.proof.trial import OPERATOR, hold_trial
from winready.spec.loader import load_standard
from winready_sandbox.api.identity import User
from winready_sandbox.api.rbac import Authorizer, Request
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop
from winready_sandbox.wire import WireConnector

STANDARD = load_standard()
PREFIX = "prepared"
HELPFUL = [*HELPFUL_IN_EACH, *ANSWERING]
ANYBODY = {"selfsubjectaccessreviews"}
"""What everybody may do."""
ELSEWHERE = {
    ("create", "endpointslices/restricted"): "OpenShift's own admission asks for it",
    ("use", "gmsacredentialspecs"): "nobody may grant what he does not have",
    ("list", "endpointslices", "default"): "looked at where the API server does not answer from a node",
    ("create", "localsubjectaccessreviews"): "asked where a pod got a credential spec that it was not given",
}
"""Rights that no run on a sandbox uses, and who does."""
UNHAPPY = (
    ("admission.default-deny", "N5"),
    ("refusing.limit-range", "N5"),
    ("refusing.very-slow-pulls", "N5"),
    ("neighbours.node-joins", "C1"),
)
"""Clusters on which a run does what it does nowhere else, and whom that happens to."""


class Record:
    """What the operator asked the API server for."""

    def __init__(self) -> None:
        self.allowed: set[Right] = set()
        self.refused: set[Right] = set()


@contextmanager
def recording(monkeypatch: pytest.MonkeyPatch) -> Iterator[Record]:
    """Everything that is authorized meanwhile."""
    record, decide = Record(), Authorizer.require

    def require(self: Authorizer, user: User, request: Request) -> None:
        if user.name == OPERATOR.name and request.resource and request.resource not in ANYBODY:
            right = Right(request.verb, request.combined, request.group, request.namespace, request.name)
            allowed = self.allowed(user, request).allowed
            (record.allowed if allowed else record.refused).add(right)
        decide(self, user, request)

    with monkeypatch.context() as patch:
        patch.setattr(Authorizer, "require", require)
        yield record


@contextmanager
def losing_answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The first pod and the first service that are created in a namespace, and nobody hears of it."""
    request, lost = Transport._request, set[str]()

    @asynccontextmanager
    async def losing(self: Transport, method: str, path: str, *rest: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        async with request(self, method, path, *rest) as response:
            if method == "POST" and path.endswith(("/pods", "/services")) and path not in lost:
                lost.add(path)
                raise aiohttp.ServerDisconnectedError
            yield response

    with monkeypatch.context() as patch:
        patch.setattr(Transport, "_request", losing)
        yield


def held(monkeypatch: pytest.MonkeyPatch, name: str, selection: Selection, prefix: str) -> Record:
    """A run with the printed rights on a sound cluster; what it asked for."""
    this = replace(VARIANTS[name], least_rights=True, namespace_prefix=prefix)
    with recording(monkeypatch) as record, monkeypatch.context() as patch:
        patch.setitem(VARIANTS, name, this)
        hold_trial(Trial(name, selection, sound=True))
    return record


def granted(selection: Selection, prefix: str) -> set[Right]:
    directory = own_domain(furnished(STANDARD, selection))
    settings = Settings(run_id="rights", active_directory=directory, namespace_prefix=prefix)
    names = [*(item.id for item in select(STANDARD, selection)), *selection.features]
    return set(rights_to_grant(names, settings))


def uses(record: Record, right: Right) -> bool:
    kind = (right.verb, right.resource, right.group)
    # What a run does only where something is in its way happens in one of its namespaces at a time.
    anywhere = right.place == EVERYWHERE or kind in {each[:3] for each in HELPFUL}
    return any(
        each[:3] == kind and (anywhere or each.place == right.place) and right.name in ("", each.name)
        for each in record.allowed
    )


def test_the_table_is_about_checks_and_fixtures_that_there_are() -> None:
    assert CHECKS.keys() <= load_checks().keys()
    assert FEATURES.keys() <= load_feature_checks().keys()
    assert {name for check in load_checks().values() for name in check.fixtures} == FIXTURES.keys()


@pytest.mark.parametrize("prefix", ["", PREFIX])
@pytest.mark.parametrize("profile", ["core", "full"])
def test_a_run_uses_every_right_that_it_is_given_and_needs_no_other(
    monkeypatch: pytest.MonkeyPatch, profile: str, prefix: str
) -> None:
    selection = Selection(profile=profile)
    with losing_answers(monkeypatch):
        record = held(monkeypatch, "(healthy)", selection, prefix)
    assert record.refused == set()
    for name, requirement in UNHAPPY if profile == "core" else ():
        other = held(monkeypatch, name, Selection(requirements=[requirement]), prefix)
        assert other.refused == set(), name
        record.allowed |= other.allowed
    unused = {right for right in granted(selection, prefix) if not uses(record, right)}
    expected = {*ELSEWHERE, *((each.verb, each.resource) for each in HELPFUL if profile == "full")}
    left = [right for right in unused if right[:2] not in expected and (*right[:2], right.place) not in expected]
    assert list(map(str, left)) == []


@pytest.mark.parametrize("prefix", ["", PREFIX])
def test_features_use_every_right_that_they_are_given_and_need_no_other(
    monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    selection = Selection(features=list(load_feature_checks()))
    with losing_answers(monkeypatch):
        record = held(monkeypatch, "(healthy)", selection, prefix)
    assert record.refused == set()
    unused = {right for right in granted(selection, prefix) if not uses(record, right)}
    expected = {*ELSEWHERE, *((each.verb, each.resource) for each in HELPFUL)}
    left = [str(right) for right in unused if right[:2] not in expected]
    assert left == []


@pytest.mark.parametrize("prefix", ["", PREFIX])
def test_each_right_that_is_taken_away_is_named(prefix: str) -> None:
    selection = Selection(profile="full")
    requirements = [item.id for item in select(STANDARD, selection)]
    settings = Settings(run_id="rights", namespace_prefix=prefix)
    options = Options(settings=settings, selection=selection, allow_disruptive=True)
    rights = rights_to_grant(requirements, settings)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        named = runner.run(_without_each(rights))
    assert named == {right: [right] for right in rights}
    needed = rights_needed(requirements, settings)
    inventory = Inventory(server="", version="v1.36.0", nodes=[], features={}, missing={})
    blocking = {*needed.everywhere, *(right for each in needed.of_checks.values() for right in each)}
    command = "winready rbac --profile full --allow-disruptive" + (f" --namespace-prefix {prefix}" if prefix else "")
    for right in rights:
        without = msgspec.structs.replace(inventory, denied=[str(right)])
        told, other = lacking(without, requirements, options), unhelped(without, requirements, options)
        assert (bool(told), other is not None) == (right in blocking, right not in blocking), right
        for each in (*told.values(), *([other] if other else [])):
            assert each.rights == str(right)
            assert f"'{command} | kubectl apply -f -'" in each.next_step


async def _without_each(rights: list[Right]) -> dict[Right, list[Right]]:
    """By right, what the API server denies somebody who has all of them but this one."""
    found = {}
    async with Sandbox(Plan(name="rights")) as sandbox:
        plane, api = sandbox.embedded, sandbox.embedded.client
        for place in {right.place for right in rights} - {EVERYWHERE, "default", "kube-system"}:
            api.create("namespaces", {"metadata": {"name": place}})
        everything = manifest("winready", "winready", OPERATOR.name, rights)
        for obj in everything:
            api.create(f"{obj['kind'].lower()}s", obj, obj["metadata"].get("namespace", ""))
        target = Target(plane.url, token=plane.token(OPERATOR))
        async with Client.connect(target, WireConnector(plane.inside)) as client:
            assert await denied(client, rights) == []
            for right in rights:
                (role,) = [obj for obj in everything if _grants(obj, right.place)]
                here = [each for each in rights if each.place == right.place]
                _write(api, role, [each for each in here if each != right])
                found[right] = await denied(client, here)
                _write(api, role, here)
    return found


def _grants(obj: dict[str, Any], place: str) -> bool:
    return "rules" in obj and obj["metadata"].get("namespace", EVERYWHERE) == place


def _write(api: Any, role: dict[str, Any], rights: list[Right]) -> None:
    plural, namespace = f"{role['kind'].lower()}s", role["metadata"].get("namespace", "")
    api.update(plural, {**api.get(plural, "winready", namespace), "rules": rules(rights)})
