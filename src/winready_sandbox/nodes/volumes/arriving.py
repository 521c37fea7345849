"""What of a projection arrives in a volume: all of it at once, unless the node's volumes are broken."""

from __future__ import annotations

from winready_sandbox.nodes.defects import VolumeDefects
from winready_sandbox.nodes.volumes.content import Entry, Payload


def arriving(wanted: Payload, there: Payload | None, defects: VolumeDefects) -> Payload:
    """The files of a volume after the kubelet wrote it; ``there`` is what it holds now, None before the first time."""
    payload = {path: Entry(_spoiled(entry.data, defects), entry.mode) for path, entry in wanted.items()}
    if defects.nested_missing:
        payload = {path: entry for path, entry in payload.items() if "/" not in path}
    if there is None:
        return payload
    if defects.updates_never_arrive:
        return there
    if defects.removed_keys_stay:
        payload = {**there, **payload}
    if defects.added_keys_missing:
        payload = {path: entry for path, entry in payload.items() if path in there}
    if defects.first_key_updated:
        return _taken(there, payload, sorted(payload)[:1])
    if defects.updates_one_by_one:
        changed = sorted(path for path in {**there, **payload} if there.get(path) != payload.get(path))
        return _taken(there, payload, changed[:1])
    return payload


def _spoiled(data: bytes, defects: VolumeDefects) -> bytes:
    if defects.empty:
        return b""
    if defects.line_ends_converted:
        data = data.replace(b"\n", b"\r\n")
    return data[: defects.cut_at] if defects.cut_at else data


def _taken(there: Payload, payload: Payload, paths: list[str]) -> Payload:
    """What is there, with these paths as they are in the payload."""
    merged = {path: entry for path, entry in there.items() if path not in paths}
    return merged | {path: payload[path] for path in paths if path in payload}
