"""Checks of Extend.Network: services and pods of both IP families."""
