"""Ways out of loops and functions."""

from __future__ import annotations


class Return(Exception):
    """`return` from a function or sourced file."""

    def __init__(self, code: int) -> None:
        super().__init__(str(code))
        self.code = code


class LoopControl(Exception):
    """`break` and `continue`, for one loop or several."""

    def __init__(self, count: int, *, ends: bool) -> None:
        super().__init__(str(count))
        self.count = count
        self.ends = ends

    def passes_on(self) -> bool:
        """Count one loop off; is an outer one meant?"""
        self.count -= 1
        return self.count > 0
