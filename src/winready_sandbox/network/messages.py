"""DNS messages in their wire format: what resolvers, dig and the cluster's DNS server exchange."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "ANY": 255}
TYPE_NAMES = {number: name for name, number in TYPES.items()}
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = range(6)
RCODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}


class BadMessage(ValueError):
    """Bytes that are no DNS message."""


@dataclass(frozen=True)
class Record:
    """One resource record; ``data`` is in presentation format (``10 100 80 host.`` for SRV)."""

    name: str
    type: str
    ttl: int
    data: str


@dataclass(frozen=True)
class Message:
    """A question, or the answer to it. Names are written without the final dot, as callers use them."""

    id: int
    name: str
    type: str
    response: bool = False
    authoritative: bool = False
    rcode: int = NOERROR
    answers: tuple[Record, ...] = ()
    authority: tuple[Record, ...] = ()
    recursion_desired: bool = True
    recursion_available: bool = False
    additional: tuple[Record, ...] = field(default=())
    truncated: bool = False
    """The answer did not fit into a datagram; it is to be had in a stream."""

    def encode(self) -> bytes:
        """The message as bytes."""
        flags = self.response << 15 | self.authoritative << 10 | self.truncated << 9 | self.recursion_desired << 8
        flags |= self.recursion_available << 7 | self.rcode
        counts = (1, len(self.answers), len(self.authority), len(self.additional))
        out = bytearray(struct.pack("!6H", self.id, flags, *counts))
        out += _encode_name(self.name) + struct.pack("!2H", TYPES[self.type], 1)
        for record in (*self.answers, *self.authority, *self.additional):
            data = _encode_data(record)
            out += _encode_name(record.name) + struct.pack("!2HIH", TYPES[record.type], 1, record.ttl, len(data)) + data
        return bytes(out)


def decode(data: bytes) -> Message:
    """Read a message."""
    try:
        number, flags, questions, answers, authority, additional = struct.unpack_from("!6H", data)
        if questions != 1:
            raise BadMessage(f"{questions} questions")
        name, offset = _decode_name(data, 12)
        type_number, _ = struct.unpack_from("!2H", data, offset)
        offset += 4
        sections: list[tuple[Record, ...]] = []
        for count in (answers, authority, additional):
            records = []
            for _ in range(count):
                record, offset = _decode_record(data, offset)
                records.append(record)
            sections.append(tuple(records))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise BadMessage(str(error)) from None
    return Message(
        id=number,
        name=name,
        type=TYPE_NAMES.get(type_number, "ANY"),
        response=bool(flags & 0x8000),
        authoritative=bool(flags & 0x0400),
        rcode=flags & 15,
        answers=sections[0],
        authority=sections[1],
        additional=sections[2],
        recursion_desired=bool(flags & 0x0100),
        recursion_available=bool(flags & 0x0080),
        truncated=bool(flags & 0x0200),
    )


def _encode_name(name: str) -> bytes:
    out = b""
    for label in name.rstrip(".").split(".") if name.rstrip(".") else []:
        raw = label.encode("ascii", "replace")[:63]
        out += bytes([len(raw)]) + raw
    return out + b"\0"


def _decode_name(data: bytes, offset: int) -> tuple[str, int]:
    labels: list[str] = []
    end = -1
    for _ in range(128):
        length = data[offset]
        if length == 0:
            return ".".join(labels), end if end >= 0 else offset + 1
        if length & 0xC0:
            end = offset + 2 if end < 0 else end
            offset = (length & 0x3F) << 8 | data[offset + 1]
            continue
        labels.append(data[offset + 1 : offset + 1 + length].decode("ascii"))
        offset += 1 + length
    raise BadMessage("name without end")


def _encode_data(record: Record) -> bytes:
    match record.type:
        case "A" | "AAAA":
            return ipaddress.ip_address(record.data).packed
        case "CNAME" | "PTR" | "NS":
            return _encode_name(record.data)
        case "SRV":
            priority, weight, port, target = record.data.split()
            return struct.pack("!3H", int(priority), int(weight), int(port)) + _encode_name(target)
        case "MX":
            preference, target = record.data.split()
            return struct.pack("!H", int(preference)) + _encode_name(target)
        case "SOA":
            primary, mailbox, *numbers = record.data.split()
            return _encode_name(primary) + _encode_name(mailbox) + struct.pack("!5I", *map(int, numbers))
        case "TXT":
            raw = record.data.encode()[:255]
            return bytes([len(raw)]) + raw
    raise BadMessage(f"cannot write {record.type} records")


def _decode_record(data: bytes, offset: int) -> tuple[Record, int]:
    name, offset = _decode_name(data, offset)
    type_number, _, ttl, length = struct.unpack_from("!2HIH", data, offset)
    offset += 10
    kind = TYPE_NAMES.get(type_number, "TXT")
    match kind:
        case "A" | "AAAA":
            text = str(ipaddress.ip_address(data[offset : offset + length]))
        case "CNAME" | "PTR" | "NS":
            text = _decode_name(data, offset)[0] + "."
        case "SRV":
            priority, weight, port = struct.unpack_from("!3H", data, offset)
            text = f"{priority} {weight} {port} {_decode_name(data, offset + 6)[0]}."
        case "MX":
            text = f"{struct.unpack_from('!H', data, offset)[0]} {_decode_name(data, offset + 2)[0]}."
        case "SOA":
            primary, after = _decode_name(data, offset)
            mailbox, after = _decode_name(data, after)
            text = f"{primary}. {mailbox}. " + " ".join(map(str, struct.unpack_from("!5I", data, after)))
        case _:
            text = data[offset + 1 : offset + length].decode("utf-8", "replace")
    return Record(name, kind, ttl, text), offset + length


def reverse_name(ip: str) -> str:
    """The name under which an address has its PTR record."""
    return ipaddress.ip_address(ip).reverse_pointer


def address_of_reverse(name: str) -> str | None:
    """The address that such a name stands for."""
    name = name.lower().rstrip(".")
    try:
        if name.endswith(".in-addr.arpa"):
            return str(ipaddress.IPv4Address(".".join(reversed(name.removesuffix(".in-addr.arpa").split(".")))))
        if name.endswith(".ip6.arpa"):
            digits = "".join(reversed(name.removesuffix(".ip6.arpa").split(".")))
            return str(ipaddress.IPv6Address(int(digits, 16))) if len(digits) == 32 else None
    except ValueError:
        return None
    return None
