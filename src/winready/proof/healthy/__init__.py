"""Sound clusters that are unlike the plain one: whatever is verified must pass on them, or say who keeps it from it."""
