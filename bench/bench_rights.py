"""How many rights ``winready rbac`` grants, how many of them runs use, and how many are named when they are missing.

The same recordings as in ``tests/proof/test_rights.py``, on the embedded API server, and as in
``tests/real/test_rights.py``, by the audit logs of real ones whose programs are there. ``--only embedded`` or
``--only 1.36.3`` measures a part again; figures go to ``build/rights.json``, beside those that are there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "build" / "rights.json"
EMBEDDED, REAL = "embedded", ("1.36.3", "1.32.2")
WHOLE, PREPARED = "in the whole cluster", "in prepared namespaces"
Figures = dict[str, int]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]


def embedded() -> Iterator[tuple[str, Figures]]:
    """Both profiles, in the whole cluster and in prepared namespaces."""
    from proof.test_rights import PREFIX, UNHAPPY, _without_each, granted, held, losing_answers, uses
    from winready.engine.selection import Selection
    from winready_sandbox.virtual_time import VirtualTimeLoop

    for profile in ("core", "full"):
        for prefix, where in (("", WHOLE), (PREFIX, PREPARED)):
            selection = Selection(profile=profile)
            with pytest.MonkeyPatch.context() as patch, losing_answers(patch):
                record = held(patch, "(healthy)", selection, prefix)
            for name, requirement in UNHAPPY:
                with pytest.MonkeyPatch.context() as patch:
                    other = held(patch, name, Selection(requirements=[requirement]), prefix)
                record.allowed |= other.allowed
                record.refused |= other.refused
            rights = sorted(granted(selection, prefix))
            with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
                named = runner.run(_without_each(rights))
            yield (
                f"{profile}, {where}",
                {
                    "granted": len(rights),
                    "used": sum(uses(record, right) for right in rights),
                    "asked_besides": len(record.refused),
                    "named_when_missing": sum(named[right] == [right] for right in rights),
                },
            )


def real(version: str) -> Iterator[tuple[str, Figures]]:
    """The core on a real control plane; in prepared namespaces with something in its way in each."""
    from proof.test_rights import losing_answers
    from real.auditing import audited
    from real.conftest import programs, start, winready
    from real.least_rights import Operator
    from real.test_rights import ADDRESSES, PREFIX, obstruct, outcomes, run

    runtime = Path(tempfile.mkdtemp(prefix="wr-"))
    try:
        folder = audited(runtime / "programs", programs(version))
        cluster = start(runtime, version, "--speed", "25", folder=folder)
        for words, where in ((["--allow-disruptive"], WHOLE), (["--namespace-prefix", PREFIX], PREPARED)):
            operator = Operator(cluster, runtime, "bench", *words)
            with operator.heard() as asked, pytest.MonkeyPatch.context() as patch:
                if where == PREPARED:
                    obstruct(operator, "NetworkPolicy")
                with losing_answers(patch):
                    found = outcomes(run(operator, runtime, *words))
                if where == PREPARED:
                    obstruct(operator, "LimitRange", "ips")
                    run(operator, runtime, *words, "--requirement", ADDRESSES)
            # What a busy machine makes of a run is not the question here; the tests insist on its outcomes.
            for name in (name for name, item in found.items() if item["outcome"] not in ("passed", "blocked")):
                print(f"rights: {version}, {where}: {name} did not pass", flush=True)
            named = asyncio.run(operator.named_when_missing(*words))
            operator.leave()
            yield (
                f"core, {where}, kube-apiserver {version}",
                {
                    "granted": len(operator.rights),
                    "used": sum(asked.uses(right) for right in operator.rights),
                    "asked_besides": len(asked.refused),
                    "named_when_missing": sum(named.values()),
                },
            )
    finally:
        winready(runtime, "sandbox", "down", "--all")
        shutil.rmtree(runtime)


def main() -> None:
    """Measure what is wanted, or all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=(EMBEDDED, *REAL))
    wanted = parser.parse_args().only or [EMBEDDED, *filter(_built, REAL)]
    for part in wanted:
        for name, figures in embedded() if part == EMBEDDED else real(part):
            known = json.loads(TARGET.read_text()) if TARGET.exists() else {}
            TARGET.parent.mkdir(exist_ok=True)
            TARGET.write_text(json.dumps(known | {name: figures}, indent=1) + "\n")
            print(f"rights: {name}: {figures}", flush=True)


def _built(version: str) -> bool:
    from real_programs import cache_root

    return (cache_root() / "kubernetes" / f"v{version}" / "bin" / "kube-apiserver").exists()


if __name__ == "__main__":
    main()
