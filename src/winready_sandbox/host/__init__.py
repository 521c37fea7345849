"""A node that runs named images as real, confined processes, apart from the simulated ones.

Nothing outside of this package starts what an image contains: simulated nodes never execute anything.
"""
