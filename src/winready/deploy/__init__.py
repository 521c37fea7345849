"""In the cluster: the image, manifests, and what runs inside of pods."""
