"""The cluster's DNS zone: which records Services, EndpointSlices and pods amount to (DNS specification 1.1)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import NamedTuple

from winready_sandbox.network.messages import NXDOMAIN, Message, Record, address_of_reverse
from winready_sandbox.network.view import ClusterView, Key, Obj

TTL = 30


class HeadlessEndpoint(NamedTuple):
    """One endpoint of a headless service."""

    name: str
    """Its host name, or its address with dashes."""
    ip: str
    ports: tuple[tuple[str, str, int], ...]
    """Name, protocol and number."""


class ClusterZone:
    """Answers questions about names below the cluster domain, and about the addresses of services."""

    def __init__(self, view: ClusterView, domain: str) -> None:
        self._view = view
        self._domain = domain

    def answer(self, question: Message) -> Message | None:
        """The authoritative answer, or None for a name that is somebody else's to answer."""
        name = question.name.lower().rstrip(".")
        if (ip := address_of_reverse(name)) is not None:
            owner = self._owner_of(ip)
            if owner is None:
                return None
            return self._reply(question, [Record(question.name, "PTR", TTL, owner + ".")], exists=True)
        if name != self._domain and not name.endswith("." + self._domain):
            return None
        labels = name.removesuffix(self._domain).rstrip(".").split(".")
        records, exists = self._records(question, [label for label in labels if label])
        return self._reply(question, records, exists=exists)

    def _reply(self, question: Message, records: list[Record], *, exists: bool) -> Message:
        authority: tuple[Record, ...] = ()
        if not records:
            soa = f"ns.dns.{self._domain}. hostmaster.{self._domain}. 1700000000 7200 1800 86400 {TTL}"
            authority = (Record(self._domain, "SOA", TTL, soa),)
        return Message(
            question.id,
            question.name,
            question.type,
            response=True,
            authoritative=True,
            rcode=0 if exists else NXDOMAIN,
            answers=tuple(records),
            authority=authority,
        )

    def _records(self, question: Message, labels: list[str]) -> tuple[list[Record], bool]:
        """Records for the labels before the cluster domain, and whether the name exists at all."""
        match labels:
            case [] | ["svc"] | ["pod"]:
                return [], True
            case ["dns-version"]:
                return self._typed(question, "TXT", ["1.1.0"]), True
            case [namespace, "svc" | "pod"]:
                return [], ("", namespace) in self._view.objects["namespaces"]
            case [dashed, namespace, "pod"]:
                return self._pod(question, dashed, namespace)
            case [*prefix, service, namespace, "svc"]:
                return self._service(question, prefix, (namespace, service))
        return [], False

    def _pod(self, question: Message, dashed: str, namespace: str) -> tuple[list[Record], bool]:
        ip = dashed.replace("-", "." if dashed.count("-") == 3 and "--" not in dashed else ":")
        try:
            ip = str(ipaddress.ip_address(ip))
        except ValueError:
            return [], False
        if ("", namespace) not in self._view.objects["namespaces"]:
            return [], False
        return self._addresses(question, [ip]), True

    def _service(self, question: Message, prefix: list[str], key: Key) -> tuple[list[Record], bool]:
        service = self._view.objects["services"].get(key)
        if service is None:
            return [], False
        spec = service.get("spec", {})
        if spec.get("type") == "ExternalName":
            target = spec.get("externalName", "").rstrip(".") + "."
            return [Record(question.name, "CNAME", TTL, target)] if not prefix else [], not prefix
        headless = spec.get("clusterIP") in ("None", "", None)
        base = f"{key[1]}.{key[0]}.svc.{self._domain}"
        match prefix:
            case []:
                ips = [e.ip for e in self._endpoints(key, spec)] if headless else list(spec.get("clusterIPs") or [])
                if question.type == "SRV":
                    return self._srv(question, key, spec, base, None), bool(ips)
                return self._addresses(question, list(dict.fromkeys(ips))), bool(ips)
            case [port, protocol] if port.startswith("_") and protocol.startswith("_"):
                records = self._srv(question, key, spec, base, (port[1:], protocol[1:]))
                return records if question.type in ("SRV", "ANY") else [], bool(records)
            case [host] if headless:
                ips = [e.ip for e in self._endpoints(key, spec) if e.name == host]
                return self._addresses(question, ips), bool(ips)
        return [], False

    def _srv(self, question: Message, key: Key, spec: Obj, base: str, wanted: tuple[str, str] | None) -> list[Record]:
        if spec.get("clusterIP") in ("None", "", None):
            targets = [
                (name, protocol, port, f"{endpoint.name}.{base}.")
                for endpoint in self._endpoints(key, spec)
                for name, protocol, port in endpoint.ports
            ]
        else:
            ports = spec.get("ports") or []
            targets = [(p.get("name", ""), p.get("protocol", "TCP").lower(), p["port"], f"{base}.") for p in ports]
        chosen = dict.fromkeys((port, t) for name, protocol, port, t in targets if wanted in (None, (name, protocol)))
        weight = 100 // len(chosen) if chosen else 0
        return [Record(question.name, "SRV", TTL, f"0 {weight} {port} {target}") for port, target in chosen]

    def _endpoints(self, key: Key, spec: Obj) -> Iterator[HeadlessEndpoint]:
        """Endpoints of a headless service that may be published."""
        all_of_them = bool(spec.get("publishNotReadyAddresses"))
        for _, endpoint_slice in sorted(self._view.slices_of.get(key, {}).items()):
            ports = tuple(
                (p.get("name") or "", p.get("protocol", "TCP").lower(), p["port"])
                for p in endpoint_slice.get("ports") or []
                if p.get("port")
            )
            for endpoint in endpoint_slice.get("endpoints") or []:
                if (endpoint.get("conditions") or {}).get("ready") is False and not all_of_them:
                    continue
                for ip in endpoint.get("addresses") or []:
                    name = endpoint.get("hostname") or ip.replace(".", "-").replace(":", "-")
                    yield HeadlessEndpoint(name, ip, ports)

    def _owner_of(self, ip: str) -> str | None:
        """The name that an address belongs to."""
        if (key := self._view.services_by_ip.get(ip)) is not None:
            return f"{key[1]}.{key[0]}.svc.{self._domain}"
        for key, slices in self._view.slices_of.items():
            service = self._view.objects["services"].get(key)
            if service is None or service.get("spec", {}).get("clusterIP") != "None" or not slices:
                continue
            for endpoint in self._endpoints(key, service["spec"]):
                if endpoint.ip == ip:
                    return f"{endpoint.name}.{key[1]}.{key[0]}.svc.{self._domain}"
        return None

    def _addresses(self, question: Message, ips: list[str]) -> list[Record]:
        kinds = {"A": ("A",), "AAAA": ("AAAA",), "ANY": ("A", "AAAA")}.get(question.type, ())
        pairs = [("AAAA" if ":" in ip else "A", ip) for ip in ips]
        return [Record(question.name, kind, TTL, ip) for kind, ip in pairs if kind in kinds]

    def _typed(self, question: Message, kind: str, texts: list[str]) -> list[Record]:
        return [Record(question.name, kind, TTL, text) for text in texts] if question.type == kind else []
