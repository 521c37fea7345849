"""The command line: arguments in, one call, exit code out."""
