"""Core.Storage: volumes, files, tokens and what a reboot leaves of them."""
