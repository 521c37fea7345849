"""Checks of Extend.ActiveDirectory."""
