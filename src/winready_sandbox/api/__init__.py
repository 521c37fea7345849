"""The embedded control plane: an in-memory Kubernetes API."""
