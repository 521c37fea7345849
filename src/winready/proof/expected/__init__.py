"""What each fault of the sandbox must be noticed by, in tables along the same cut as the faults."""
