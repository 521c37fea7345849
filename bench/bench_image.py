"""The image: how large it is, and what starting winready from it costs beside winready as it is installed here.

Each command runs from the unpacked image in bubblewrap, on a root file system that is read-only, as in a cluster.
"""

from __future__ import annotations

import json
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


def cost(command: list[str]) -> float:
    """Median wall milliseconds of a command."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def memory(confined: list[str], words: list[str]) -> float:
    """The most memory that winready had in the image, in MB, as the kernel counted it since the program began."""
    script = f"""
import atexit, runpy, sys
def tell():
    sys.stderr.write(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")))
atexit.register(tell)
sys.argv = ["winready", *{words!r}]
runpy.run_path("/usr/bin/winready", run_name="__main__")
"""
    command = [*confined, "/usr/bin/python3.11", "-IB", "-c", script]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return float(said.split()[1]) * 1024 / MEGABYTE


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
        confined += ["--unshare-all", "--clearenv"]
        for words in (["--version"], ["spec", "list"]):
            took = cost([*confined, *image.entrypoint, *words])
            here = cost([sys.executable, "-m", "winready", *words])
            shown = f"image: winready {' '.join(words)} takes {took / here:.2f} times as long as installed here"
            print(f"{shown} ({took:.0f} ms), and at most {memory(confined, words):.0f} MB")


if __name__ == "__main__":
    main()
