"""Objects in a place: immutable ones by `create`, shared ones by `replace`, which overwrites only what was read.

Calls block; whoever has an event loop makes them in a thread. Keys are relative to the place, with ``/`` between names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from winready.store.addresses import Place
from winready.store.errors import AlreadyThere, NoSuchObject, StoreError, TooLarge

PATIENCE = 30.0
"""Seconds after which a store counts as away, however often a call was tried again within them."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=+,-]{0,199}")
_LONGEST_KEY = 900


class Found(NamedTuple):
    """What was read, and the token that `Objects.replace` wants."""

    data: bytes
    token: str


class Entry(NamedTuple):
    """One object of a list; the token changes when the object does."""

    key: str
    size: int
    token: str


class WrongKey(StoreError):
    """A key that winready does not write: it could mean another thing elsewhere."""


class Objects(Protocol):
    """The objects of one place. Every verb raises a `StoreError`."""

    place: Place

    def create(self, key: str, data: bytes) -> str:
        """Write an object that is not there yet; its token. Raises `AlreadyThere`.

        It is whole or not there. An answer that got lost makes a second attempt find the work of the first: where
        that matters, use `put_once`.
        """

    def replace(self, key: str, data: bytes, token: str) -> str:
        """Write an object anew if it is still what the token stands for; the new token. Raises `Changed`."""

    def read(self, key: str, limit: int) -> Found:
        """An object of at most ``limit`` bytes. Raises `NoSuchObject` or `TooLarge`."""

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """All objects whose keys begin with this folder, in no order that anybody may rely on."""

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is removed already."""


class Conflict(StoreError):
    """An object of this key is there and has other contents."""


def identity(place: Place) -> str:
    """What tells places apart on this machine: one bucket name can be had at several servers."""
    names = {"s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), "az": ("AZURE_STORAGE_ACCOUNT_NAME",)}
    server = next((found for name in names.get(place.scheme, ()) if (found := os.environ.get(name))), "")
    return f"{place.address}\n{server}" if server else place.address


def open_place(place: Place, patience: float = PATIENCE) -> Objects:
    """The objects of a place; nothing is asked or made yet. Raises `NotInstalled` or `WrongAddress`."""
    if place.scheme in ("path", "file"):
        from winready.store.folder import FolderObjects

        return FolderObjects(place)
    from winready.store.remote import open_remote

    return open_remote(place, patience)


def put_once(objects: Objects, key: str, data: bytes) -> bool:
    """See to it that an object is there with exactly these contents; False if it was already. Raises `Conflict`."""
    try:
        objects.create(key, data)
    except AlreadyThere:
        pass
    else:
        return True
    where = objects.place.below(key).address
    try:
        found = objects.read(key, len(data)).data
    except (TooLarge, NoSuchObject):
        found = None
    if found != data:
        raise Conflict(f"{where} is there with other contents", "find out who wrote it; it is left as it is")
    return False


def valid_key(key: str) -> bool:
    """Whether a key is one that winready would write: names of plain letters, nothing hidden, nothing upwards."""
    return len(key) <= _LONGEST_KEY and all(_NAME.fullmatch(name) for name in key.split("/"))


def checked(key: str) -> str:
    """A key that may be written; raises `WrongKey`."""
    if not valid_key(key):
        raise WrongKey(f"{key[:80]!r} is no key for an object", "use letters, digits, '-', '_' and '.' between slashes")
    return key
