"""Images that containers ran: what the runtime says, not what was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from winready.cluster.client import Object


@dataclass(frozen=True)
class Used:
    """An image that a container of a Windows pod ran."""

    pod: str
    node: str
    image: str
    digest: str


def repository(image: str) -> str:
    """An image without its tag and digest."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def used_images(raw: Object) -> list[Used]:
    """The images of a pod, once its containers have run."""
    name, node = raw["metadata"]["name"], raw["spec"].get("nodeName") or ""
    found = []
    for item in (raw.get("status") or {}).get("containerStatuses") or []:
        image, identity = item.get("image") or "", item.get("imageID") or ""
        if not identity:
            continue
        # Some runtimes name an image by its content alone; its identity then still says where it came from.
        named = identity.partition("@")[0] if image.startswith("sha256:") else image
        found.append(Used(name, node, named, identity.rpartition("@")[2]))
    return found
