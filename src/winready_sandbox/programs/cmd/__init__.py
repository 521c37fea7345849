"""The Windows command interpreter."""
