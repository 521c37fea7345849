"""Addresses of places: ``s3://bucket/prefix``, ``gs://``, ``az://``, ``file://``, and plain paths.

Credentials never belong into an address: one that has some is refused, and not repeated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from winready.store.errors import WrongAddress

Scheme = Literal["path", "file", "s3", "gs", "az"]
SCHEMES: dict[str, Scheme] = {"file": "file", "s3": "s3", "gs": "gs", "az": "az"}
FORMS = "write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, file:///FOLDER or the path of a folder"
LONGEST = 1024
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_ELSEWHERE = {
    "http": "s3",
    "https": "s3",
    "gcs": "gs",
    "s3a": "s3",
    "azure": "az",
    "abfs": "az",
    "abfss": "az",
    "wasbs": "az",
}
_HIDDEN = "it is not repeated here, since a credential may be in it"


@dataclass(frozen=True)
class Place:
    """Where objects are: a bucket and what their keys begin with, or a folder."""

    scheme: Scheme
    bucket: str = ""
    prefix: str = ""
    """Without a slash at either end; empty is the whole bucket."""
    folder: Path = Path()
    """Of ``file`` and ``path``."""

    @property
    def remote(self) -> bool:
        """Whether it is written as an address: kept as objects, and mirrored where it is read.

        A share that may go away is one as well, by ``file://``; a plain path is a folder like any other.
        """
        return self.scheme != "path"

    @property
    def address(self) -> str:
        """As a user writes it; no credential is ever in it."""
        if self.scheme == "path":
            return str(self.folder)
        if self.scheme == "file":
            return f"file://{self.folder}"
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")

    def below(self, name: str) -> Place:
        """The place one step further down."""
        if self.scheme in ("path", "file"):
            return replace(self, folder=self.folder / name)
        return replace(self, prefix=f"{self.prefix}/{name}".strip("/"))

    def above(self) -> tuple[Place, str]:
        """The place one step further up, and the last name of this one."""
        if self.scheme in ("path", "file"):
            return replace(self, folder=self.folder.parent), self.folder.name
        upper, _, name = self.prefix.rpartition("/")
        return replace(self, prefix=upper), name


def is_address(text: str) -> bool:
    """Whether a text is meant as an address, and not as the path of a folder."""
    return _ADDRESS.match(text) is not None


def parse(text: str) -> Place:
    """The place that a text names; raises `WrongAddress`."""
    if "\0" in text or not text.strip():
        raise WrongAddress("an address cannot be empty or have a NUL in it", FORMS)
    if len(text.encode(errors="surrogatepass")) > LONGEST:
        raise WrongAddress(f"an address has at most {LONGEST} bytes; this one begins with {text[:40]!r}", FORMS)
    match = _ADDRESS.match(text)
    if match is None:
        return Place("path", folder=Path(text))
    given = match[1].lower()
    try:
        parts = urlsplit(text)
    except ValueError:
        raise WrongAddress(f"an address that begins with {given}:// cannot be read; {_HIDDEN}", FORMS) from None
    if "@" in parts.netloc:
        remedy = "leave out what stands before the @, and put the credentials into the environment"
        raise WrongAddress(f"an address that begins with {given}:// has a user or a password in it", remedy)
    if parts.query or parts.fragment or "?" in text or "#" in text:
        remedy = "leave out everything from the ? or # on, and put credentials into the environment"
        raise WrongAddress(f"an address that begins with {given}:// goes on after a ? or #; {_HIDDEN}", remedy)
    scheme = SCHEMES.get(given)
    if scheme is None:
        other = _ELSEWHERE.get(given)
        remedy = FORMS
        if given in ("http", "https"):
            remedy = "write s3://BUCKET/PREFIX, and give the server as AWS_ENDPOINT_URL in the environment"
        elif other:
            remedy = f"write {other}://{text[match.end() :][:200]}"
        raise WrongAddress(f"{given}:// is no kind of place that winready knows", remedy)
    if scheme == "file":
        return _folder(text, parts.netloc, unquote(parts.path))
    return _bucket(text, scheme, parts.netloc, parts.path)


def _folder(text: str, host: str, path: str) -> Place:
    if host not in ("", "localhost") or not path.startswith("/"):
        raise WrongAddress(f"{text!r} names a host or no whole path", "write file:///FOLDER, with three slashes")
    if "\0" in path or ".." in path.split("/"):
        raise WrongAddress(f"{text!r} leads upwards", "write the folder itself: file:///FOLDER")
    return Place("file", folder=Path(path))


def _bucket(text: str, scheme: Scheme, bucket: str, path: str) -> Place:
    if not _BUCKET.fullmatch(bucket):
        what = "container" if scheme == "az" else "bucket"
        raise WrongAddress(f"{text!r} names no {what}: {bucket!r} cannot be one", f"write {scheme}://{what}/prefix")
    prefix = path.strip("/")
    names = prefix.split("/") if prefix else []
    for name in names:
        if name in ("", ".", "..") or not name.isprintable() or set(name) & set('\\%*"<>|{}^`'):
            raise WrongAddress(
                f"{text!r} has a prefix that not every tool can write: {name!r}",
                "use letters, digits, '-', '_' and '.' between single slashes",
            )
    return Place(scheme, bucket, prefix)
