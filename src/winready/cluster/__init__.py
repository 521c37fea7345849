"""Talking to a cluster: connection, inventory, workloads, exec per OS, evidence."""
