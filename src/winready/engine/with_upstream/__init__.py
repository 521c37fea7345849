"""What a run does with Kubernetes' own e2e.test: prepare it, run it, judge it, combine it with our own checks."""
