"""The image: how large it is, and what starting winready from it costs beside winready as it is installed here.

Each command runs from the unpacked image in bubblewrap, on a root file system that is read-only, as in a cluster.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from winready_sandbox.host import images

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 9
MEGABYTE = 1e6


def cost(command: list[str]) -> tuple[float, float]:
    """Median wall milliseconds of a command, and the most memory that it had, in MB."""
    times, memory = [], 0.0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        times.append((time.perf_counter() - start) * 1000)
        memory = max(memory, usage.ru_maxrss * 1024 / MEGABYTE)
    return statistics.median(times), memory


def sizes(layout: Path) -> dict[str, float]:
    """Compressed megabytes by architecture."""

    def document(digest: str) -> dict[str, list[dict[str, dict[str, str]]]]:
        found: dict[str, list[dict[str, dict[str, str]]]] = json.loads(
            (layout / "blobs" / digest.replace(":", "/")).read_text()
        )
        return found

    (named,) = json.loads((layout / "index.json").read_text())["manifests"]
    entries = document(named["digest"])["manifests"]
    return {
        entry["platform"]["architecture"]: sum(
            float(str(layer["size"])) for layer in document(str(entry["digest"]))["layers"]
        )
        / MEGABYTE
        for entry in entries
    }


def main() -> None:
    """Build, unpack, start."""
    with tempfile.TemporaryDirectory(prefix="wr-bench-") as name:
        folder = Path(name)
        layout = folder / "image"
        made = [sys.executable, str(ROOT / "tools" / "image.py"), "--output", str(layout)]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        for architecture, size in sizes(layout).items():
            print(f"image: {size:.1f} MB compressed for {architecture}")
        image = images.load(f"winready={layout}", folder / "unpacked")
        confined = ["bwrap", "--ro-bind", str(image.root), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run"]
        confined += ["--unshare-all", "--clearenv", *image.entrypoint]
        for words in (["--version"], ["spec", "list"]):
            (took, memory), (here, _) = cost([*confined, *words]), cost([sys.executable, "-m", "winready", *words])
            shown = f"image: winready {' '.join(words)} takes {took / here:.2f} times as long as installed here"
            print(f"{shown} ({took:.0f} ms), and at most {memory:.0f} MB")


if __name__ == "__main__":
    main()
