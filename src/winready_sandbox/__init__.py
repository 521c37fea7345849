"""A simulated hybrid cluster on loopback: control plane, nodes, network, faults."""
