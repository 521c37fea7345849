"""A local web page over the run folders: the grid of all runs, each run, comparisons, and runs in progress."""
