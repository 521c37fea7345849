"""Writes what stands in ``deploy/`` of the repository: the kustomize base, and the rules that the Helm chart grants.

Both are made of the same objects that ``winready deploy`` prints: ``python -m winready.deploy.bases deploy``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from winready import __version__
from winready.checks.rights import rights_to_grant
from winready.cluster.applying import manifest
from winready.cluster.client import Object
from winready.cluster.rights import rules
from winready.cluster.settings import Settings
from winready.deploy.defaults import TIMEOUT
from winready.deploy.manifests import Deployment, objects
from winready.engine.selection import Selection, select
from winready.spec.loader import load_standard

IMAGE = f"registry.invalid/winready:{__version__}"
"""Nobody can ever pull that by mistake; an overlay names the real one."""
SCHEDULE = "0 3 * * 1"
MADE = "# Made by 'python -m winready.deploy.bases deploy'; change src/winready/deploy instead.\n"
RULES_FILE = "chart/files/rights.yaml"


def files() -> dict[str, str]:
    """By their path below the folder."""
    arguments = ("--timeout", TIMEOUT)
    everything = [item.id for item in select(load_standard(), Selection(profile="full"))]
    usual = tuple(item.id for item in select(load_standard(), Selection()) if not item.disruptive)
    job = objects(Deployment(image=IMAGE, arguments=arguments, requirements=usual))
    cron_job = objects(Deployment(image=IMAGE, arguments=arguments, requirements=usual, schedule=SCHEDULE))
    shared = [item for item in job if item in cron_job]
    found = {
        "kustomize/base/kustomization.yaml": _kustomization(["objects.yaml"]),
        "kustomize/base/objects.yaml": manifest(shared),
        RULES_FILE: manifest([{"usual": _rules(usual), "everything": _rules(everything)}]),
    }
    for name, made in (("job", job), ("cronjob", cron_job)):
        own = [item for item in made if item not in shared]
        found[f"kustomize/{name}/kustomization.yaml"] = _kustomization(["../base", "objects.yaml"])
        found[f"kustomize/{name}/objects.yaml"] = manifest(own)
    return {path: MADE + text for path, text in found.items()}


def _rules(requirements: Iterable[str]) -> list[dict[str, list[str]]]:
    return rules(rights_to_grant(requirements, Settings(run_id="rights")))


def _kustomization(resources: list[str]) -> str:
    document: Object = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return manifest([{**document, "resources": resources}])


def main() -> None:
    """Write them all."""
    base = Path(sys.argv[1])
    for path, text in files().items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_text(text)


if __name__ == "__main__":
    main()
