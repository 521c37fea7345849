#!/usr/bin/env python3
"""Let Kubernetes' own e2e.test judge the simulated nodes, and write down what it says of each of its tests.

The nodes run under a real control plane. All ``[sig-windows]`` specs are run, all conformance specs (on Linux nodes,
and those that Windows can run steered there), and the generic specs that our mapping uses. Outcomes are measured,
always; reasons for what does not pass are kept in ``fidelity_specs.py``. A spec that does not pass for no known reason
makes the exit code 1, and so does a reason that is no longer needed. What the specs execute in containers is recorded:
the simulated programs need a reason to be there, and this is one.

    fidelity.py --output docs/sandbox-fidelity.md        the whole table, in a few hours; when ended, it goes on
    fidelity.py --again failed --only '[sig-node]'       once more what did not pass
    fidelity.py --round linux --shard 1/3                a third of conformance on Linux nodes
    fidelity.py --round linux --fault NAME --only REGEX --record FILE    what becomes of specs on broken nodes
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import sys
import tempfile
from pathlib import Path

from fidelity_page import judgement, junit, page, rows
from fidelity_running import Pace, Trouble, run_round
from fidelity_specs import ROUNDS, SPEED, chosen, generic, in_shard
from fidelity_state import State
from real_programs import BuildError, ensure
from winready.upstream.binary import Binary, inspect, list_specs
from winready.upstream.listing import Listing

PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "e2e.test"]


def main() -> int:
    args = arguments()
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    try:
        programs = ensure(args.kubernetes, PROGRAMS)
        return asyncio.run(judge(args, programs))
    except (BuildError, Trouble) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kubernetes", default="1.36.3", metavar="V", help="Kubernetes version, such as 1.36.3")
    parser.add_argument("--only", default="", metavar="REGEX", help="run only specs whose text it matches")
    parser.add_argument(
        "--round", action="append", choices=list(ROUNDS), help="run only this round; several times for several"
    )
    parser.add_argument("--shard", type=shard, default=(1, 1), metavar="I/N", help="run only the I-th of N parts")
    parser.add_argument("--again", choices=["failed", "all"], default="", help="also what has a result already")
    parser.add_argument("--parallel", type=int, default=6, metavar="N", help="processes of e2e.test at the same time")
    parser.add_argument("--limit", type=float, default=600.0, metavar="S", help="seconds after which a spec is ended")
    parser.add_argument("--speed", type=float, default=SPEED, metavar="X", help="of nodes, where a round has no own")
    parser.add_argument(
        "--state", type=Path, default=Path("build/fidelity/state.jsonl"), metavar="FILE", help="where results are kept"
    )
    parser.add_argument("--also", type=Path, action="append", default=[], metavar="FILE", help="results of others")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what e2e.test said in this folder")
    parser.add_argument("--fault", default="", metavar="NAME", help="break every node of the round first")
    parser.add_argument("--page-only", action="store_true", help="run nothing; say what the results say")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the page here")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write conformance on Linux here, as JUnit")
    parser.add_argument("--record-windows", type=Path, metavar="FILE", help="the same for Windows nodes")
    return parser.parse_args()


def shard(text: str) -> tuple[int, int]:
    """``I/N``."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no part such as 1/3")
    return int(match[1]), int(match[2])


async def judge(args: argparse.Namespace, programs: Path) -> int:
    """Run what is to be run, then say what all results say."""
    binary = await inspect(programs / "e2e.test")
    listing = await list_specs(binary)
    state = State(args.state, args.also)
    if not args.page_only:
        await run(args, programs, binary, listing, state)
    judged = judgement(state, listing.texts, generic(listing, binary))
    if args.output:
        args.output.write_text(page(state, judged), encoding="utf-8")
    if args.record:
        broken = ROUNDS["linux"].broken(args.fault).name
        texts = [text for name, text in state.results if name == broken]
        recorded = rows(state, texts, [broken], {}) if args.fault else judged.linux
        args.record.write_text(junit(recorded), encoding="utf-8")
    if args.record_windows:
        args.record_windows.write_text(junit(judged.steered), encoding="utf-8")
    if args.fault:
        return 0
    for each in judged.unexplained:
        print(f"{each.outcome}: {each.text}\n    {each.why}", file=sys.stderr)
    return 1 if judged.unexplained else 0


async def run(args: argparse.Namespace, programs: Path, binary: Binary, listing: Listing, state: State) -> None:
    """Run the rounds one after the other."""
    # Whoever ends this ends its sandboxes, too.
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        if task is not None:
            loop.add_signal_handler(number, task.cancel)
    mark = f"-{args.shard[0]}" if args.shard[1] > 1 else ""
    pace = Pace(args.parallel, args.limit, args.speed)
    with tempfile.TemporaryDirectory(prefix="fidelity-") as temporary:
        folder: Path = args.keep or Path(temporary)
        for name, specs in chosen(listing, binary, args.only).items():
            if args.round and name not in args.round:
                continue
            plan = ROUNDS[name].broken(args.fault)
            shard = [spec for spec in specs if in_shard(spec.text, args.shard)]
            mine = [spec for spec in shard if state.wanted(plan.name, spec.text, args.again)]
            print(f"{plan.name}: {len(mine)} of {len(shard)} specs to run", flush=True)
            if mine:
                await run_round(plan, mine, binary, programs, folder, state, pace, mark)


if __name__ == "__main__":
    sys.exit(main())
