"""Lint: manifests per second of CPU, and memory that does not grow with the number of files."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import keep

MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{number}
  labels: {{app: app-{number}}}
spec:
  replicas: 2
  selector:
    matchLabels: {{app: app-{number}}}
  template:
    metadata:
      labels: {{app: app-{number}}}
    spec:
      {placement}
      securityContext:
        runAsNonRoot: true
      containers:
        - name: app
          image: {image}
          ports: [{{name: http, containerPort: 8080}}]
          env:
            - name: LOG_LEVEL
              value: info
          resources:
            limits: {{cpu: "1", memory: 512Mi}}
          readinessProbe:
            httpGet: {{path: /healthz, port: http}}
          volumeMounts:
            - {{name: config, mountPath: 'C:\\config'}}
      volumes:
        - name: config
          configMap: {{name: app-{number}}}
"""
SERVICE = """\
---
apiVersion: v1
kind: Service
metadata:
  name: app-{number}
spec:
  selector: {{app: app-{number}}}
  ports: [{{port: 80, targetPort: http}}]
"""
WINDOWS = ("os: {name: windows}\n      nodeSelector: {kubernetes.io/os: windows}", "example.org/app:1-ltsc2022")
LINUX = ("nodeSelector: {kubernetes.io/os: linux}", "example.org/app:1")
PER_FOLDER = 100
ROUNDS = 5


def make(folder: Path, count: int) -> int:
    """Typical files, half of them for Windows, every second one with its Service; returns the number of manifests."""
    manifests = 0
    for number in range(count):
        place = folder / f"team-{number // PER_FOLDER}"
        place.mkdir(exist_ok=True)
        placement, image = WINDOWS if number % 2 else LINUX
        text = MANIFEST.format(number=number, placement=placement, image=image)
        manifests += 1
        if number % 4 < 2:
            text += SERVICE.format(number=number)
            manifests += 1
        (place / f"app-{number}.yaml").write_text(text)
    return manifests


def measure(folder: Path) -> dict[str, float]:
    """Lint a folder in this process: CPU seconds and peak memory."""
    from winready.lint.run import Run, Settings

    start = time.process_time()
    run = Run([str(folder)], Settings())
    findings = sum(1 for _ in run.results())
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "megabytes": peak, "findings": findings, "files": run.summary.files}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--large", type=int, default=10_000, help="files of the second run, to see memory")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.folder:
        print(json.dumps(measure(options.folder)))
        return
    peaks, rates = [], []
    for count in (options.files, options.large):
        with tempfile.TemporaryDirectory() as name:
            manifests = make(Path(name), count)
            command = [sys.executable, __file__, "--folder", name]
            # Neighbours on the same cores make processor time longer, never shorter.
            results = [
                json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout)
                for _ in range(ROUNDS)
            ]
        peaks.append(max(result["megabytes"] for result in results))
        rates.append(manifests / min(result["seconds"] for result in results))
        print(f"lint: {count:>7,} files: {rates[-1]:6,.0f} manifests per CPU second, {peaks[-1]:.0f} MB peak")
    keep("lint_per_cpu_s", rates[0])
    print(f"lint: memory of {options.large:,} files over {options.files:,}: {peaks[1] / peaks[0]:.2f} times")


if __name__ == "__main__":
    main()
