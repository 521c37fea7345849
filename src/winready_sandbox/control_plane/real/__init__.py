"""The sandbox's nodes under a real Kubernetes control plane, so that nothing rests on our reading of it alone."""
