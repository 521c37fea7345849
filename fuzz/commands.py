"""The command line on hostile files: some inputs of each reader, in this process, and a few in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from fuzz.seeding import seeds

EVERY, APART = 100, 4000
"""Which inputs a command is given, and which of them in a process of its own."""
SECONDS = 120
"""Wall seconds for a process, which may wait for names that nobody knows."""
RUN = "261101-101500-ab12"
TRACE = "Traceback (most recent call last)"
NOWHERE = """\
{"apiVersion": "v1", "kind": "Config", "current-context": "one",
 "clusters": [{"name": "one", "cluster": {"server": "https://api.invalid:6443"}}],
 "contexts": [{"name": "one", "context": {"cluster": "one", "user": "u"}}], "users": [{"name": "u", "user": {}}]}
"""
Made = Callable[[bytes, Path, int], list[str]]


def _file(path: Path, data: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def _one_of(*commands: list[str], name: str = "input") -> Made:
    """One command after the other; ``FILE`` is the input, ``FOLDER`` where it is."""

    def made(data: bytes, folder: Path, turn: int) -> list[str]:
        file = _file(folder / "command" / name, data)
        words = {"FILE": file, "FOLDER": str(folder / "command"), "NOWHERE": str(folder / "nowhere.yaml")}
        _file(folder / "nowhere.yaml", NOWHERE.encode())
        _file(folder / "web.yaml", seeds("manifests")[-1])
        words["MANIFEST"] = str(folder / "web.yaml")
        return [words.get(word, word) for word in commands[turn % len(commands)]]

    return made


_REPORTS = [["report", "FOLDER", "--format", form, "--output", "out"] for form in ("html", "junit", "csv", "prow")]
_TOLD = [["status", "FOLDER"], ["compare", "FOLDER", "FOLDER"], ["certify", "FOLDER", "--draft"], *_REPORTS]
_LINT = [["lint", "FILE", "-o", form] for form in ("text", "json", "sarif", "junit", "github")]
COMMANDS: dict[str, Made] = {
    "kubeconfig": _one_of(["cleanup", "--kubeconfig", "FILE"], ["plan", "--kubeconfig", "FILE"]),
    "specification": _one_of(["spec", "validate", "FILE"]),
    "op-readiness": _one_of(["plan", "--kubeconfig", "NOWHERE", "--test-directory", "FOLDER"], name="spec.yaml"),
    "junit": _one_of(["run", "--kubeconfig", "NOWHERE", "--linux-conformance", "FILE"], name="junit.xml"),
    "sonobuoy": _one_of(["sonobuoy", "results", "FILE"], ["status", "FILE"], ["verify", "FILE"], name="x.tar.gz"),
    "journal": _one_of(*_TOLD, name="journal.jsonl"),
    "run": _one_of(*_TOLD, ["history", "--report-dir", "."], name="run.json"),
    "bundle": _one_of(["verify", "FILE"], ["status", "FILE"], ["compare", "FILE", "FILE"], name="x.tar.gz"),
    "manifests": _one_of(*_LINT, ["lint", "FILE", "--fix"], ["run", "--kubeconfig", "NOWHERE", "--for", "FILE"]),
    "listing": _one_of(["upstream", "list", "--specs", "FILE"], ["upstream", "drift", "--specs", "FILE"]),
    "node-json": _one_of(["node", "preflight", "--kubeconfig", "NOWHERE", "--bundle", "FOLDER"], name="node.json"),
    "node-bundle": _one_of(["node", "preflight", "--kubeconfig", "NOWHERE", "--bundle", "FILE"], name="x.zip"),
    "active-directory": _one_of(["plan", "--kubeconfig", "NOWHERE", "--active-directory", "FILE"]),
    "lint-config": _one_of(["lint", "--config", "FILE", "MANIFEST"]),
}
WAITING = {"kubeconfig", "op-readiness", "junit", "node-json", "node-bundle", "active-directory"}
"""Their commands go on to ask a cluster that is not there, which takes a second: a few of them have to do."""
CODES = {0, 1, 2, 3}


def due(name: str, number: int) -> bool:
    """Whether this input is for the command line, too."""
    return name in COMMANDS and number % (APART if name in WAITING else EVERY) == 0


def command(name: str, number: int, data: bytes, folder: Path) -> str:
    """Give an input to a command; what was wrong with how that ended, if anything was."""
    arguments = COMMANDS[name](data, folder, number // (APART if name in WAITING or number % APART == 0 else EVERY))
    if name in WAITING or number % APART == 0:
        return _apart(arguments, folder)
    from click.testing import CliRunner

    from winready.cli.main import cli

    result = CliRunner().invoke(cli, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return _judged(arguments, result.exit_code, result.output)


def _apart(arguments: list[str], folder: Path) -> str:
    place = folder / "empty"
    place.mkdir(exist_ok=True)
    environment = {**os.environ, "HOME": str(place), "TMPDIR": str(place)}
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "winready", *arguments],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"winready {' '.join(arguments[:2])} took more than {SECONDS} s"
    return _judged(arguments, ended.returncode, (ended.stdout + ended.stderr).decode("utf-8", "replace"))


def _judged(arguments: list[str], code: int, said: str) -> str:
    if TRACE in said:
        return f"winready {' '.join(arguments)} printed a traceback: {said[-600:]}"
    if code not in CODES:
        return f"winready {' '.join(arguments)} ended with exit code {code}: {said[-300:]}"
    if "\x1b]" in said or "\x07" in said:
        return f"winready {' '.join(arguments)} let text of a stranger steer the terminal"
    return ""
