"""Controllers and scheduler of the embedded control plane."""
