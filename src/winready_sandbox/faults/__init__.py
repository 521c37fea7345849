"""Faults: named defects that a sandbox can be given, to prove that a check notices them."""
