"""Faults: named defects of real clusters that a sandbox can be given."""
