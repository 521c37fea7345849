"""How specs are spread over processes, what each process is told, and what is heard from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from winready.spec.versions import Version
from winready.upstream.flags import Invocation, arguments, focus
from winready.upstream.mapping import load_mapping
from winready.upstream.output import Follower, Seen
from winready.upstream.shards import Selected, at_once, split

SUITE = "Kubernetes e2e suite"


@pytest.mark.parametrize("minor", range(23, 38))
def test_a_focus_selects_each_mapped_spec_and_only_it(minor: int) -> None:
    texts = [text for test in load_mapping().tests.values() if (text := test.text(Version(1, minor)))]
    for text in texts:
        pattern = re.compile(focus([text]))
        assert [other for other in texts if pattern.search(f"{SUITE} {other}")] == [text]
        # Stray blanks survive in the texts of older versions.
        assert pattern.search(f"{SUITE} {text.replace(' ', '  ', 1)} ")
        assert not pattern.search(f"{SUITE} {text} more")
    every = re.compile(focus(texts))
    assert all(every.search(f"{SUITE} {text}") for text in texts)


def told(minor: int) -> list[str]:
    call = Invocation(Path("k"), Path("r"), ["[sig-a] b"], 90.4, non_blocking_taints=["winready.io/steer"])
    return arguments(call, Version(1, minor))


def test_flags_follow_the_version() -> None:
    first, modern, newest = told(23), told(28), told(36)
    assert "--ginkgo.noColor" in first
    assert "--feature-gates=WindowsHostProcessContainers=true" in first
    assert not any(flag.startswith("--ginkgo.timeout") for flag in first)
    assert "--ginkgo.no-color" in modern
    assert "--ginkgo.timeout=90s" in modern
    assert "--ginkgo.fail-on-empty" not in modern
    assert {"--ginkgo.fail-on-empty", "--ginkgo.silence-skips"} <= set(newest)
    assert "--feature-gates=WindowsHostProcessContainers=true" not in told(24)
    for flags in (first, modern, newest):
        assert "--node-os-distro=windows" in flags
        assert "--clean-start" not in " ".join(flags)
    assert "--non-blocking-taints=node-role.kubernetes.io/control-plane,winready.io/steer" in newest
    assert "node-role.kubernetes.io/master" in " ".join(told(24))


def test_serial_specs_run_after_the_others_and_disruptive_ones_alone() -> None:
    specs = [
        Selected("long", "[sig-a] long", 100),
        Selected("a", "[sig-a] a", 60),
        Selected("b", "[sig-a] b", 50),
        Selected("s", "[sig-a] s [Serial]", 10),
        Selected("t", "[sig-a] t", 10, alone=True),
        Selected("d", "[sig-a] d [Serial] [Disruptive]", 10),
    ]
    stages = split(specs, 2)
    names = [[[spec.name for spec in shard.specs] for shard in stage] for stage in stages]
    assert names == [[["long"], ["a", "b"]], [["s", "t"]], [["d"]]]
    assert split([], 4) == []
    assert len(split(specs[:1], 8)[0]) == 1
    assert all(shard.deadline > shard.expected for stage in stages for shard in stage)


def test_as_few_processes_as_end_with_the_longest_spec() -> None:
    specs = [Selected(f"s{n}", f"[sig-a] s{n}", n) for n in (20, 45, 120, 15, 50, 20, 45, 20, 60, 40)]
    for parallel, processes in ((8, 5), (5, 5), (4, 4), (2, 2), (1, 1)):
        (stage,) = split(specs, parallel)
        assert len(stage) == processes
        assert sorted(spec.name for shard in stage for spec in shard.specs) == sorted(spec.name for spec in specs)
        # The longest begins first, and where there is room nothing stands behind it.
        assert stage[0].specs[0].name == "s120"
        assert processes < 4 or len(stage[0].specs) == 1
        assert processes < 5 or max(shard.expected for shard in stage[1:]) <= 0.8 * 120


def test_specs_that_take_equally_long_do_not_wait_for_each_other() -> None:
    specs = [Selected(f"s{n}", f"[sig-a] s{n}") for n in range(6)]
    assert [len(shard.specs) for shard in split(specs, 8)[0]] == [1] * 6
    assert sorted(len(shard.specs) for shard in split(specs, 4)[0]) == [1, 1, 2, 2]


def test_small_clusters_get_fewer_processes() -> None:
    assert [at_once(nodes) for nodes in (0, 1, 2, 50)] == [4, 4, 8, 8]


NEW = """  I1116 e2e.go:109] Starting e2e run "aec0d621-129c-4c85-b7fd-e764f12fee5b" on Ginkgo node 1
------------------------------
[sig-a] one works [Serial] [sig-a, Serial]
/src/test/e2e/one.go:61
  STEP: Destroying namespace "one-2434" for this suite. @ 11/16/26 01:41:05.198
• [0.347 seconds]
------------------------------
SSSSSS
------------------------------
[sig-a] two works [sig-a]
/src/test/e2e/two.go:55
  I1116 util.go] Saw namespace "two-1", namespace "two-2"
• [FAILED] [0.409 seconds]
[sig-a] two works [It] does
/src/test/e2e/two.go:55
------------------------------
[sig-a] three works [sig-a]
/src/test/e2e/three.go:55
S [SKIPPED] [0.001 seconds]
------------------------------
[sig-a] four works [sig-a]
/src/test/e2e/four.go:5
"""
OLD = """------------------------------
[sig-a] one
  works [Serial]
  /src/test/e2e/one.go:61
[BeforeEach] [sig-a] one
•[SLOW TEST:28.314 seconds]
------------------------------
[sig-a] two
  works
  /src/test/e2e/two.go:61
• Failure [2.314 seconds]
------------------------------
[sig-a] three
  works
  /src/test/e2e/three.go:61
S [SKIPPING] [0.314 seconds]
"""
TEXTS = ["[sig-a] one works [Serial]", "[sig-a] two works", "[sig-a] three works", "[sig-a] four works"]


@pytest.mark.parametrize("output", [NEW, OLD], ids=["ginkgo 2", "ginkgo 1"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_starts_and_ends_are_heard_in_pieces_of_any_size(output: str, size: int) -> None:
    heard: list[tuple[str, str | None]] = []

    def tell(seen: Seen) -> None:
        heard.append((seen.text.split()[1], seen.status))

    ids: list[str] = []
    follower = Follower(TEXTS, tell, ids.append)
    data = output.encode()
    for start in range(0, len(data), size):
        follower.feed(data[start : start + size])
    assert heard[:6] == [
        ("one", None),
        ("one", "passed"),
        ("two", None),
        ("two", "failed"),
        ("three", None),
        ("three", "skipped"),
    ]
    if output == NEW:
        assert heard[6:] == [("four", None)]
        assert ids == ["aec0d621-129c-4c85-b7fd-e764f12fee5b"]
        assert follower.seen["[sig-a] one works [Serial]"].namespaces == {"one-2434"}
        assert follower.seen["[sig-a] two works"].namespaces == {"two-1", "two-2"}


def test_endless_lines_cost_no_memory() -> None:
    follower = Follower(TEXTS, lambda seen: None)
    for _ in range(50):
        follower.feed(b"\xff" * 100_000)
    follower.feed(NEW.encode())
    assert "[sig-a] one works [Serial]" in follower.seen
