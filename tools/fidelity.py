#!/usr/bin/env python3
"""Let Kubernetes' own e2e.test judge the simulated nodes, and write down what it says of each of its tests.

The nodes run under a real control plane. All ``[sig-windows]`` specs are run, and the generic specs that our mapping
uses, steered to Windows. Outcomes are measured, always; reasons for what does not pass are kept here, by spec. A spec
that does not pass for no known reason makes the exit code 1, and so does a reason that is no longer needed. What the
specs execute in containers is recorded: the simulated programs need a reason to be there, and this is one.

    fidelity.py --output docs/sandbox-fidelity.md        the whole table, in about half an hour
    fidelity.py --only 'HostProcess'                     a part of it, on the terminal
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from real_programs import BuildError, ensure
from winready.cluster import steering
from winready.cluster.client import Client
from winready.cluster.inventory import Node, take_inventory
from winready.cluster.kubeconfig import find_target
from winready.cluster.settings import Settings
from winready.upstream.binary import Binary, inspect, list_specs
from winready.upstream.listing import Listing, key
from winready.upstream.mapping import load_mapping
from winready.upstream.shards import Selected
from winready.upstream.suite import Order, Result, Suite
from winready_sandbox.daemon import start
from winready_sandbox.plan import Plan
from winready_sandbox.programs import record
from winready_sandbox.state import Place, ask, stop

PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "e2e.test"]
SETTLE_SECONDS = 310.0
STEER_SECONDS = 60.0
RUN_ID = "fidelity"
Group = Literal["windows", "generic"]


@dataclass(frozen=True)
class Round:
    """One sandbox and what is different about it."""

    name: str
    about: str
    options: dict[str, Any] = field(default_factory=dict)
    steered: bool = False
    parallel: int = 3


ROUNDS = {
    each.name: each
    for each in (
        Round("pinned", "two Linux and two Windows nodes"),
        Round("steered", "the same; pods that name no operating system are sent to Windows", steered=True),
        Round("dual-stack", "nodes, pods and services with IPv6 as well, steered", {"dual_stack": True}, steered=True),
        Round("containerd-1.6", "nodes with containerd 1.6.33", {"containerd": "1.6.33"}),
        Round("hyper-v", "nodes with Hyper-V, and a RuntimeClass for it", {"hyper_v": True}),
        # Grace periods of a few seconds must be long enough for a test that looks once a second.
        Round(
            "shutdown",
            "nodes with graceful shutdown: 20 s, the last 10 for critical pods",
            {"shutdown_grace": 20.0, "shutdown_grace_critical": 10.0, "speed": 2.0},
        ),
    )
}
SPEED = 5.0
"""Half a second for a probe of one second: on a busy machine less would not do."""

ELSEWHERE = {
    "HostProcess containers container command path validation": "containerd-1.6",
    "HyperV containers should start a hyperv isolated container": "hyper-v",
}
"""Specs that want a node of a certain kind, by a part of their text."""

NO_DOMAIN = (
    "needs a node in the Active Directory domain k8sgmsa.lan (label `agentpool=windowsgmsa`), and a download to install"
    " the gMSA webhook"
)
REASONS = {
    "GMSA Full GMSA support works end to end": NO_DOMAIN,
    "GMSA Full GMSA support can read and write file to remote SMB folder": NO_DOMAIN,
    "RebootHost containers should run as a reboot process on the host/node": (
        "upstream skips it unconditionally since 1.35; `core.storage.reboot-recovery` is our own check for it"
    ),
    "Networking Granular Checks: Services should function for service endpoints using hostNetwork": (
        "its HostProcess pods start `/agnhost`, which has no `.exe` and does not start through `cmd /c`; upstream's CI"
        " installs a webhook that rewrites the command"
    ),
    "SSH should SSH to all nodes and run commands": "needs a cloud provider and an SSH key",
}
"""Why specs do not pass here, by a part of their text without tags."""
NEVER_RUN = {
    "Device Plugin should be able to create a functioning device plugin for Windows": (
        "needs a DirectX GPU and its device plugin; not run, since it waits for one for five hours"
    ),
}


PAGE = """\
# How far the sandbox is like Windows

The sandbox's nodes are a model. Here they are judged by tests that we did not write: Kubernetes' own `e2e.test`, run
against them under a real control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler). The nodes
behave by what is known of Windows, never by recognising a test.

Measured on {date} by `make fidelity`, with Kubernetes and e2e.test {version}. Windows nodes: {nodes}.

- **{windows_good} of {windows_all}** specs of `[sig-windows]` pass.
- **{generic_good} of {generic_all}** generic specs pass that [the upstream engine](upstream.md) uses. They were written
  for any cluster; their pods are sent to Windows nodes for the time of the run, and the table says where they ran.

What passes here shows that the model does what upstream expects of Windows, not that a Windows machine does; the
Internet that some specs ask for is simulated as well. Outcomes are measured each time; the reasons are ours. This page
is made by `tools/fidelity.py`; change that, not the page.

## SIG Windows' own specs

{windows}

## Generic specs, steered to Windows

{generic}

## Active Directory

The domain is simulated: controller, accounts and shares are a model, and nobody speaks Kerberos. So is the webhook that
admits pods to it, but `make test-gmsa` puts the real one (v0.13.0) with its custom resource before a real API server:
simulated nodes give containers the identity that it wrote into their pods, and the model must answer as it does, code
by code and word by word. The project does not build that program: the command names the place where it looks for it,
and CI names it when it is not there.

## What they execute

Everything that the specs' containers executed, with the options that it was given. The simulated programs can do this,
what our own checks execute and what the briefs of checks to come name, and little else. Among it is the question with
which winready makes every container say what it is (`cmd /c ver`, `uname -s`).

{executed}

## The clusters

| specs | cluster |
|---|---|
| most of SIG Windows | {pinned} |
| generic ones | {steered} |
| `[Feature:IPv6DualStack]` | {dual_stack} |
| container command path validation | {containerd_1_6} |
| HyperV containers | {hyper_v} |
| `[Disruptive]` | {shutdown} |
"""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    group: Group
    text: str
    outcome: str
    where: str = ""
    why: str = ""
    unexplained: bool = False


@dataclass
class Use:
    """How a command was used."""

    options: set[str] = field(default_factory=set)
    specs: set[str] = field(default_factory=set)


def note_uses(uses: dict[str, Use], lines: Iterable[str], results: Iterable[Result]) -> None:
    """Add what a sandbox recorded; what no spec's namespace executed is the cluster's own business."""
    owners = {pod.fact.namespace: result.text for result in results for pod in result.pods}
    for line in lines:
        seen = json.loads(line)
        if (text := owners.get(seen["namespace"])) is not None:
            use = uses.setdefault(f"{seen['kind']} {seen['name']}", Use())
            use.options.update(seen["options"])
            use.specs.add(text)


def use_table(uses: dict[str, Use]) -> list[str]:
    """The commands in Markdown."""
    lines = ["| command | options | specs |", "|---|---|---|"]
    for command, use in sorted(uses.items()):
        options = " ".join(f"`{option}`" for option in sorted(use.options))
        example, more = sorted(use.specs)[0].replace("|", "\\|"), len(use.specs) - 1
        lines.append(f"| `{command}` | {options} | {example}{f', and {more} more' if more else ''} |")
    return lines


def round_of(text: str, steered: bool) -> str:
    """The sandbox that a spec is run on."""
    for part, name in ELSEWHERE.items():
        if part in key(text):
            return name
    if "[Disruptive]" in text:
        return "shutdown"
    if "[Feature:IPv6DualStack]" in text:
        return "dual-stack"
    return "steered" if steered else "pinned"


def chosen(listing: Listing, binary: Binary, only: str) -> dict[str, list[Selected]]:
    """The specs by round: every one of sig-windows, and whatever else the mapping uses."""
    mapping = load_mapping()
    mapped = {test.text(binary.version): (name, test) for name, test in mapping.tests.items()}
    used = {name for coverage in mapping.requirements.values() for name in coverage.tests}
    rounds: dict[str, list[Selected]] = {name: [] for name in ROUNDS}
    for number, text in enumerate(listing.texts):
        name, test = mapped.get(text, ("", None))
        if not text.startswith("[sig-windows]") and name not in used:
            continue
        if not re.search(only, text) or explained(NEVER_RUN, text):
            continue
        steered = test is not None and test.placement == "steered"
        expected, alone = (test.expected_s, test.alone) if test is not None else (40.0, False)
        rounds[round_of(text, steered)].append(Selected(name or f"spec-{number}", text, expected, alone))
    return rounds


def explained(reasons: dict[str, str], text: str) -> str:
    """The known reason for a spec, if there is one."""
    plain = re.sub(r"\s*\[[^\]]*\]", "", key(text))
    return next((reason for part, reason in reasons.items() if part in plain), "")


@contextmanager
def sandbox(programs: Path, plan: Round) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A running sandbox of a round: its kubeconfig and its document."""
    name = f"fidelity-{plan.name.replace('.', '-')}"
    document = start(Plan(name=name, control_plane=str(programs), **{"speed": SPEED, **plan.options}))
    place = Place.of(name)
    try:
        ask(place, "settle", timeout=SETTLE_SECONDS)
        yield Path(document["kubeconfig"]), document
    finally:
        stop(place)


@asynccontextmanager
async def steer(client: Client, settings: Settings, wanted: bool) -> AsyncIterator[None]:
    """Send pods without an OS selector to Windows for the time of the block."""
    version = await steering.served_version(client) if wanted else None
    if not wanted:
        yield
        return
    if version is None:
        raise RuntimeError("this API server has no MutatingAdmissionPolicy; take Kubernetes 1.36 or newer")
    name = f"winready-{RUN_ID}"
    await steering.apply_policy(client, version, name, settings.labels(), [])
    try:
        namespace = await steering.probe_namespace(client, settings)
        if reason := await steering.wait_until_steered(client, namespace, seconds=STEER_SECONDS):
            raise RuntimeError(f"pods are not steered: {reason}")
        yield
    finally:
        await steering.delete_policy(client, version, name)


async def run_round(
    plan: Round, specs: list[Selected], binary: Binary, programs: Path, folder: Path
) -> tuple[dict[str, Result], list[Node]]:
    """Run the specs of a round, and give their results and the nodes that they ran on."""
    settings = Settings(RUN_ID)
    order = Order(
        binary=binary,
        specs=tuple(specs),
        folder=folder / plan.name,
        parallel=plan.parallel,
        extra=(f"--kubectl-path={programs / 'kubectl'}",),
    )

    def tell(spec: Selected, what: str) -> None:
        if what != "started":
            print(f"{what:<11} {spec.text}", flush=True)

    results: dict[str, Result] = {}

    async def finished(stage: dict[str, Result]) -> None:
        results.update(stage)

    with sandbox(programs, plan) as (kubeconfig, _):
        async with Client.connect(find_target(str(kubeconfig), None)) as client:
            nodes = (await take_inventory(client)).nodes
            suite = Suite(client, settings, {node.name: node for node in nodes}, order, asyncio.Event(), tell)
            async with steer(client, settings, plan.steered):
                await suite.run(finished)
    return results, nodes


def row(result: Result, steered: bool) -> Row:
    """What a result says in the table."""
    group: Group = "windows" if result.text.startswith("[sig-windows]") else "generic"
    systems = Counter(pod.fact.os for pod in result.pods)
    where = ", ".join(f"{count} on {os}" for os, count in sorted(systems.items(), reverse=True))
    reason = explained(REASONS, result.text)
    if result.status == "passed":
        if steered and result.pods and not systems["windows"]:
            return Row(group, result.text, "passed on Linux only", where, reason, not reason)
        stale = "it passes: take its reason out of tools/fidelity.py" if reason else ""
        return Row(group, result.text, "passed", where, stale, bool(stale))
    said = next((line.strip() for line in result.message.splitlines() if line.strip()), "no message")
    return Row(group, result.text, result.status, where, reason or f"unexplained: {said[:300]}", not reason)


def table(rows: Iterable[Row]) -> list[str]:
    """The rows in Markdown."""
    lines = ["| spec | outcome | pods | why not |", "|---|---|---|---|"]
    for each in sorted(rows, key=lambda item: item.text):
        text = re.sub(r"\[sig-windows\] ?(\[Feature:Windows\] )?", "", each.text).replace("|", "\\|")
        mark = each.outcome if each.outcome == "passed" else f"**{each.outcome}**"
        lines.append(f"| {text} | {mark} | {each.where} | {each.why.replace('|', chr(92) + '|')} |")
    return lines


def page(rows: list[Row], binary: Binary, nodes: dict[str, list[Node]], uses: dict[str, Use]) -> str:
    """The whole document."""
    windows = [each for each in rows if each.group == "windows"]
    generic = [each for each in rows if each.group == "generic"]
    good = {name: sum(row.outcome == "passed" for row in part) for name, part in (("w", windows), ("g", generic))}
    versions = sorted({f"{n.os_image} ({n.runtime})" for part in nodes.values() for n in part if n.windows})
    return PAGE.format(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        version=binary.full_version,
        nodes="; ".join(versions),
        windows_good=good["w"],
        windows_all=len(windows),
        generic_good=good["g"],
        generic_all=len(generic),
        windows="\n".join(table(windows)),
        generic="\n".join(table(generic)),
        executed="\n".join(use_table(uses)),
        **{name.replace("-", "_").replace(".", "_"): each.about for name, each in ROUNDS.items()},
    )


async def judge(
    programs: Path, only: str, folder: Path, uses: dict[str, Use]
) -> tuple[list[Row], Binary, dict[str, list[Node]]]:
    """Run everything, round by round, and note what it uses."""
    binary = await inspect(programs / "e2e.test")
    listing = await list_specs(binary)
    rows = [
        Row("windows", text, "not run", "", reason)
        for text in listing.texts
        if text.startswith("[sig-windows]") and re.search(only, text) and (reason := explained(NEVER_RUN, text))
    ]
    nodes: dict[str, list[Node]] = {}
    for name, specs in chosen(listing, binary, only).items():
        if specs:
            recorded = folder / f"{name}.jsonl"
            os.environ[record.VARIABLE] = str(recorded)
            results, nodes[name] = await run_round(ROUNDS[name], specs, binary, programs, folder)
            rows += [row(result, ROUNDS[name].steered) for result in results.values()]
            note_uses(uses, recorded.read_text(encoding="utf-8").splitlines(), results.values())
    return rows, binary, nodes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kubernetes", default="1.36.3", metavar="V", help="Kubernetes version, such as 1.36.3")
    parser.add_argument("--only", default="", metavar="REGEX", help="only specs whose text it matches")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the page here instead of to the terminal")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what e2e.test said in this folder")
    args = parser.parse_args()
    if args.only and args.output:
        parser.error("a part of the specs makes no page: leave --only or --output out")
    try:
        programs = ensure(args.kubernetes, PROGRAMS)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    # Whoever ends this ends its sandboxes, too.
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(130))
    with tempfile.TemporaryDirectory(prefix="fidelity-") as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        uses: dict[str, Use] = {}
        rows, binary, nodes = asyncio.run(judge(programs, args.only, folder, uses))
    text = page(rows, binary, nodes, uses)
    if args.output:
        args.output.write_text(text, encoding="utf-8")
    else:
        print(text)
    unexplained = [each for each in rows if each.unexplained]
    for each in unexplained:
        print(f"{each.outcome}: {each.text}\n    {each.why}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
