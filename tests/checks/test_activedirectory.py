"""Extend.ActiveDirectory on a sandbox with a domain, on clusters without one, and where something is in the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import pytest

from checks.test_hostprocess import results, told
from engine.conftest import _enter
from engine.stage import Listener, Played, Stage
from winready.checks.registry import load_checks
from winready.checks.rights import rights_to_grant
from winready.cluster.client import Client
from winready.cluster.directory import ActiveDirectory
from winready.cluster.kubeconfig import Target
from winready.cluster.rights import manifest
from winready.cluster.settings import Settings
from winready.engine.facts import gather
from winready.engine.options import Carried, Options
from winready.engine.run import Run
from winready.engine.selection import Selection
from winready.proof.furnishing import own_domain
from winready.report.folders import new_run_id
from winready.report.following import follow
from winready.spec.loader import load_standard
from winready_sandbox import directory
from winready_sandbox.api.identity import AUTHENTICATED, User
from winready_sandbox.machine.domain import CredentialSpec
from winready_sandbox.machine.files import OPEN_ACL
from winready_sandbox.machine.process import Process, Program
from winready_sandbox.machine.tree import File
from winready_sandbox.network.addresses import NoAddressLeft
from winready_sandbox.plan import Plan
from winready_sandbox.programs.windows.membership import nltest
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop
from winready_sandbox.wire import WireConnector

GMSA = ("A1", "A2", "A3")
OWN = own_domain({"active_directory": True})
assert OWN is not None
GIVEN: ActiveDirectory = OWN


@pytest.fixture(scope="module")
def joined() -> Iterator[Stage]:
    """A cluster whose pods may log on to a domain."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        sandbox = Sandbox(Plan(name="joined", active_directory=True))
        runner.run(_enter(sandbox))
        yield Stage(runner, sandbox)
        runner.run(sandbox.__aexit__(None, None, None))


@pytest.fixture
def stage(joined: Stage) -> Iterator[Stage]:
    """The same, for one test, which leaves cluster and shares as it found them."""
    yield joined
    assert joined.left() == []
    assert [name for share in joined.sandbox.domain.shares.values() for name, _ in share.root.items()] == []


def given(**changes: str | None) -> ActiveDirectory:
    return msgspec.structs.replace(GIVEN, **changes)


@contextmanager
def broken(stage: Stage, fault: str) -> Iterator[None]:
    stage.do(lambda _: stage.sandbox.break_fault(fault))
    try:
        yield
    finally:
        stage.do(lambda _: stage.sandbox.heal_fault())


def put(stage: Stage, resource: str, obj: dict[str, Any]) -> None:
    stage.sandbox.embedded.client.create(resource, obj)


def take(stage: Stage, resource: str, name: str) -> None:
    stage.sandbox.embedded.client.delete(resource, name)


def test_all_pass_with_evidence_and_leave_nothing_on_the_share(stage: Stage) -> None:
    played = stage.play(*GMSA, "A4", directory=GIVEN)
    found = results(played)
    assert {result.outcome for result in found.values()} == {"passed"}, [r.reason for r in found.values()]
    assert not played.record.leftovers
    access = found["gmsa-access"]
    assert access.evidence.facts["a pod whose service account was given nothing"] == "refused"
    for number in (1, 2):
        tickets = access.evidence.facts[f"Kerberos tickets of container second of member-{number}"]
        assert tickets == ["webapp@SANDBOX.TEST"]
        assert access.evidence.facts[f"local user of member-{number}"] == "user manager\\containeradministrator"
        assert (
            f"container main of member-{number} goes on: it is logged on to sandbox.test and lists "
            "\\\\10.250.0.254\\webapp: 28 of 28 accesses worked"
        ) in told(access)
        assert "it writes to \\\\10.250.0.254\\webapp and reads what it wrote: 20 of 20 accesses worked" in told(
            found["storage"]
        )
        assert f"container second of member-{number} is logged on to sandbox.test" in told(access)
        assert f"member-{number} is refused by \\\\10.250.0.254\\finance: Access is denied." in told(access)
        assert f"member-{number} writes to C:\\webapp of the node in its container second" in told(found["storage"])
        assert f"control: twin-{number} connects to 10.250.0.254:445" in told(found["denied-without"])
    assert "member-1 reads what member-2 on node windows-2 wrote to the share" in told(found["storage"])
    users = found["run-as-user"]
    assert "container main of user-1 runs as ContainerUser" in told(users)
    assert "the token of a command in it: containeradministrator, its own process: ContainerAdm" in told(users)
    facts = users.evidence.facts
    assert facts["nobody-1 on windows-1, which asks for a user that is not there"] == "FailedCreatePodSandBox"
    assert facts["nobody-inside-2 on windows-2, which asks for a user that is not there"] == "StartError"
    assert played.record.windows_pods_started == 2 * (1 + 2 + 5), "a client, a pair, and one for each user"


def test_a_network_that_cannot_be_made_is_not_taken_for_the_refusal_of_a_user(stage: Stage) -> None:
    pool = stage.sandbox.fabric.nodes["windows-1"].pools[0]
    taken = []
    with suppress(NoAddressLeft):
        while True:
            taken.append(pool.take())
    # For the client and the pods of users who exist, which come first.
    for _ in range(4):
        pool.release(taken.pop())
    kubelet = stage.sandbox.fleet.kubelets["windows-1"]
    slots, kubelet.start_slots = kubelet.start_slots, asyncio.Semaphore(1)
    try:
        with broken(stage, "runtime.windows.unknown-user-runs"):
            users = results(stage.play("A4"))["run-as-user"]
    finally:
        kubelet.start_slots = slots
        for address in taken:
            pool.release(address)
    assert users.outcome == "blocked", users.reason
    assert "on node windows-1 neither runs nor is refused because of its user" in users.reason
    assert "failed to allocate address" in users.reason


def test_a_refusal_in_another_language_is_told_by_a_pod_beside_it(stage: Stage) -> None:
    machine = stage.sandbox.fleet.kubelets["windows-2"].machine
    before, machine.logon_failure = machine.logon_failure, "Der Benutzername oder das Kennwort ist falsch."
    try:
        users = results(stage.play("A4"))["run-as-user"]
    finally:
        machine.logon_failure = before
    assert users.outcome == "passed", users.reason
    told_of = users.evidence.facts["nobody-2 on windows-2, which asks for a user that is not there"]
    assert told_of == "FailedCreatePodSandBox, while pods of a user who exists start"


def test_without_a_domain_it_does_not_apply_and_says_what_would_help(stage: Stage) -> None:
    found = results(stage.play(*GMSA, "A4"))
    assert found.pop("run-as-user").outcome == "passed", "it needs no domain"
    for result in found.values():
        assert result.outcome == "not-applicable"
        assert "--active-directory FILE" in result.reason


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (given(credential_spec="webap"), "GMSACredentialSpec webap does not exist; the cluster has webapp"),
        (given(domain="corp.test"), "GMSACredentialSpec webapp is of domain sandbox.test, and not of corp.test"),
        (given(denied_credential_spec="backup"), "GMSACredentialSpec backup does not exist"),
    ],
)
def test_a_file_that_does_not_fit_the_cluster_blocks(stage: Stage, file: ActiveDirectory, says: str) -> None:
    for result in results(stage.play(*GMSA, directory=file)).values():
        assert result.outcome == "blocked"
        assert says in result.reason
        assert "--active-directory" in result.next_step


def test_a_share_that_is_not_there_is_not_taken_for_a_refusal(stage: Stage) -> None:
    found = results(stage.play(*GMSA, directory=given(denied_share="\\\\10.250.0.254\\finanze")))
    assert found["gmsa-access"].outcome == "blocked"
    assert "\\\\10.250.0.254\\finanze is not there for Windows pod member-" in found["gmsa-access"].reason
    assert {found["storage"].outcome, found["denied-without"].outcome} == {"passed"}


def test_a_share_that_does_not_answer_is_not_taken_for_a_refusal_either(stage: Stage) -> None:
    finance = stage.sandbox.domain.shares["finance"]
    finance.offline = True
    try:
        result = results(stage.play("A1", directory=GIVEN))["gmsa-access"]
    finally:
        finance.offline = False
    assert result.outcome == "blocked"
    assert "does not answer with a refusal for Windows pod member-" in result.reason
    assert "The specified network name is no longer available." in result.reason


@contextmanager
def program(stage: Stage, name: str, other: Program) -> Iterator[None]:
    """Windows nodes on which a program is another one."""
    machines = [each.machine for each in stage.sandbox.fleet.kubelets.values() if each.machine.os == "windows"]
    before = [machine.programs for machine in machines]
    for machine in machines:
        machine.programs = {**machine.programs, name: other}
    try:
        yield
    finally:
        for machine, programs in zip(machines, before, strict=True):
            machine.programs = programs


async def _missing(process: Process) -> int:
    process.err(f"'{process.argv[0]}' is not recognized as an internal or external command.\r\n")
    return 9009


async def _asks_only(process: Process) -> int:
    if process.argv[1].startswith("/sc_"):
        process.out("I_NetLogonControl failed: Status = 5 0x5 ERROR_ACCESS_DENIED\r\n")
        return 5
    return await nltest(process)


def test_containers_that_show_no_tickets_or_may_not_verify_their_channel_are_sound(stage: Stage) -> None:
    with program(stage, "klist.exe", _missing):
        result = results(stage.play("A1", directory=GIVEN))["gmsa-access"]
    assert result.outcome == "passed", result.reason
    shown = result.evidence.facts["Kerberos tickets of container main of member-1"]
    assert shown.startswith("none shown: 'klist' is not recognized")
    with program(stage, "nltest.exe", _asks_only):
        result = results(stage.play("A1", directory=GIVEN))["gmsa-access"]
    assert result.outcome == "passed", result.reason
    assert "24 of 24 accesses worked" in told(result)


def test_what_a_pod_that_lost_its_account_wrote_is_deleted_by_another(stage: Stage) -> None:
    with broken(stage, "machine.windows.gmsa-lost-later"):
        played = stage.play(*GMSA, directory=GIVEN)
    found = results(played)
    assert [found[name].outcome for name in ("gmsa-access", "storage", "denied-without")] == [
        "failed",
        "failed",
        "blocked",
    ]
    assert "of Windows pod member-1 on node windows-1 no longer does what it did at first" in found["storage"].reason
    assert not played.record.leftovers


def test_a_server_that_is_not_reached_keeps_nobody_out(stage: Stage) -> None:
    elsewhere = given(allowed_share="\\\\10.250.0.253\\webapp", denied_share="\\\\10.250.0.253\\finance")
    found = results(stage.play(*GMSA, directory=elsewhere))
    assert found["gmsa-access"].outcome == "failed"
    assert found["denied-without"].outcome == "blocked"
    assert "does not reach 10.250.0.253:445" in found["denied-without"].reason


def test_a_folder_that_is_not_there_blocks_and_is_not_made(stage: Stage) -> None:
    for result in results(stage.play(*GMSA, directory=given(folder="C:\\missing"))).values():
        assert result.outcome == "blocked"
        assert "hostPath type check failed: C:\\missing is not a directory" in result.reason


def test_without_the_folder_the_share_alone_is_judged(stage: Stage) -> None:
    found = results(stage.play(*GMSA, directory=given(folder=None)))
    assert {result.outcome for result in found.values()} == {"passed"}
    assert "C:\\webapp" not in told(found["storage"])


def test_a_folder_of_its_own_for_each_pod_is_not_taken_for_a_lack_of_permissions(stage: Stage) -> None:
    with broken(stage, "volumes.windows.hostpath-not-persistent"):
        result = results(stage.play("A3", directory=GIVEN))["denied-without"]
    assert result.outcome == "blocked"
    assert (
        "twin-1 on node windows-1 finds another folder at C:\\webapp of node windows-1 than member-1" in result.reason
    )


def test_a_folder_that_everybody_may_use_is_a_finding(stage: Stage) -> None:
    folder = stage.sandbox.fleet.kubelets["windows-2"].machine.files.node(directory.FOLDER)
    before, folder.acl = folder.acl, OPEN_ACL
    try:
        found = results(stage.play("A2", "A3", directory=GIVEN))
    finally:
        folder.acl = before
    assert found["storage"].outcome == "passed"
    assert found["denied-without"].outcome == "failed"
    assert (
        "all the same lists, reads a file of, writes to C:\\webapp of node windows-2" in found["denied-without"].reason
    )


def test_another_account_is_refused_instead_of_another_share(stage: Stage) -> None:
    contents = CredentialSpec("sandbox.test", "SANDBOX", "backup").contents()
    put(stage, "gmsacredentialspecs", {"metadata": {"name": "backup"}, "credspec": contents})
    other = given(denied_share=None, denied_credential_spec="backup")
    try:
        result = results(stage.play("A1", directory=other))["gmsa-access"]
        assert result.outcome == "passed", result.reason
        assert "stranger-2 is refused by \\\\10.250.0.254\\webapp: Access is denied." in told(result)
        with broken(stage, "domain.lets-members-in"):
            result = results(stage.play("A1", directory=other))["gmsa-access"]
        assert result.outcome == "failed"
        assert "Windows pod stranger-1 on node windows-1 gets into \\\\10.250.0.254\\webapp" in result.reason
    finally:
        take(stage, "gmsacredentialspecs", "backup")


def test_what_others_keep_on_a_share_is_not_told(stage: Stage) -> None:
    roots = [share.root for share in stage.sandbox.domain.shares.values()]
    for root in roots:
        root.put("salaries-2026.xlsx", File(b"x"))
    try:
        with broken(stage, "domain.lets-everybody-in"):
            played = stage.play(*GMSA, directory=GIVEN)
    finally:
        for root in roots:
            root.drop("salaries-2026.xlsx")
    found = results(played)
    assert [found[name].outcome for name in ("gmsa-access", "storage", "denied-without")] == [
        "failed",
        "passed",
        "failed",
    ]
    assert "salaries" not in str(played.told)
    assert "lists, reads a file of, writes to \\\\10.250.0.254\\webapp" in found["denied-without"].reason


def test_a_webhook_that_does_not_act_is_named_and_so_is_one_that_is_away(stage: Stage) -> None:
    with broken(stage, "admission.gmsa-not-filled-in"):
        found = results(stage.play(*GMSA, directory=GIVEN))
    for result in found.values():
        assert result.outcome == "blocked"
        assert "nobody fills in credential spec webapp" in result.reason
        assert "windows-gmsa" in result.next_step
    services = stage.sandbox.embedded.reviewers.services
    before = dict(services)
    services.clear()
    try:
        found = results(stage.play("A1", "A4", directory=GIVEN))
    finally:
        services.update(before)
    for result in found.values():
        assert result.outcome == "blocked"
        assert "admission-webhook.windows-gmsa.sigs.k8s.io, which does not answer" in result.reason


def test_a_spec_that_every_account_may_use_is_no_finding(stage: Stage) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": directory.ROLE}
    group = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccounts"}
    put(stage, "clusterrolebindings", {"metadata": {"name": "all"}, "roleRef": role, "subjects": [group]})
    try:
        result = results(stage.play("A1", directory=GIVEN))["gmsa-access"]
    finally:
        take(stage, "clusterrolebindings", "all")
    assert result.outcome == "passed", result.reason
    assert result.evidence.facts["a pod whose service account was given nothing"] == "allowed"


def play_as(stage: Stage, file: ActiveDirectory, *, granted: ActiveDirectory | None, without: str = "-") -> Played:
    """The run of somebody with the rights that ``winready rbac`` prints, with or without those for a domain.

    ``without``: but for those on one resource, unless they name objects of it.
    """
    user = User("operator", (AUTHENTICATED,))
    plane = stage.sandbox.embedded
    rights = rights_to_grant(load_checks(), Settings(run_id="rights", active_directory=granted))
    objects = manifest("winready", "winready", user.name, rights)
    for obj in objects:
        if "rules" in obj:
            kept = [rule for rule in obj["rules"] if without not in rule["resources"] or "resourceNames" in rule]
            obj = {**obj, "rules": kept}
        plane.client.create(f"{obj['kind'].lower()}s", obj)
    settings, listener = Settings(run_id=new_run_id(), active_directory=file), Listener("the stage")
    options = Options(settings=settings, selection=Selection(requirements=list(GMSA)))

    async def story(_: Client) -> Played:
        target = Target(plane.url, token=plane.token(user))
        async with Client.connect(target, WireConnector(plane.inside)) as own:
            troubles = await follow(Run(own, load_standard(), options), Listener("the journal"), [listener])
        return Played(settings.run_id, listener.told, troubles, [])

    try:
        return stage.do(story)
    finally:
        for obj in objects:
            plane.client.delete(f"{obj['kind'].lower()}s", "winready")


@pytest.mark.parametrize("file", [GIVEN, given(cluster_role=directory.ROLE)], ids=["role", "cluster role"])
def test_the_rights_for_the_file_are_enough(stage: Stage, file: ActiveDirectory) -> None:
    found = results(play_as(stage, file, granted=file))
    assert {result.outcome for result in found.values()} == {"passed"}, [r.reason for r in found.values()]


@pytest.mark.parametrize("without", ["gmsacredentialspecs", "localsubjectaccessreviews"])
def test_what_may_not_be_looked_at_is_not_taken_for_missing(stage: Stage, without: str) -> None:
    found = results(play_as(stage, GIVEN, granted=GIVEN, without=without))
    assert {result.outcome for result in found.values()} == {"passed"}, [r.reason for r in found.values()]


def test_a_webhook_that_lets_everybody_in_is_not_passed_by_who_may_not_ask_about_it(stage: Stage) -> None:
    with broken(stage, "admission.gmsa-for-any-account"):
        found = results(play_as(stage, GIVEN, granted=GIVEN, without="localsubjectaccessreviews"))
    assert found["gmsa-access"].outcome == "blocked"
    assert "/default, which was given nothing, got credential spec webapp" in found["gmsa-access"].reason
    assert "winready rbac --active-directory FILE" in found["gmsa-access"].next_step
    assert {found["storage"].outcome, found["denied-without"].outcome} == {"passed"}


@pytest.mark.parametrize(
    "granted", [None, given(credential_spec="another")], ids=["none", "those for another credential spec"]
)
def test_without_them_it_is_blocked_and_says_so(stage: Stage, granted: ActiveDirectory | None) -> None:
    for result in results(play_as(stage, GIVEN, granted=granted)).values():
        assert result.outcome == "blocked"
        assert "is not authorized to `use` GMSA cred spec" in result.reason
        assert "winready could not let it" in result.reason
        assert "winready rbac --active-directory FILE" in result.next_step


def test_a_pod_that_does_not_start_with_an_account_is_a_finding(stage: Stage) -> None:
    api = stage.sandbox.embedded.client
    before = api.get("gmsacredentialspecs", "webapp")["credspec"]
    nameless = {**before, "DomainJoinConfig": {**before["DomainJoinConfig"], "DnsName": None}}
    api.patch("gmsacredentialspecs", "webapp", {"credspec": nameless})
    try:
        found = results(stage.play(*GMSA, directory=GIVEN))
    finally:
        api.patch("gmsacredentialspecs", "webapp", {"credspec": before})
    assert [found[name].outcome for name in ("gmsa-access", "storage", "denied-without")] == [
        "failed",
        "failed",
        "blocked",
    ]
    assert "does not start on node windows-1, where twin-1 without one runs" in found["gmsa-access"].reason


def test_a_cluster_without_credential_specs_is_blocked_by_a_file(staged: Any) -> None:
    found = results(staged().play(*GMSA, directory=GIVEN))
    for result in found.values():
        assert result.outcome == "blocked"
        assert "the cluster has no gMSA credential specs" in result.reason
        assert "install the gMSA webhook" in result.next_step


def test_what_did_not_apply_is_judged_when_a_resumed_run_names_the_domain(stage: Stage) -> None:
    earlier = stage.play("A1", "A4")
    assert earlier.results["extend.activedirectory.gmsa-access"].outcome == "not-applicable"
    assert earlier.record.cluster is not None
    facts = gather(earlier.told)
    carried = Carried(
        tuple(earlier.record.requirements),
        tuple(node.uid for node in earlier.record.cluster.nodes),
        frozenset(facts.judged_nodes),
        facts.sights,
    )
    again = stage.play("A1", "A4", directory=GIVEN, carried=carried)
    assert {result.outcome for result in again.results.values()} == {"passed"}
    assert again.record.windows_pods_started == 2 * 2, "only what was not judged before"


def test_the_record_names_the_domain_and_no_contents_of_credential_specs(stage: Stage) -> None:
    played = stage.play("A1", directory=GIVEN)
    assert played.record.settings["active_directory"] == "sandbox.test"
    whole = json.dumps(msgspec.to_builtins(played.record)) + str(played.told)
    assert "S-1-5-21" not in whole
    assert "244818ae" not in whole
