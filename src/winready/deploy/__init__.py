"""Running winready inside of a cluster."""
