"""How Windows writes its builds: ``10.0.20348``, with a revision or without, alone or in a line of text."""

from __future__ import annotations

import re

_BUILD = r"(\d{1,9}\.\d{1,9}\.\d{1,9})(?!\d)"
_BANNER = re.compile(rf"Windows \[\D* {_BUILD}(?:\.\d+)?\]")
"""Containers of the test images speak English, a host speaks whatever it was installed in: ``[Versión 10.0...]``."""
_KERNEL = re.compile(_BUILD)
_NUMBER = re.compile(r"(?:10\.0\.)?(\d{5})(?:\.\d+)?")


def build_number(text: str) -> int | None:
    """20348 for ``10.0.20348``, ``20348`` or either with a revision; None for anything else."""
    match = _NUMBER.fullmatch(text.strip())
    return int(match[1]) if match else None


def kernel_build(version: str) -> str:
    """The build in the kernel version that a kubelet reports, such as ``10.0.20348``; empty when there is none."""
    match = _KERNEL.match(version)
    return match[1] if match else ""


def banner_build(output: str) -> str:
    """The build in what ``ver`` prints; empty when it is not Windows that answered."""
    match = _BANNER.search(output)
    return match[1] if match else ""
