"""Hostile input for every reader of files and streams of strangers: `make fuzz`, and a short part in `make test`."""
