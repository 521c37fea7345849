"""The control planes that a sandbox can have: one in this process, or the real programs."""
