"""Consume the events of a run or a finished run."""
