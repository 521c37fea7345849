"""Runs in a place that many share: sent as they grow, mirrored where they are read, pruned by rules."""
