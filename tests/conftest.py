"""Fixtures that tests share."""
