"""API errors: each becomes the ``Status`` object that a real API server would answer with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FieldError:
    """One cause of a 422, with the path of the offending field."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


def required(field: str, detail: str = "") -> FieldError:
    """A field that must be there and is not."""
    return FieldError(field, "Required value" + (f": {detail}" if detail else ""), "FieldValueRequired")


def invalid(field: str, value: object, detail: str) -> FieldError:
    """A field whose value is not acceptable."""
    return FieldError(field, f"Invalid value: {_quoted(value)}: {detail}", "FieldValueInvalid")


def forbidden_field(field: str, detail: str) -> FieldError:
    """A field that may not be set here."""
    return FieldError(field, f"Forbidden: {detail}", "FieldValueForbidden")


def duplicate(field: str, value: object) -> FieldError:
    """A value that may be there only once."""
    return FieldError(field, f"Duplicate value: {_quoted(value)}", "FieldValueDuplicate")


def not_supported(field: str, value: object, supported: list[str]) -> FieldError:
    """A value outside the allowed set."""
    allowed = ", ".join(_quoted(item) for item in supported)
    return FieldError(
        field, f"Unsupported value: {_quoted(value)}: supported values: {allowed}", "FieldValueNotSupported"
    )


def not_found_value(field: str, value: object) -> FieldError:
    """A reference to something that is not there."""
    return FieldError(field, f"Not found: {_quoted(value)}", "FieldValueNotFound")


def too_long(field: str, limit: int) -> FieldError:
    """A value with too many bytes."""
    return FieldError(field, f"Too long: may not be more than {limit} bytes", "FieldValueTooLong")


def too_many(field: str, found: int, limit: int) -> FieldError:
    """A list with too many items."""
    return FieldError(field, f"Too many: {found}: must have at most {limit} items", "FieldValueTooMany")


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class ApiError(Exception):
    """Carries the whole ``Status``; the HTTP layer only writes it out."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self._shows_details = details is not None
        self.headers: dict[str, str] = {}
        self.metadata: dict[str, str] = {}
        self.warnings: list[str] = []
        """What its reader should be told beside it."""

    def status(self) -> dict[str, Any]:
        """The ``Status`` object of this error."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details or self._shows_details:
            status["details"] = self.details
        status["code"] = self.code
        return status


def qualified(plural: str, group: str) -> str:
    """How error messages name a resource: ``pods``, ``deployments.apps``."""
    return f"{plural}.{group}" if group else plural


def _details(name: str, plural_or_kind: str, group: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    return {**details, "kind": plural_or_kind} if plural_or_kind else details


def not_found(plural: str, group: str, name: str) -> ApiError:
    """404 for an object."""
    message = f'{qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(name, plural, group))


def no_such_path() -> ApiError:
    """404 for a path that no resource serves."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(plural: str, group: str, name: str) -> ApiError:
    """409 on create."""
    message = f'{qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(name, plural, group))


def conflict(plural: str, group: str, name: str, detail: str = "") -> ApiError:
    """409 on a stale write or an unmet precondition."""
    detail = detail or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {detail}'
    return ApiError(409, "Conflict", message, _details(name, plural, group))


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def unprocessable(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 with every cause and its field path."""
    causes = [{"reason": e.reason, "message": e.message, "field": e.field} for e in errors]
    texts = list(dict.fromkeys(f"{e.field}: {e.message}" for e in errors))
    text = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    message = f'{qualified(kind, group)} "{name}" is invalid: {text}'
    return ApiError(422, "Invalid", message, {**_details(name, kind, group), "causes": causes})


def forbidden(plural: str, group: str, name: str, detail: str) -> ApiError:
    """403."""
    subject = f'{qualified(plural, group)} "{name}"' if name else qualified(plural, group)
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {detail}", _details(name, plural, group))


def unauthorized() -> ApiError:
    """401."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def gone(message: str = "The resourceVersion for the provided watch is too old.") -> ApiError:
    """410 for history that is no longer kept."""
    return ApiError(410, "Expired", message)


def unsupported_media_type(message: str) -> ApiError:
    """415."""
    return ApiError(415, "UnsupportedMediaType", message)


def method_not_allowed(message: str = "the server does not allow this method on the requested resource") -> ApiError:
    """405."""
    return ApiError(405, "MethodNotAllowed", message, {})


def wrong_options(kind: str, error: FieldError) -> ApiError:
    """422 for an option of a request; kind is ``ListOptions``, ``CreateOptions`` and so on."""
    return unprocessable(kind, "meta.k8s.io", "", [error])
