"""Many clusters and many runs, asked of the index: where each stands, who fails what, what is flaky, and trends."""
