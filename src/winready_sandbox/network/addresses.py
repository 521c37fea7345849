"""Handing out pod addresses: in turn, so that an address just released is the last to come back."""

from __future__ import annotations

import ipaddress


class NoAddressLeft(RuntimeError):
    """Every address is taken, or counts as taken."""


class AddressPool:
    """The addresses of one pod subnet."""

    def __init__(self, cidr: str, first: int = 2, size: int = 250) -> None:
        self.network = ipaddress.ip_network(cidr)
        self._first = first
        self._size = min(size, self.network.num_addresses - first - 1)
        self._next = 0
        self._used: set[str] = set()

    def take(self) -> str:
        """An address that nobody has."""
        for _ in range(self._size):
            address = str(self.network[self._first + self._next])
            self._next = (self._next + 1) % self._size
            if address not in self._used:
                self._used.add(address)
                return address
        raise NoAddressLeft(f"no free address left in {self.network}")

    def release(self, address: str) -> None:
        """Give an address back."""
        self._used.discard(address)

    def used(self) -> list[str]:
        """Addresses in use, oldest allocation not first."""
        return sorted(self._used)
