"""Long lists for people: folded without a name lost, and never into something that was not there."""

from __future__ import annotations

import msgspec
import pytest

from report import samples
from winready.engine.workloads import Step
from winready.report.folding import folded, kind, ranges
from winready.report.html import page

THOUSAND = [f"windows-{number}" for number in range(1, 1001)]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (THOUSAND, "windows-1 to windows-1000"),
        ([name for name in THOUSAND if name != "windows-4"], "windows-1 to windows-3, windows-5 to windows-1000"),
        (["win000009", "win000010", "win000011"], "win000009 to win000011"),
        (["w-10", "w-2", "w-1"], "w-1, w-2, w-10"),
        (["ip-10-1-2-3.ec2", "ip-10-1-2-4.ec2"], "ip-10-1-2-3.ec2, ip-10-1-2-4.ec2"),
        ([f"ip-10-1-2-{last}.ec2" for last in (3, 4, 5)], "ip-10-1-2-3.ec2 to ip-10-1-2-5.ec2"),
        ([f"{letter}lpha" for letter in "abcdefghijkl"], ", ".join(f"{x}lpha" for x in "abcdefghij") + ", 2 more"),
        ([f"w-{'9' * 5000}", "w-2"], f"w-2, w-{'9' * 5000}"),
        ([], ""),
    ],
)  # fmt: skip
def test_neighbours_are_a_range_and_the_rest_is_counted(names: list[str], told: str) -> None:
    assert ranges(names) == told


def test_an_enumeration_inside_a_sentence_is_folded_and_nothing_else() -> None:
    names = set(THOUSAND)
    every = ", ".join(THOUSAND)
    assert folded(f"shown on {every}", names) == "shown on windows-1 to windows-1000"
    sentence = f"shown on {every}; not on linux-1: slow, late"
    assert folded(sentence, names) == "shown on windows-1 to windows-1000; not on linux-1: slow, late"
    other = ", ".join("abcdefghijklmnop")
    assert folded(other, names) == other
    assert folded(every, set()) == every


@pytest.mark.parametrize(
    ("title", "asked"),
    [
        ("wc-2 reaches Linux pod ls-17", "wc-* reaches Linux pod ls-*"),
        ("ns-1 works with the network of node windows-9.", "ns-* works with the network of node *."),
        ("ten-5f4c8ccbcf-4k2cl answers at 10.244.1.2:8080", "ten-* answers at *"),
        ("lc-1 reaches the pod of reschedule 12", "lc-* reaches the pod of reschedule *"),
        ("a file of 1.5 MB in C:\\share\\a.txt", "a file of 1.5 MB in C:\\share\\a.txt"),
    ],
)
def test_titles_are_of_a_kind_when_they_differ_in_whom_they_ask(title: str, asked: str) -> None:
    assert kind(title, set(THOUSAND)) == asked


def test_what_workloads_met_on_a_thousand_nodes_is_told_once_the_worst_first() -> None:
    steps = [Step(node=name, reached="ready", outcome="passed", reason="it is ready") for name in THOUSAND[1:]]
    steps.append(Step(node=THOUSAND[0], reached="pulled", outcome="failed", reason="no room"))
    workload = msgspec.structs.replace(samples.workload("web"), tried=steps)
    text = page.render(samples.make_record(ids=samples.CORE[:1], workloads=[workload]))
    assert text.index("no room") < text.index("windows-2 to windows-1000")
    assert text.count("it is ready") == 1
