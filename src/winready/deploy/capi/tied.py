"""Becomes ``winready`` with the wish to be told by the kernel to end when the server that started it is gone.

python -m winready.deploy.capi.tied PARENT-PID run ...
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """The wish survives the change of programs; elsewhere than on Linux there is none."""
    parent, *words = sys.argv[1:]
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(parent):
        sys.exit(130)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "winready", *words])  # noqa: S606


if __name__ == "__main__":
    main()
