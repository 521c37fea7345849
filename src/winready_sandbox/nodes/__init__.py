"""Virtual kubelets: they join an API server like any node and run pods on simulated machines."""
