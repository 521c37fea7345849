"""Trouble with a place: each says what is wrong, and what to do about it. None of them repeats a credential."""

from __future__ import annotations


class StoreError(Exception):
    """Something is wrong with a place or an object in it; ``remedy`` says what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class WrongAddress(StoreError):
    """An address that nothing can be found by; the remedy says how it is written."""


class NotInstalled(StoreError):
    """The package that talks to object stores is not there."""


class NoSuchPlace(StoreError):
    """There is no such bucket, container or folder."""


class NoSuchObject(StoreError):
    """There is no object of this key."""


class Refused(StoreError):
    """The store knows us and says no, or does not know us."""


class Away(StoreError):
    """The store does not answer, or not in time; later it may."""


class Full(StoreError):
    """The store takes nothing more."""


class AlreadyThere(StoreError):
    """An object of this key exists, and nothing was written."""


class Changed(StoreError):
    """Somebody else has written the object since it was read, and nothing was written."""


class TooLarge(StoreError):
    """The object has more bytes than the caller takes."""
