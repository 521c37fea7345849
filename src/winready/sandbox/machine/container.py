"""A container: an image's files, a user, an environment, a network endpoint and the processes in it."""

from __future__ import annotations

from typing import Literal

OS = Literal["windows", "linux"]


class Container:
    """One running container; `winready.sandbox.nodes` starts it, programs run inside it."""

    os: OS
