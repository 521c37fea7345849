"""The plugin file that ``sonobuoy run -p`` takes: a Job on a Linux node that runs winready under guard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from winready import __version__
from winready.deploy.sonobuoy_pod import CLEAN_UP_SECONDS, PATIENCE_SECONDS
from winready.report.sonobuoy import NAME

IMAGE = f"winready:{__version__}"
CONFIG = "/tmp/sonobuoy/config"  # noqa: S108 - where Sonobuoy mounts it
RESULTS = "/tmp/sonobuoy/results"  # noqa: S108 - the same
MOST_CONFIG = 700_000
"""A config map holds 1 MiB, and Sonobuoy puts the whole plugin file into one besides."""
MARGIN = 240.0
ACCOUNT = "sonobuoy-serviceaccount"
GRACE = 120
SONOBUOY_TIMEOUT = 21600
CONTROL_PLANES = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


class TooLarge(ValueError):
    """Files that do not fit into a plugin file; the message says so."""


@dataclass(frozen=True, kw_only=True)
class PluginFile:
    """What a plugin file says."""

    arguments: Sequence[str]
    """Of ``winready run``."""
    timeout: float
    """After how many seconds the run gives up what is not finished."""
    name: str = "winready"
    image: str = IMAGE
    pull_policy: str = "IfNotPresent"
    account: str = ACCOUNT
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, str]] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    """What the arguments name below `CONFIG`, by name."""

    @property
    def sonobuoy_timeout(self) -> int:
        """What Sonobuoy must wait for at least: when its time is over, it throws away what a plugin has."""
        return round(self.timeout + CLEAN_UP_SECONDS + PATIENCE_SECONDS + MARGIN)

    def document(self) -> dict[str, Any]:
        """The plugin file."""
        held = sum(len(text.encode()) for text in self.files.values())
        if held > MOST_CONFIG:
            raise TooLarge(f"the files for the plugin have {held} bytes; a config map holds about {MOST_CONFIG}")
        account: dict[str, Any] = {"serviceAccountName": self.account}
        tolerations = [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in CONTROL_PLANES]
        document: dict[str, Any] = {
            "sonobuoy-config": {
                "driver": "Job",
                "plugin-name": self.name,
                "description": "Windows operational readiness (KEP-2578): Pass or Fail, with proof",
                "result-format": "manual",
                "result-files": [NAME],
            },
            "podSpec": {
                **account,
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": GRACE,
                "nodeSelector": {"kubernetes.io/os": "linux", **self.node_selector},
                "tolerations": [*tolerations, *map(dict, self.tolerations)],
                # Sonobuoy's own container states no user; ours is not root, and the folder they share belongs to both.
                "securityContext": {"fsGroup": 2000, "seccompProfile": {"type": "RuntimeDefault"}},
            },
            "spec": {
                "name": "plugin",
                "image": self.image,
                "imagePullPolicy": self.pull_policy,
                "command": ["winready", "sonobuoy", "run"],
                "args": list(self.arguments),
                "env": [{"name": "HOME", "value": "/tmp"}],  # noqa: S108 - nothing is kept there
                "resources": {
                    "requests": {"cpu": "250m", "memory": "256Mi"},
                    "limits": {"memory": "1Gi"},
                },
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 65532,
                    "runAsGroup": 65532,
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "results", "mountPath": RESULTS}],
            },
        }
        if self.files:
            document["config-map"] = dict(self.files)
        return document

    def text(self) -> str:
        """The same as YAML, with how to use it."""
        wait = f" --timeout {self.sonobuoy_timeout}" if self.sonobuoy_timeout > SONOBUOY_TIMEOUT else ""
        lines = [
            f"# Sonobuoy plugin, made by winready {__version__}. Save it as {self.name}.yaml, then:",
            f"#   sonobuoy run -p {self.name}.yaml --aggregator-node-selector kubernetes.io/os:linux{wait} --wait",
            '#   sonobuoy status --json       "result-status" is passed for a Pass, failed for everything else',
            "#   sonobuoy retrieve            then: winready sonobuoy results TARBALL",
            "#   sonobuoy delete --wait",
            f"# What is not finished after {self.timeout:g} s is given up; Sonobuoy must wait for"
            f" {self.sonobuoy_timeout} s or longer (--timeout).",
        ]
        if self.account == ACCOUNT:
            lines.append("# It runs with Sonobuoy's own account, which may do everything (--aggregator-permissions).")
        else:
            lines.append(
                f"# It runs as the service account {self.account} of Sonobuoy's namespace; 'winready rbac --name"
                f" {self.account} --namespace sonobuoy' prints it with its rights."
            )
        body = yaml.safe_dump(self.document(), sort_keys=False, allow_unicode=True, width=110)
        return "\n".join([*lines, str(body)])
