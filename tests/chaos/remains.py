"""Everything that there is in a sandbox, for comparison: objects of the API, files and settings of machines."""

from __future__ import annotations

from winready_sandbox.machine.machine import Machine
from winready_sandbox.up import Sandbox

PASSING = frozenset({"events", "leases", "certificatesigningrequests"})
"""Kinds whose objects come and go by themselves."""


def whole_state(sandbox: Sandbox) -> frozenset[str]:
    """One line for each thing; what a cluster does by itself is left out."""
    found = set()
    store = sandbox.embedded.registry.store
    for storage, bucket in store._buckets.items():
        if storage[1] not in PASSING:
            for entry in bucket.select():
                name = _steady(storage[1], entry.obj)
                found.add(f"{storage[1]} {entry.key[0]}/{name}")
    for name, kubelet in sandbox.fleet.kubelets.items():
        found |= {f"node {name}: {thing}" for thing in _on(kubelet.machine)}
    return frozenset(found)


def _steady(kind: str, obj: dict[str, object]) -> str:
    """A name that stays when something is made anew in its place, as pods of the system are after a reboot."""
    metadata = obj["metadata"]
    assert isinstance(metadata, dict)
    owner = (metadata.get("ownerReferences") or [{}])[0]
    if kind in ("pods", "endpointslices") and owner.get("name"):
        return f"of {owner['name']}"
    return str(metadata["name"])


def _on(machine: Machine) -> set[str]:
    files = machine.files
    found = {f"file {path}" for path, _ in files.walk(files.top)}
    if (host := machine.host) is not None:
        found |= {f"rule {rule.name}" for rule in host.firewall}
        found |= {f"group {group}" for group in host.groups}
        found |= {f"network {network.name}" for network in host.hns.networks.values()}
        found |= {f"endpoint {identifier}" for identifier in host.hns.endpoints}
        found |= {f"namespace {identifier}" for identifier in host.hns.namespaces}
    return found
