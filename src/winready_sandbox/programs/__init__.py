"""What simulated processes run: shells and tools with the real ones' output and exit codes, per OS."""
