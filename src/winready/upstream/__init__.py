"""Kubernetes' own e2e.test as a verifier: find it, list its specs, detect drift, run it, read what it says."""
