"""Cluster API's runtime extension: its controllers ask here before an upgrade goes on, and wait for a run's verdict."""
