"""Virtual kubelets: they use only the Kubernetes API and their own HTTPS port."""
