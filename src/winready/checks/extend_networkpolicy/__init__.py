"""Checks of Extend.NetworkPolicy: what policies keep from Windows pods, and Windows pods from others."""
