"""Core.Scheduling: limits that are kept, and pods that must not be placed."""
