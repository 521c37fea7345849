"""The scheduler: which node a pod fits on, which fits best, and the real scheduler's words when none does."""
