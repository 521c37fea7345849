"""How a run of all Windows nodes grows with their number: 10, 100 and 1,000, or with ``--small`` 10, 40 and 160.

Each size is a sandbox and a run in one process and in virtual time, so that seconds are those of the cluster and not of
this machine; CPU seconds are told for both, the sandbox on its way up and the run on it. Memory is that of a run in a
process of its own, against a sandbox in another one, with the largest number of nodes. Figures go to
``build/nodes.json``; what is outside its bounds makes the exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

SIZES, SMALL = (10, 100, 1000), (10, 40, 160)
REQUIREMENTS = ("core.network.windows-to-linux-pod-ip", "core.network.windows-to-linux-nodeport")
"""One that asks from each node, and one that would ask for each pair of nodes."""
MEMORY = 300.0
"""Megabytes, whatever the number of nodes."""
PER_NODE = {"requests": 12.0, "commands": 80.0, "windows_pods": 4.0}
"""What a run may ask of the API server for each node, what it asks once included: requests, commands in pods (a stream
each), and pods. Of 10 nodes what is asked once is the larger part."""
EACH_FURTHER = {"requests": 3.0, "commands": 40.0, "seconds": 0.5, "record_kb": 8.0, "page_kb": 2.0}
"""What each further node may add. Requests: one for each of its two pods, since namespaces go as a whole, and one to
spare; whoever asks for every node by itself needs more. Commands: half as many again as the 27 that were measured.
Cluster seconds: twice the 0.28 that were measured; commands wait for each other at a fixed number at once. Records of
few nodes are told in full and grow by some 5 KB for each; they fold only beyond that, as the page does."""
SUPERLINEAR = 2.0
"""How many times the CPU seconds for each node may be those of the next smaller number: they would be ten times if each
node cost something for each other one."""
FIGURES = Path(__file__).resolve().parents[1] / "build" / "nodes.json"
Figures = dict[str, float]


def one(nodes: int, kept: Path | None = None) -> Figures:
    """A run of a cluster with so many Windows nodes, in this process; its report is kept in a folder, if given."""
    import msgspec

    from winready.cluster import execution
    from winready.cluster.transport import Transport
    from winready.engine.selection import Selection
    from winready.proof.healthy.table import PLAIN
    from winready.proof.trial import _run, _scene
    from winready.report.html import page
    from winready_sandbox.garbage import leave_alone_what_is_there
    from winready_sandbox.virtual_time import VirtualTimeLoop

    seen: Counter[str] = Counter()
    request, execute = Transport._request, execution._run

    def counted(self: Transport, *given: Any) -> Any:
        seen["requests"] += 1
        return request(self, *given)

    async def executed(*given: Any) -> Any:
        seen["commands"] += 1
        return await execute(*given)

    setattr(Transport, "_request", counted)  # noqa: B010 - replaced on purpose
    setattr(execution, "_run", executed)  # noqa: B010 - the same
    this = replace(PLAIN, plan={"windows": nodes})
    selection = Selection(requirements=list(REQUIREMENTS))

    async def story() -> Figures:
        loaded = time.process_time()
        async with _scene(this, selection) as scene:
            # As with every sandbox in the process of its run.
            leave_alone_what_is_there()
            up = time.process_time()
            record = await _run(scene, this, selection)
            done = time.process_time()
            if record.verdict != "Pass":
                sys.exit(f"nodes: {nodes} nodes: {record.verdict_text}")
            text, told = msgspec.json.encode(record), page.render(record)
            if kept:
                folder = kept / f"nodes-{nodes}"
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "run.json").write_bytes(text)
                (folder / "report.html").write_text(told)
            return {
                "nodes": nodes,
                "up_cpu_s": round(up - loaded, 1),
                "seconds": record.duration_s,
                "cpu_s": round(done - up, 1),
                "requests": seen["requests"],
                "commands": seen["commands"],
                "windows_pods": record.windows_pods_started,
                "record_kb": round(len(text) / 1024),
                "page_kb": round(len(told) / 1024),
            }

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(story())


def memory(nodes: int, speed: float) -> float:
    """Megabytes that a run of so many nodes takes at most, the sandbox in another process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        command = [sys.executable, "-m", "winready"]
        up = [*command, "sandbox", "up", "--detach", "--windows", str(nodes), "--speed", f"{speed:g}", "-o", "json"]
        told = subprocess.run(up, capture_output=True, text=True, env=environment, check=False)
        if told.returncode:
            sys.exit(f"nodes: no sandbox of {nodes} nodes: {told.stderr[-2000:]}")
        try:
            while not all(
                node["ready"] for node in json.loads(_told([*command, "sandbox", "status"], environment))["nodes"]
            ):
                time.sleep(2)
            words = [word for name in REQUIREMENTS for word in ("--requirement", name)]
            run = [*command, "run", "--kubeconfig", json.loads(told.stdout)["kubeconfig"], "--nodes", "all"]
            run += ["--time-scale", f"{speed:g}", *words, "--report-dir", f"{folder}/runs", "-o", "json"]
            with open(f"{folder}/told", "w") as file:
                child = subprocess.Popen(run, env=environment, stdout=file, stderr=file)
                _, status, used = os.wait4(child.pid, 0)
            if code := os.waitstatus_to_exitcode(status):
                sys.exit(f"nodes: a run of {nodes} nodes ended with {code}: {Path(folder, 'told').read_text()[-2000:]}")
            return float(used.ru_maxrss / 1024)
        finally:
            subprocess.run([*command, "sandbox", "down", "--all"], check=False, capture_output=True, env=environment)


def _told(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run([*command, "-o", "json"], check=True, capture_output=True, text=True, env=environment).stdout


def slow_enough(nodes: int) -> float:
    """A speed of the cluster at which one processor can be so many nodes and whoever asks them."""
    return max(0.25, min(10.0, 250 / nodes))


def judged(figures: list[Figures], megabytes: float | None) -> list[str]:
    """What is outside its bounds."""
    wrong = []
    for one in figures:
        for name, limit in PER_NODE.items():
            if one[name] / one["nodes"] > limit:
                wrong.append(f"{one['nodes']} nodes: {one[name] / one['nodes']:.1f} {name} per node (limit {limit:g})")
    for few, many in itertools.pairwise(figures):
        between = f"from {few['nodes']} to {many['nodes']} nodes"
        further = many["nodes"] - few["nodes"]
        for name, limit in EACH_FURTHER.items():
            if (each := (many[name] - few[name]) / further) > limit:
                wrong.append(f"{name} {between}: {each:.2f} for each further node (limit {limit:g})")
        times = {
            name: many[name] / max(few[name] / few["nodes"], 1e-3) / many["nodes"] for name in ("up_cpu_s", "cpu_s")
        }
        wrong += [
            f"{name} {between}: {more:.1f} times as much for each node (limit {SUPERLINEAR:g})"
            for name, more in times.items()
            if more > SUPERLINEAR
        ]
    if megabytes is not None and megabytes > MEMORY:
        wrong.append(f"memory of a run: {megabytes:.0f} MB (limit {MEMORY:g})")
    return wrong


def main() -> None:
    """Each size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help=f"sizes {SMALL}, in a few minutes")
    parser.add_argument("--sizes", help="other numbers of Windows nodes, with commas between")
    parser.add_argument("--without-memory", action="store_true")
    parser.add_argument("--memory-nodes", type=int, help="nodes of the run whose memory is measured")
    parser.add_argument("--one", type=int, help="only this size, in this process")
    parser.add_argument("--keep", type=Path, help="folder for run.json and report.html of each size")
    parser.add_argument("--output", type=Path, default=FIGURES)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.one, given.keep)))
        return
    sizes = [int(size) for size in given.sizes.split(",")] if given.sizes else SMALL if given.small else SIZES
    figures = []
    for size in sizes:
        command = [sys.executable, __file__, "--one", str(size)]
        command += ["--keep", str(given.keep)] if given.keep else []
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        if told.returncode:
            sys.exit(told.stderr[-2000:])
        figures.append(json.loads(told.stdout))
        print("nodes: " + ", ".join(f"{name} {value:g}" for name, value in figures[-1].items()), flush=True)
    most = given.memory_nodes or max(sizes)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    megabytes: float | None = None
    if not given.without_memory:
        # On a busy machine that run can fail by the clock on the wall; what has been measured by then stays.
        _keep(given.output, figures, most, megabytes)
        megabytes = memory(most, slow_enough(most))
        print(f"nodes: memory of a run of {most} nodes {megabytes:.0f} MB (limit {MEMORY:g})")
    _keep(given.output, figures, most, megabytes)
    if wrong := judged(figures, megabytes):
        sys.exit("nodes: " + "; ".join(wrong))


def _keep(file: Path, figures: list[Figures], most: int, megabytes: float | None) -> None:
    document = {"sizes": figures, "memory_nodes": most, "memory_mb": megabytes}
    file.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
