"""In the cluster: manifests, and what runs inside of pods."""
