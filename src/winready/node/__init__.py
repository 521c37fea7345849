"""From a bare Windows machine to a worker: what the machine gets, and what the cluster needs for it."""
