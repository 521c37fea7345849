"""JSON patch (RFC 6902), failing in the words of the real API server."""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.errors import ApiError, bad_request

MAX_OPERATIONS = 10_000


class _Failed(Exception):
    """An operation that cannot be carried out on this object."""


def json_patch(obj: dict[str, Any], operations: object) -> dict[str, Any]:
    """The object after all operations; none takes effect if one fails."""
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity is too large: {message}")
    result: Any = _copied(obj)
    try:
        for operation in operations:
            result = _carry_out(result, operation)
    except _Failed as failure:
        raise _unacceptable() from failure
    if not isinstance(result, dict):
        raise _unacceptable()
    return result


def _unacceptable() -> ApiError:
    """422 for a patch that is well-formed and cannot be applied; the real server keeps the cause to itself."""
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request")


def _carry_out(document: Any, operation: dict[str, Any]) -> Any:
    kind = operation.get("op")
    path = operation.get("path")
    if not isinstance(path, str):
        raise _Failed("operation missing path field: missing value")
    if kind not in ("add", "remove", "replace", "move", "copy", "test"):
        raise _Failed(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
    if kind in ("move", "copy") and not isinstance(operation.get("from"), str):
        raise _Failed("operation, missing from field: missing value")
    if path == "" and kind in ("add", "replace"):
        return _copied(operation.get("value"))
    if kind == "test":
        _test(document, path, operation.get("value"))
    elif kind == "remove":
        _remove(document, path, "remove")
    elif kind == "add":
        _add(document, path, _copied(operation.get("value")), "add operation does not apply: doc is missing path")
    elif kind == "replace":
        _replace(document, path, _copied(operation.get("value")))
    else:
        source = str(operation["from"])
        value = _copied(_get(document, source, f"{kind} operation does not apply: doc is missing from path"))
        if kind == "move":
            _remove(document, source, "move")
        _add(document, path, value, f"{kind} operation does not apply: doc is missing destination path")
    return document


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _steps(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _holder(document: Any, path: str) -> tuple[Any, str]:
    """What holds the last step of a path, and that step."""
    *way, last = _steps(path) or [""]
    for step in way:
        try:
            document = document[int(step)] if isinstance(document, list) else document[step]
        except (KeyError, IndexError, ValueError, TypeError):
            return None, last
    return (document if isinstance(document, dict | list) else None), last


def _index(step: str, end: int) -> int:
    try:
        index = int(step)
    except ValueError:
        message = f"value was not a proper array index: '{step}': strconv.Atoi: parsing \"{step}\": invalid syntax"
        raise _Failed(message) from None
    if index < 0:
        index += end
    if not 0 <= index < end:
        raise _Failed(f"Unable to access invalid index: {step}: invalid index referenced")
    return index


def _get(document: Any, path: str, missing: str) -> Any:
    if path == "":
        return document
    holder, step = _holder(document, path)
    if isinstance(holder, list):
        return holder[_index(step, len(holder))]
    if holder is None:
        raise _Failed(f"{missing}: {path}: missing value")
    return holder.get(step)


def _test(document: Any, path: str, expected: Any) -> None:
    holder, step = (document, "") if path == "" else _holder(document, path)
    if holder is None:
        raise _Failed(f"test operation does not apply: is missing path: {path}: missing value")
    if path == "":
        found = document
    elif isinstance(holder, list):
        found = holder[_index(step, len(holder))]
    else:
        found = holder.get(step)
    if found != expected or isinstance(found, bool) != isinstance(expected, bool):
        raise _Failed(f"testing value {path} failed: test failed")


def _remove(document: Any, path: str, verb: str) -> None:
    holder, step = _holder(document, path)
    if holder is None:
        raise _Failed(f'{verb} operation does not apply: doc is missing path: "{path}": missing value')
    if isinstance(holder, list):
        del holder[_index(step, len(holder))]
    elif step in holder:
        del holder[step]
    else:
        cause = f"Unable to remove nonexistent key: {step}: missing value"
        raise _Failed(f"error in {verb} for path: '{path}': {cause}")


def _add(document: Any, path: str, value: Any, missing: str) -> None:
    holder, step = _holder(document, path)
    if holder is None:
        raise _Failed(f'{missing}: "{path}": missing value')
    if isinstance(holder, dict):
        holder[step] = value
    elif step == "-":
        holder.append(value)
    else:
        holder.insert(_index(step, len(holder) + 1), value)


def _replace(document: Any, path: str, value: Any) -> None:
    holder, step = _holder(document, path)
    if holder is None:
        raise _Failed(f"replace operation does not apply: doc is missing path: {path}: missing value")
    if isinstance(holder, list):
        holder[_index(step, len(holder))] = value
    else:  # the real server does not mind a key that was not there
        holder[step] = value
