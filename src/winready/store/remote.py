"""Objects in S3, Google Cloud Storage and Azure Blob Storage, by obstore, with credentials from the usual environment.

What a store answers is told by its code alone: whole answers can carry keys and signatures.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import ModuleType
from typing import TYPE_CHECKING, Any

from winready.store.addresses import Place
from winready.store.errors import (
    AlreadyThere,
    Away,
    Changed,
    Full,
    NoSuchObject,
    NoSuchPlace,
    NotInstalled,
    Refused,
    StoreError,
    TooLarge,
    WrongAddress,
)
from winready.store.objects import Entry, Found, checked

if TYPE_CHECKING:
    from obstore.store import ObjectStore

CONNECTING = 5.0
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,64})</Code>|\bcode: \"?([A-Za-z][A-Za-z0-9]{1,63})")
_STATUS = re.compile(r"(?:status code:?|HTTP status|response code|Server returned non-2xx status code:) *(\d{3})", re.I)
_ENVIRONMENT = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
}
_FULL = {"507", "QuotaExceeded", "InsufficientStorage", "StorageFull", "XMinioStorageFull", "NoSpaceLeft"}
_NO_PLACE = {"NoSuchBucket", "ContainerNotFound", "InvalidBucketName"}
_UNKNOWN = {
    "401",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "AuthenticationFailed",
    "XAdminUserNotFound",
}
_ODD = re.compile(r'path: "((?:[^"\\]|\\.){1,200})')
_FORBIDDEN = {"403", "AccessDenied", "AllAccessDisabled", "AuthorizationFailure", "AccountProblem"}


def open_remote(place: Place, patience: float) -> RemoteObjects:
    """The objects of a bucket; raises `NotInstalled` or `WrongAddress`."""
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError:
        raise NotInstalled(
            f"{place.address} is an object store, and the package for those is not installed",
            "install it with: pip install 'winready[store]'",
        ) from None
    return RemoteObjects(place, obstore, _store(place, obstore.store, patience))


def _store(place: Place, stores: ModuleType, patience: float) -> ObjectStore:
    waits: dict[str, Any] = {
        "client_options": {
            "timeout": timedelta(seconds=patience),
            "connect_timeout": timedelta(seconds=min(CONNECTING, patience)),
        },
        "retry_config": {"max_retries": 5, "retry_timeout": timedelta(seconds=patience)},
    }
    prefix = place.prefix or None
    made: ObjectStore
    try:
        if place.scheme == "s3":
            endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
            config: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
            if endpoint and endpoint.startswith("http://"):
                # Whoever writes it so means it so.
                waits["client_options"]["allow_http"] = True
            made = stores.S3Store(place.bucket, prefix=prefix, **waits, **config)
        elif place.scheme == "gs":
            made = stores.GCSStore(place.bucket, prefix=prefix, **waits)
        else:
            made = stores.AzureStore(place.bucket, prefix=prefix, **waits)
    except Exception:
        # The words of a builder may repeat what it was given.
        raise WrongAddress(
            f"{place.address} cannot be used with this environment",
            f"look at {_ENVIRONMENT[place.scheme]}",
        ) from None
    return made


class OddKey(Refused):
    """An object has a key that the library cannot even list."""


class RemoteObjects:
    """The objects of a bucket below a prefix."""

    def __init__(self, place: Place, obstore: ModuleType, store: ObjectStore) -> None:
        self.place = place
        self._obstore = obstore
        self._store = store

    def create(self, key: str, data: bytes) -> str:
        """Write an object that is not there yet."""
        try:
            with self._told(key):
                return _token(self._obstore.put(self._store, checked(key), data, mode="create"))
        except NoSuchObject:
            # Not every store says which of the two it does not have.
            raise NoSuchPlace(f"there is no {self._bucket}", "make it, or name another one") from None

    def replace(self, key: str, data: bytes, token: str) -> str:
        """Write an object anew if it is still what the token stands for."""
        etag, _, version = token.partition("\t")
        mode = {name: value for name, value in (("e_tag", etag), ("version", version)) if value}
        with self._told(key):
            return _token(self._obstore.put(self._store, checked(key), data, mode=mode))

    def read(self, key: str, limit: int) -> Found:
        """An object of at most ``limit`` bytes."""
        with self._told(key):
            answer = self._obstore.get(self._store, checked(key))
            if answer.meta["size"] > limit:
                raise TooLarge(f"{self._where(key)} is larger than the {limit} bytes that are read of it")
            data = bytearray()
            for chunk in answer.stream():
                data += chunk
                if len(data) > limit:
                    raise TooLarge(f"{self._where(key)} is larger than the {limit} bytes that are read of it")
            return Found(bytes(data), _token(answer.meta))

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """All objects whose keys begin with this folder.

        One key such as ``a//b`` makes the library refuse a whole list. Then each folder is listed by itself, and where
        that does not help, the odd key stands in the list for all that is beside it.
        """
        try:
            yield from self._listed(prefix)
        except OddKey:
            if prefix:
                raise
            with self._told(prefix):
                top = self._obstore.list_with_delimiter(self._store)
            yield from (Entry(meta["path"], meta["size"], _token(meta)) for meta in top["objects"])
            for folder in top["common_prefixes"]:
                try:
                    yield from self._listed(folder)
                except OddKey as error:
                    yield Entry(f"{folder}//: {error.message}", 0, "")

    def _listed(self, prefix: str) -> Iterator[Entry]:
        with self._told(prefix):
            for chunk in self._obstore.list(self._store, prefix or None, chunk_size=1000):
                for meta in chunk:
                    yield Entry(meta["path"], meta["size"], _token(meta))

    def delete(self, key: str) -> None:
        """Remove an object."""
        with self._told(key):
            try:
                self._obstore.delete(self._store, checked(key))
            except FileNotFoundError:
                return

    @property
    def _bucket(self) -> str:
        return f"{self.place.scheme}://{self.place.bucket}"

    def _where(self, key: str) -> str:
        return self.place.below(key).address if key else self.place.address

    @contextmanager
    def _told(self, key: str) -> Iterator[None]:
        """What obstore says, as trouble with a place."""
        try:
            yield
        except (StoreError, GeneratorExit):
            raise
        except Exception as error:
            raise self._trouble(key, error) from None

    def _trouble(self, key: str, error: Exception) -> StoreError:
        kinds = self._obstore.exceptions
        text = str(error)
        codes = {code for pair in _CODE.findall(text) for code in pair if code} | set(_STATUS.findall(text))
        where, bucket = self._where(key), self._bucket
        environment = _ENVIRONMENT[self.place.scheme]
        if _no_credentials(self.place, text):
            return Refused(f"there are no credentials for {bucket}", f"put them into the environment: {environment}")
        if codes & _NO_PLACE:
            return NoSuchPlace(f"there is no {bucket}", "make it, or name another one")
        if isinstance(error, kinds.AlreadyExistsError):
            return AlreadyThere(f"{where} is there already")
        if isinstance(error, kinds.PreconditionError):
            return Changed(f"{where} was written by somebody else", "read it again")
        if isinstance(error, kinds.UnauthenticatedError) or codes & _UNKNOWN:
            return Refused(f"{bucket} does not know who asks{_told_as(codes)}", f"look at {environment}")
        if isinstance(error, FileNotFoundError):
            return NoSuchObject(f"there is no {where}")
        if codes & _FULL:
            return Full(f"{bucket} takes nothing more{_told_as(codes)}", "make room there")
        if isinstance(error, kinds.PermissionDeniedError) or codes & _FORBIDDEN:
            remedy = f"whoever asks needs to list, read, write and delete objects there; look at {environment}"
            return Refused(f"{bucket} refuses{_told_as(codes)}", remedy)
        if _odd(error) is not None:
            return OddKey(f"{self.place.address} has an object that no tool can name: {_odd(error)!r}", "remove it")
        words = _told_as(codes) or _network(text)
        return Away(f"{bucket} does not answer{words}", f"try again later, or look at {environment}")


def _odd(error: Exception) -> str | None:
    """The key that a list stumbled over."""
    text = str(error)
    if not any(sign in text for sign in ("InvalidPath", "BadSegment", "EmptySegment", "invalid path")):
        return None
    match = _ODD.search(text)
    return match[1] if match else ""


def _told_as(codes: set[str]) -> str:
    return f" ({', '.join(sorted(codes))})" if codes else ""


def _network(text: str) -> str:
    """What the network did, in words that are no more than that."""
    for sign, words in (
        ("Connection refused", "nobody listens there"),
        ("timed out", "it took too long"),
        ("TimedOut", "it took too long"),
        ("Timeout", "it took too long"),
        ("dns error", "its name is not known"),
        ("failed to lookup", "its name is not known"),
        ("certificate", "its certificate is not trusted"),
        ("Connection reset", "the connection broke"),
        ("connection closed", "the connection broke"),
    ):
        if sign.lower() in text.lower():
            return f": {words}"
    return ""


def _no_credentials(place: Place, text: str) -> bool:
    """Without any, the library asks the machine's own metadata service, which most machines do not have."""
    given = {
        "s3": ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
        "gs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"),
        "az": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_ID"),
    }[place.scheme]
    asked = "169.254.169.254" in text or "metadata" in text.lower() or "latest/api/token" in text
    return asked and not any(os.environ.get(name) for name in given)


def _token(meta: Any) -> str:
    """S3 and Azure know versions by an ETag, Google by a number; both go back as they came."""
    version = meta.get("version")
    return f"{meta.get('e_tag') or ''}" + (f"\t{version}" if version else "")
