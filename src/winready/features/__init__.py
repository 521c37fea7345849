"""Features of Kubernetes on Windows: what data, upstream's specs, manifests and clusters say about them."""
