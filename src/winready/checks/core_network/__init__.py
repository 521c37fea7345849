"""Core.Network: basic networking between Windows and Linux pods."""
