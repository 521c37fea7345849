"""Manifests against what Windows supports, and the support matrix."""
