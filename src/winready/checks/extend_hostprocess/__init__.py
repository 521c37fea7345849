"""Checks of Extend.HostProcess."""
