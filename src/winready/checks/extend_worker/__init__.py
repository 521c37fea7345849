"""Checks of Extend.Worker, which advise and never decide."""
