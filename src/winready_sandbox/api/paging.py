"""Lists in pages: a continue token names a version and a place, and history gives the state back."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

import msgspec

from winready_sandbox.api.errors import (
    ApiError,
    FieldError,
    bad_request,
    forbidden_field,
    gone,
    not_supported,
    wrong_options,
)
from winready_sandbox.api.store import Bucket, Entry, Predicate, Topic

MATCH = "resourceVersionMatch"
TOO_OLD_TO_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True)
class ListOptions:
    """What a client says about a list."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_: str = ""
    version: str = ""
    match: str = ""


@dataclass(frozen=True)
class Listing:
    """A page of objects."""

    entries: list[Entry]
    version: int
    continue_: str = ""
    remaining: int | None = None


class _Token(msgspec.Struct, array_like=True):
    version: int
    namespace: str
    name: str

    def text(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @staticmethod
    def read(text: str) -> _Token:
        try:
            return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Token)
        except (binascii.Error, ValueError, msgspec.MsgspecError):
            raise bad_request("invalid continue token: continue key is not valid: illegal base64 data") from None


def version_number(text: str) -> int:
    """Read a resource version."""
    try:
        return int(text)
    except ValueError:
        cause = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(f"invalid resource version: resourceVersion: {cause}") from None


def page(
    bucket: Bucket, current: int, topic: Topic, namespace: str, matches: Predicate | None, options: ListOptions
) -> Listing:
    """One page of a list, with what is needed to go on."""
    after, version = None, current
    if options.continue_:
        if options.version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        token = _Token.read(options.continue_)
        after = (token.namespace, token.name)
        version = token.version if token.version > 0 else current
        found = bucket.select_at(version, topic, namespace)
        if found is None:
            raise _expired(token)
    else:
        version, found = _first(bucket, current, topic, namespace, options)
    if after is not None:
        found = [entry for entry in found if entry.key > after]
    if matches is not None:
        found = [entry for entry in found if matches(entry.obj)]
    if options.limit <= 0 or len(found) <= options.limit:
        return Listing(found, version)
    entries, rest = found[: options.limit], len(found) - options.limit
    selective = bool(options.labels or options.fields)
    return Listing(entries, version, _Token(version, *entries[-1].key).text(), None if selective else rest)


def _first(bucket: Bucket, current: int, topic: Topic, namespace: str, options: ListOptions) -> tuple[int, list[Entry]]:
    if options.match and not options.version:
        raise _wrong_match(
            forbidden_field(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")
        )
    if options.match not in ("", "Exact", "NotOlderThan"):
        raise _wrong_match(not_supported(MATCH, options.match, ["Exact", "NotOlderThan", ""]))
    wanted = version_number(options.version or "0")
    if wanted > current:
        raise too_large(wanted, current)
    if options.match != "Exact":
        return current, bucket.select(topic, namespace)
    if not wanted:
        detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        raise _wrong_match(forbidden_field(MATCH, detail))
    found = bucket.select_at(wanted, topic, namespace)
    if found is None:
        raise gone("The resourceVersion for the provided list is too old.")
    return wanted, found


def too_large(wanted: int, current: int) -> ApiError:
    """504 for a version that does not exist yet."""
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def _wrong_match(error: FieldError) -> ApiError:
    return wrong_options("ListOptions", error)


def _expired(token: _Token) -> ApiError:
    error = gone(TOO_OLD_TO_CONTINUE)
    error.metadata["continue"] = _Token(-1, token.namespace, token.name).text()
    return error
