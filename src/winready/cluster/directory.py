"""What an operator tells about an Active Directory domain: names of things in it, and no secret.

A gMSA has no password that anybody would have to know: nodes fetch it themselves. So a file that has one in it is not
read at all, and every name in it is of a form that no shell of Windows reads anything else into.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from winready.spec import yamlfile
from winready.spec.mistakes import Finding, Mistake, check_shape

SCHEMA = "winready-active-directory/1"
LARGEST = 64 * 1024
"""Bytes; such a file has a handful of lines."""
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = rf"{_LABEL}(\.{_LABEL})+"
_OBJECT = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
_PART = r"[A-Za-z0-9_$-]([A-Za-z0-9._$-]*[A-Za-z0-9_$-])?"
_SHARE = rf"\\\\(?P<server>[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)\\{_PART}(\\{_PART})*"
_FOLDER = rf"[A-Za-z]:(\\{_PART})+"
_PLAIN = re.compile(r"([A-Za-z]:)?[^@:]*")
"""What holds no name with a password: such things are written user:password@server."""
_QUOTED = re.compile(r"""(['"])(?!<)[^'"]{2,}\1|(?<=alias )\*\S+""")
"""Words of a file in what its reader says about it."""
_SECRET = re.compile(r"passw|pwd|secret|token|private.?key|\bkeytab\b", re.IGNORECASE)

Domain = Annotated[str, msgspec.Meta(pattern=f"^{_DOMAIN}$")]
ObjectName = Annotated[str, msgspec.Meta(pattern=f"^{_OBJECT}$")]
Share = Annotated[str, msgspec.Meta(pattern=f"^{_SHARE.replace('?P<server>', '')}$")]
Folder = Annotated[str, msgspec.Meta(pattern=f"^{_FOLDER}$")]
FORMS: dict[str, tuple[str, str]] = {
    "domain": (_DOMAIN, "the DNS name of a domain, such as corp.example.com"),
    "credential_spec": (_OBJECT, "the name of a GMSACredentialSpec object"),
    "denied_credential_spec": (_OBJECT, "the name of a GMSACredentialSpec object"),
    "cluster_role": (_OBJECT, "the name of a ClusterRole"),
    "allowed_share": (_SHARE, "a share, such as \\\\files.corp.example.com\\webapp, without spaces"),
    "denied_share": (_SHARE, "a share, such as \\\\files.corp.example.com\\finance, without spaces"),
    "folder": (_FOLDER, "a folder of Windows nodes, such as C:\\webapp, without spaces"),
}


class DirectoryError(Exception):
    """A file that cannot be used: every mistake with its line."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


class ActiveDirectory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A domain, an account in it, and what that account may and may not reach."""

    schema: Literal["winready-active-directory/1"] = "winready-active-directory/1"
    domain: Domain
    """The DNS name of the domain."""
    credential_spec: ObjectName
    """The GMSACredentialSpec object of the account."""
    allowed_share: Share
    """A share, or a folder of one, that the account may read and write."""
    denied_share: Share | None = None
    """A share of the same server that the account may not use."""
    denied_credential_spec: ObjectName | None = None
    """The GMSACredentialSpec object of another account, which may not use the allowed share."""
    cluster_role: ObjectName | None = None
    """A ClusterRole that lets service accounts use these objects; without it winready makes a role of its own."""
    folder: Folder | None = None
    """A folder that every judged Windows node has, and that only the account may use."""

    @property
    def server(self) -> str:
        """The server of the shares."""
        return _server(self.allowed_share)

    @property
    def credential_specs(self) -> list[str]:
        """The objects that pods name."""
        return [self.credential_spec, *([self.denied_credential_spec] if self.denied_credential_spec else [])]


def read_directory(path: Path) -> ActiveDirectory:
    """Read such a file; raises `DirectoryError` with all mistakes."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise DirectoryError([Mistake(str(path), 1, 1, f"cannot be read: {error.strerror}")]) from None
    if len(data) > LARGEST:
        raise DirectoryError([Mistake(str(path), 1, 1, f"larger than {LARGEST} bytes; this is another file")])
    return parse_directory(data, str(path))


def parse_directory(data: bytes, name: str) -> ActiveDirectory:
    """Read the text of such a file."""
    try:
        documents = list(yamlfile.read(yamlfile.decode(data)))
    except yamlfile.YamlError as error:
        raise DirectoryError([_unreadable(name, error)]) from None
    broken = [item for item in documents if isinstance(item, yamlfile.YamlError)]
    if broken:
        raise DirectoryError([_unreadable(name, item) for item in broken])
    readable = [item for item in documents if isinstance(item, yamlfile.Document)]
    if len(readable) != 1:
        raise DirectoryError([Mistake(name, 1, 1, f"expected one document, found {len(readable)}")])
    source = readable[0]
    findings = list(_secrets(source.value)) or [*check_shape(source.value, ActiveDirectory), *_wrong(source.value)]
    mistakes = [Mistake(name, *source.text.position(source.nearest(each.path).key), each.message) for each in findings]
    mistakes += [
        Mistake(name, *source.text.position(offset), f"the key {key!r} stands here a second time")
        for key, offset in source.duplicates
        if not _SECRET.search(key)
    ]
    if mistakes:
        told = [replace(each, message=_discreet(each.message, source.value)) for each in mistakes]
        raise DirectoryError(sorted(told, key=lambda item: (item.line, item.column)))
    return msgspec.convert(source.value, ActiveDirectory)


def _unreadable(name: str, error: yamlfile.YamlError) -> Mistake:
    """What is wrong with the text, without the words of it that the reader repeats."""
    return Mistake(name, error.line, error.column, _QUOTED.sub("...", error.problem))


def _discreet(message: str, value: Any) -> str:
    """A message without the keys and values that may hold a password: the place is enough to find them."""
    for text in _texts(value):
        if not _PLAIN.fullmatch(text):
            message = message.replace(repr(text), "what stands here")
    return message


def _texts(value: Any) -> Iterator[str]:
    """Every text in a document, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _secrets(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[Finding]:
    """Keys that hold a secret; what they hold is told to nobody."""
    items: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    for key, item in items:
        if isinstance(key, str) and _SECRET.search(key):
            yield Finding(
                (*path, key),
                f"{key!r} looks like a secret: winready takes none. Nodes fetch the password of a gMSA themselves; "
                "take it out of this file, and change it if it was a real one",
            )
        else:
            yield from _secrets(item, (*path, key))


def _wrong(raw: Any) -> Iterator[Finding]:
    """What the shape alone cannot tell."""
    if not isinstance(raw, dict):
        return
    texts = {key: value for key, value in raw.items() if isinstance(value, str)}
    for key, (form, words) in FORMS.items():
        if key in texts and not re.fullmatch(form, texts[key]):
            yield Finding((key,), f"{texts[key]!r} is not {words}")
    if not raw.get("denied_share") and not raw.get("denied_credential_spec"):
        words = "something must be refused: add 'denied_share', a share of the same server that the account may not use"
        yield Finding((), f"{words}, or 'denied_credential_spec', that of an account which may not use allowed_share")
    servers = {key: _server(texts[key]) for key in ("allowed_share", "denied_share") if key in texts}
    if len(set(servers.values())) > 1 and all(servers.values()):
        words = "both shares must be of one server, or a refusal could be a server that is not reached"
        yield Finding(("denied_share",), words)
    for one, other in (("allowed_share", "denied_share"), ("credential_spec", "denied_credential_spec")):
        if texts.get(one, "").lower() == texts.get(other, " ").lower():
            yield Finding((other,), f"{one} and {other} are the same")


def _server(share: str) -> str:
    found = re.fullmatch(_SHARE, share)
    return found["server"].lower() if found else ""
