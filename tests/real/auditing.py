"""A real API server that writes down who asked it for what."""

from __future__ import annotations

from pathlib import Path

LOG = "audit.log"
POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
"""


def audited(folder: Path, programs: Path) -> Path:
    """The programs of a control plane in a folder of their own, beside which the API server writes its audit log."""
    folder.mkdir()
    for program in programs.iterdir():
        (folder / program.name).symlink_to(program)
    server = folder / "kube-apiserver"
    server.unlink()
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    options = f"--audit-policy-file={policy} --audit-log-path={folder / LOG}"
    server.write_text(f'#!/bin/sh\nexec {programs / server.name} {options} "$@"\n')
    server.chmod(0o755)
    return folder
