"""What the results say: the page in the documentation, and conformance as a JUnit file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from fidelity_specs import (
    LINUX_ONLY,
    LINUX_REASONS,
    LINUX_ROUNDS,
    NEVER_RUN,
    REASONS,
    ROUNDS,
    STEERED_ROUNDS,
    conformance,
    explained,
)
from fidelity_state import Measured, State

Group = Literal["windows", "generic"]
NOT_MEASURED, UNEXPLAINED = "not measured", "unexplained: "
STEERED = {name for name, each in ROUNDS.items() if each.steered}
ITSELF = "upstream skips it on Windows"

PAGE = """\
# How far the sandbox is like Windows

The sandbox's nodes are a model. Here they are judged by tests that we did not write: Kubernetes' own `e2e.test`, run
against them under a real control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler). The nodes
behave by what is known of Windows and Linux, never by recognising a test.

Measured {date} by `make fidelity`, with Kubernetes and e2e.test {version}. Windows nodes: {nodes}.

- **{linux_good} of {linux_all}** conformance specs pass on Linux nodes.
- **{steered_good} of {steered_all}** conformance specs that Windows can run pass there.
- **{windows_good} of {windows_all}** specs of `[sig-windows]` pass.
- **{generic_good} of {generic_all}** generic specs pass that [the upstream engine](upstream.md) uses. They were written
  for any cluster; their pods are sent to Windows nodes for the time of the run, and the table says where they ran.

What passes here shows that the model does what upstream expects of a node, not that a machine does; the Internet that
some specs ask for is simulated as well. Outcomes are measured each time; the reasons are ours. This page is made by
`tools/fidelity.py`; change that, not the page. It takes hours; a run that is ended goes on where it was
(`--state FILE`), several machines can share the work (`--shard 1/3`), and CI repeats a few of the specs that pass here,
others each day (`tests/real/test_conformance.py`).

## Conformance

All conformance specs on a cluster of Linux nodes, and those that are not `[LinuxOnly]` on a hybrid one whose pods are
sent to Windows unless they say where they belong. "API" counts those in whose namespaces no pod was seen: most of them
judge the real control plane, not the model. A spec whose pods all ran on Linux does not pass for Windows.

{conformance}

### Not passed on Linux nodes

{linux_rest}

### Not passed on Windows nodes

{steered_rest}

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
| conformance and generic ones | {steered} |
| `[Feature:IPv6DualStack]` | {dual_stack} |
| container command path validation | {containerd_1_6} |
| HyperV containers | {hyper_v} |
| `[Disruptive]` of SIG Windows | {shutdown} |
| conformance on Linux | {linux} |
"""


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    text: str
    outcome: str
    where: str = ""
    why: str = ""
    unexplained: bool = False
    api: bool = False
    """Passed, and no pod was seen."""
    seconds: float = 0.0


@dataclass
class Use:
    """How a command was used."""

    options: set[str] = field(default_factory=set)
    specs: set[str] = field(default_factory=set)


def row(result: Measured, reasons: Mapping[str, str]) -> Row:
    """What a result says in a table."""
    systems = sorted(result.systems.items(), reverse=True)
    where = ", ".join(f"{count} on {os}" for os, count in systems)
    reason = explained(reasons, result.text)
    if result.passed:
        if result.round in STEERED and result.systems and "windows" not in result.systems:
            return Row(result.text, "passed on Linux only", where, reason, not reason)
        stale = "it passes: take its reason out of tools/fidelity_specs.py" if reason else ""
        api = not result.systems
        return Row(result.text, "passed", where, stale, bool(stale), api, result.seconds)
    if result.status == "skipped" and not reason and conformance(result.text) and result.round in STEERED:
        return Row(result.text, ITSELF, where, result.said[:300])
    why = reason or f"{UNEXPLAINED}{result.said[:300]}"
    return Row(result.text, result.status, where, why, not reason)


def rows(state: State, texts: Iterable[str], rounds: Iterable[str], reasons: Mapping[str, str]) -> list[Row]:
    """The lines for these specs, in whichever of the rounds they ran; those without a result say so."""
    found = []
    for text in texts:
        results = [state.results[name, text] for name in rounds if (name, text) in state.results]
        if results:
            found.append(row(results[-1], reasons))
        elif reason := explained(NEVER_RUN, text):
            found.append(Row(text, "not run", "", reason))
        else:
            found.append(Row(text, NOT_MEASURED, unexplained=True))
    return sorted(found, key=lambda item: item.text)


def table(lines: Iterable[Row]) -> list[str]:
    """The rows in Markdown."""
    told = ["| spec | outcome | pods | why not |", "|---|---|---|---|"]
    for each in lines:
        text = re.sub(r"\[sig-windows\] ?(\[Feature:Windows\] )?", "", each.text)
        mark = each.outcome if each.outcome == "passed" else f"**{each.outcome}**"
        told.append(f"| {_cell(text)} | {mark} | {each.where} | {_cell(each.why)} |")
    return told


def rest(lines: Iterable[Row]) -> list[str]:
    """Those that did not pass, in Markdown."""
    left = [each for each in lines if each.outcome != "passed"]
    told = ["| spec | outcome | why not |", "|---|---|---|"]
    told += [f"| {_cell(each.text)} | {each.outcome} | {_cell(each.why)} |" for each in left]
    return told if left else ["All of them pass."]


def counts(linux: list[Row], steered: list[Row]) -> list[str]:
    """How many pass, by SIG."""
    told = ["| | Linux: passed | of | API | Windows: passed | of | API |", "|---|---|---|---|---|---|---|"]
    sigs = sorted({_sig(each.text) for each in linux})
    for name in [*sigs, "all"]:
        cells = []
        for lines in (linux, [each for each in steered if each.outcome != ITSELF]):
            mine = [each for each in lines if name in ("all", _sig(each.text))]
            good = [each for each in mine if each.outcome == "passed"]
            cells += [str(len(good)), str(len(mine)), str(sum(each.api for each in good))]
        told.append(f"| {name} | {' | '.join(cells)} |")
    return told


def _sig(text: str) -> str:
    return text.partition("]")[0].removeprefix("[")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def uses(state: State) -> dict[str, Use]:
    """Every command that specs executed."""
    found: dict[str, Use] = {}
    for result in state.results.values():
        for command, options in result.uses.items():
            use = found.setdefault(command, Use())
            use.options.update(options)
            use.specs.add(result.text)
    return found


def use_table(found: Mapping[str, Use]) -> list[str]:
    """The commands in Markdown."""
    lines = ["| command | options | specs |", "|---|---|---|"]
    for command, use in sorted(found.items()):
        options = " ".join(f"`{option}`" for option in sorted(use.options))
        example, more = _cell(sorted(use.specs)[0]), len(use.specs) - 1
        lines.append(f"| `{command}` | {options} | {example}{f', and {more} more' if more else ''} |")
    return lines


@dataclass(frozen=True)
class Judgement:
    """All tables."""

    linux: list[Row]
    steered: list[Row]
    windows: list[Row]
    generic: list[Row]

    @property
    def unexplained(self) -> list[Row]:
        """What must not stay so."""
        everything = [*self.linux, *self.steered, *self.windows, *self.generic]
        return [each for each in dict.fromkeys(everything) if each.unexplained]


def judgement(state: State, texts: Iterable[str], generic: set[str]) -> Judgement:
    """What the results say about all specs of a listing."""
    everything = list(texts)
    conforming = [text for text in everything if conformance(text)]
    return Judgement(
        rows(state, conforming, LINUX_ROUNDS, LINUX_REASONS),
        rows(state, (text for text in conforming if LINUX_ONLY not in text), STEERED_ROUNDS, REASONS),
        rows(state, (text for text in everything if text.startswith("[sig-windows]")), _others(), REASONS),
        rows(state, (text for text in everything if text in generic), _others(), REASONS),
    )


def _others() -> list[str]:
    return [name for name in ROUNDS if name not in LINUX_ROUNDS]


def page(state: State, judged: Judgement) -> str:
    """The whole document."""
    dates = sorted({result.at.partition(" ")[0] for result in state.results.values()})
    versions = sorted({about.version for about in state.about.values()})
    nodes = sorted({node for name, about in state.about.items() if name in _others() for node in about.nodes})
    able = [each for each in judged.steered if each.outcome != ITSELF]
    return PAGE.format(
        date=" to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "never",
        version=", ".join(versions),
        nodes="; ".join(nodes),
        linux_good=_good(judged.linux),
        linux_all=len(judged.linux),
        steered_good=_good(able),
        steered_all=len(able),
        windows_good=_good(judged.windows),
        windows_all=len(judged.windows),
        generic_good=_good(judged.generic),
        generic_all=len(judged.generic),
        conformance="\n".join(counts(judged.linux, judged.steered)),
        linux_rest="\n".join(rest(judged.linux)),
        steered_rest="\n".join(rest(judged.steered)),
        windows="\n".join(table(judged.windows)),
        generic="\n".join(table(judged.generic)),
        executed="\n".join(use_table(uses(state))),
        **{name.replace("-", "_").replace(".", "_"): each.about for name, each in ROUNDS.items()},
    )


def _good(lines: Iterable[Row]) -> int:
    return sum(each.outcome == "passed" for each in lines)


def junit(lines: Iterable[Row]) -> str:
    """Rows as a JUnit file, as a runner of conformance would have left it; what was not measured is not in it."""
    told = []
    for each in lines:
        if each.outcome == NOT_MEASURED:
            continue
        why = each.why.removeprefix(UNEXPLAINED)
        inside = "" if each.outcome == "passed" else f"<failure>{escape(why)}</failure>"
        head = f'<testcase name={quoteattr(each.text)} time="{each.seconds:.0f}"'
        told.append(f"{head}>{inside}</testcase>" if inside else f"{head}/>")
    return "\n".join(["<testsuite>", *told, "</testsuite>", ""])
