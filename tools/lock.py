#!/usr/bin/env python3
"""Resolve the dependencies into ``locks/``: versions and hashes, and no word of where they came from."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Made by `make lock`; do not edit.\n"


def resolve(requirements: list[str], target: Path, constraints: Path | None = None) -> None:
    """Write the universal, hashed resolution of ``requirements``."""
    command = [str(Path(sys.executable).parent / "uv"), "pip", "compile", "-", "--universal", "--generate-hashes"]
    command += ["--python-version", "3.11", "--no-header", "--no-emit-index-url", "--no-emit-find-links"]
    command += ["--no-annotate", "--quiet"]
    if constraints:
        command += ["--constraint", str(constraints)]
    text = subprocess.run(command, input="\n".join(requirements), text=True, capture_output=True, check=False, cwd=ROOT)
    if text.returncode != 0:
        sys.exit(f"error: {target.name} could not be resolved:\n{text.stderr}")
    target.write_text(HEADER + text.stdout)


def main() -> None:
    """Resolve the run-time set first; all but what releases are tried with is held to it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    locks = ROOT / "locks"
    runtime = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    resolve(runtime, locks / "run.txt")
    extras = [name for names in project["project"]["optional-dependencies"].values() for name in names]
    resolve(extras, locks / "store.txt", constraints=locks / "run.txt")
    development = [*runtime, *extras, *project["dependency-groups"]["dev"]]
    resolve(development, locks / "dev.txt", constraints=locks / "run.txt")
    resolve(project["dependency-groups"]["trial"], locks / "trial.txt")


if __name__ == "__main__":
    main()
