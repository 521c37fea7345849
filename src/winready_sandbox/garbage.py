"""What the collector of garbage need not look at: a cluster that has come up stays, and little of a run is garbage.

As it is set by default, it would go through every object of a large cluster again and again while pods come and go.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = 50_000
"""Objects that are made, more than let go of, before it looks at the young ones: by default 700."""


def leave_alone_what_is_there() -> None:
    """Whatever is there by now is never looked at again, and what comes is looked at seldom."""
    gc.freeze()
    gc.set_threshold(SELDOM)


@contextmanager
def left_alone() -> Iterator[None]:
    """The same for a while: afterwards all of it can be garbage."""
    before = gc.get_threshold()
    leave_alone_what_is_there()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
